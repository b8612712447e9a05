"""The class of a query: what decides which strategy maintains it, and at what price (source 003, section 3.2).

Classes are about structure alone. Where the source speaks of a query's fracture, `classify` looks at it; the
predicates look at what they are given. "Ordered" variables make a tier of their own between output and bound
ones, and each of the definitions below holds for every such border between tiers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

from ivme.structure.fracture import Fracture, fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph, gyo
from ivme.structure.shapes import is_four_cycle, is_four_path, loomis_whitney_degree, triangle_class


def is_hierarchical(hypergraph: Hypergraph) -> bool:
    """Whether the edges of any two variables are nested or disjoint (003, Definition 2.5)."""
    return _crossing(hypergraph) is None


def _crossing(hypergraph: Hypergraph) -> tuple[str, str] | None:
    homes = {variable: hypergraph.edges_of(variable) for variable in sorted(hypergraph.vertices)}
    for a, b in combinations(homes, 2):
        if homes[a] & homes[b] and homes[a] - homes[b] and homes[b] - homes[a]:
            return a, b
    return None


def dominates(hypergraph: Hypergraph, b: str, a: str) -> bool:
    """Whether b is in all edges of a, and in more (003, Definition 3.6)."""
    return hypergraph.edges_of(a) < hypergraph.edges_of(b)


def is_free_dominant(cqap: Cqap) -> bool:
    """Whether only free variables dominate free ones (003, Definition 3.7)."""
    return _intruder(cqap, cqap.free) is None


def is_input_dominant(cqap: Cqap) -> bool:
    """Whether only input variables dominate input ones (003, Definition 3.7)."""
    return _intruder(cqap, cqap.input) is None


def _intruder(cqap: Cqap, top: frozenset[str]) -> tuple[str, str] | None:
    """A variable of `top` and one outside that dominates it."""
    for a in sorted(top):
        for b in sorted(cqap.variables - top):
            if dominates(cqap.hypergraph, b, a):
                return a, b
    return None


def is_almost_free_dominant(cqap: Cqap) -> bool:
    """Whether it is not free-dominant, but for each edge of a bound variable one more edge covers what that
    variable dominates among the free ones (003, Definition 3.8)."""
    return not is_free_dominant(cqap) and _nearly_dominant(cqap, cqap.free)


def is_almost_input_dominant(cqap: Cqap) -> bool:
    """The same for input variables, dominated by those that are not input."""
    return not is_input_dominant(cqap) and _nearly_dominant(cqap, cqap.input)


def _nearly_dominant(cqap: Cqap, top: frozenset[str]) -> bool:
    """Whether an update of any edge leaves at most one edge's worth of `top` variables to look up."""
    hypergraph = cqap.hypergraph
    for b in cqap.variables - top:
        around = [edge.variables for edge in hypergraph.edges if b in edge.variables]
        below = frozenset(a for a in top if dominates(hypergraph, b, a))
        if not all(any(below <= first | second for second in around) for first in around):
            return False
    return True


def _tops(cqap: Cqap) -> tuple[frozenset[str], ...]:
    """What must be above the rest in an access-top order: inputs, other free variables, all free variables."""
    return cqap.input, cqap.input | cqap.output, cqap.free


def is_q_hierarchical(cqap: Cqap) -> bool:
    """Hierarchical and free-dominant: for queries without inputs this is CQAP_0 (003, section 3.4)."""
    return is_hierarchical(cqap.hypergraph) and is_free_dominant(cqap)


def is_acyclic(hypergraph: Hypergraph) -> bool:
    """Whether the hypergraph is α-acyclic: GYO leaves nothing."""
    return gyo(hypergraph).acyclic


def is_free_connex(cqap: Cqap) -> bool:
    """Whether the body is acyclic, and stays so with an edge of the free (and one of the input) variables."""
    edges = cqap.hypergraph.edges
    label = "".join(edge.label for edge in edges) + "'"
    return is_acyclic(cqap.hypergraph) and all(
        is_acyclic(Hypergraph((*edges, Edge(label, top)))) for top in _tops(cqap)
    )


def is_cqap0(cqap: Cqap) -> bool:
    """Whether a *fracture* is hierarchical, free-dominant and input-dominant (003, Definition 3.7)."""
    return is_hierarchical(cqap.hypergraph) and all(_intruder(cqap, top) is None for top in _tops(cqap))


def is_cqap1(cqap: Cqap) -> bool:
    """Whether a *fracture* is hierarchical, not in CQAP_0, and each side is dominant or almost so.

    Definition 3.8 says "almost free-dominant, or almost input-dominant, or both". Read alone it admits queries
    that are almost dominant on one side and far from it on the other, whose dynamic width is 2 or more; this
    reading is the one for which Proposition 5.30 holds (dynamic width 1).
    """
    return (
        is_hierarchical(cqap.hypergraph)
        and not is_cqap0(cqap)
        and all(_nearly_dominant(cqap, top) for top in _tops(cqap))
    )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a query is not in CQAP_0: two variables of it and the edges that show the pattern."""

    kind: str
    variables: tuple[str, str]
    edges: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Classification:
    """A query's class and everything it was decided by.

    `hierarchical`, `acyclic` and the shapes are of the query as written; dominance, `free_connex` and the fields
    that say so are of its fracture.
    """

    query_class: str
    obstacle: Obstacle | None
    hierarchical: bool
    hierarchical_fracture: bool
    free_dominant: bool
    input_dominant: bool
    almost_free_dominant: bool
    almost_input_dominant: bool
    q_hierarchical: bool
    cqap0: bool
    cqap1: bool
    acyclic: bool
    acyclic_fracture: bool
    free_connex: bool
    triangle: str | None
    loomis_whitney: int | None
    four_path: bool
    four_cycle: bool


def classify(cqap: Cqap, broken: Fracture | None = None) -> Classification:
    """Everything about a query's structure that the choice of a strategy depends on; `broken` is its fracture."""
    broken = fracture(cqap) if broken is None else broken
    body, whole = cqap.hypergraph, broken.whole
    same = whole == cqap
    hierarchical, acyclic = is_hierarchical(body), is_acyclic(body)
    hierarchical_fracture = hierarchical if same else is_hierarchical(whole.hypergraph)
    dominant = {top: _intruder(whole, top) is None for top in _tops(whole)}
    nearly = {top: _nearly_dominant(whole, top) for top in dominant}
    cqap0 = hierarchical_fracture and all(dominant.values())
    found = Classification(
        query_class="",
        obstacle=None if cqap0 else _obstacle(broken),
        hierarchical=hierarchical,
        hierarchical_fracture=hierarchical_fracture,
        free_dominant=dominant[whole.free],
        input_dominant=dominant[whole.input],
        almost_free_dominant=not dominant[whole.free] and nearly[whole.free],
        almost_input_dominant=not dominant[whole.input] and nearly[whole.input],
        q_hierarchical=hierarchical and (dominant[whole.free] if same else is_free_dominant(cqap)),
        cqap0=cqap0,
        cqap1=hierarchical_fracture and not cqap0 and all(nearly.values()),
        acyclic=acyclic,
        acyclic_fracture=acyclic if same else is_acyclic(whole.hypergraph),
        free_connex=is_free_connex(whole),
        triangle=triangle_class(cqap),
        loomis_whitney=loomis_whitney_degree(body),
        four_path=is_four_path(body),
        four_cycle=is_four_cycle(body),
    )
    return replace(found, query_class=_query_class(found))


def _query_class(found: Classification) -> str:
    """The name of the first class that a query is in, from the easiest on."""
    candidates = (
        ("CQAP0", found.cqap0),
        (f"triangle/{found.triangle}", found.triangle is not None),
        ("CQAP1", found.cqap1),
        ("hierarchical", found.hierarchical_fracture),
        ("loomis-whitney", found.loomis_whitney is not None),
        ("path-4", found.four_path),
        ("cycle-4", found.four_cycle),
        ("free-connex", found.free_connex),
        ("acyclic", found.acyclic_fracture),
    )
    return next((name for name, holds in candidates if holds), "cyclic")


def _obstacle(broken: Fracture) -> Obstacle:
    """The first pattern that keeps a fracture out of CQAP_0, in the query's own names."""
    whole, named = broken.whole, broken.original
    homes = whole.hypergraph.edges_of
    position = {edge.label: index for index, edge in enumerate(whole.hypergraph.edges)}

    def first(labels: frozenset[str]) -> str:
        return min(labels, key=position.__getitem__)

    crossing = _crossing(whole.hypergraph)
    if crossing is not None:
        a, b = crossing
        r, s, t = first(homes(a) - homes(b)), first(homes(a) & homes(b)), first(homes(b) - homes(a))
        a, b = named(a), named(b)
        text = f"{a} and {b} are crossed: {r} has {a} but not {b}, {s} has both, {t} has {b} but not {a}"
        return Obstacle("not hierarchical", (a, b), (r, s, t), text)
    sides = (
        ("not free-dominant", whole.free, "{a} is free and {b} is bound"),
        ("not input-dominant", whole.input, "{a} is input and {b} is not"),
        ("not free-dominant", whole.input | whole.output, "{a} is grouped by and {b} is ordered within the groups"),
    )
    kind, (a, b), why = next((kind, pair, why) for kind, top, why in sides if (pair := _intruder(whole, top)))
    edges = (first(homes(a)), first(homes(b) - homes(a)))
    a, b = named(a), named(b)
    return Obstacle(kind, (a, b), edges, f"{b} dominates {a}, {why.format(a=a, b=b)}")
