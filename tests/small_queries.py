"""All small queries up to renaming, and bounds for them by brute force, for tests/properties/test_undominated.py.

A query is a connected multigraph whose edges are atoms over two variables (the order of columns makes no difference to
a plan), with each variable an output, an input or bound. The brute force knows nothing of our strategies: it tries
every variable order, every set of atoms to store, and every order in which variables are summed away at a request,
with the covers of tests/brute_force.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product

from ivme.structure.hypergraph import Cqap, Edge, Hypergraph
from tests.brute_force import cover_number, every_elimination_order, order_widths

Pair = tuple[int, int]
NAMES, RELATIONS = "ABCDE", "RSTU"


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """The exponents of an update, a row or request, and space."""

    update: Fraction
    delay: Fraction
    space: Fraction

    def dominates(self, other: Point) -> bool:
        pairs = ((self.update, other.update), (self.delay, other.delay), (self.space, other.space))
        return self != other and all(mine <= theirs for mine, theirs in pairs)


def graphs(atoms: int) -> Iterator[tuple[Pair, ...]]:
    """Connected multigraphs of so many edges, each once."""
    seen = set()
    for number in range(2, atoms + 2):
        for edges in combinations_with_replacement([*combinations(range(number), 2)], atoms):
            if _is_connected(edges, number) and (form := _form(edges, (0,) * number)) not in seen:
                seen.add(form)
                yield edges


def _is_connected(edges: tuple[Pair, ...], number: int) -> bool:
    reached = {0}
    for _ in edges:
        reached |= {v for edge in edges if reached.intersection(edge) for v in edge}
    return len(reached) == number


def _form(edges: tuple[Pair, ...], tiers: tuple[int, ...]) -> object:
    """The least of all renamings."""
    forms = []
    for names in permutations(range(len(tiers))):
        renamed = sorted(tuple(sorted((names[a], names[b]))) for a, b in edges)
        forms.append((renamed, [tiers[names.index(i)] for i in range(len(tiers))]))
    least = min(forms)
    return tuple(least[0]), tuple(least[1])


def rules(atoms: int) -> Iterator[str]:
    """Rules over so many atoms, with every access pattern, each up to renaming once."""
    for edges in graphs(atoms):
        number = 1 + max(v for edge in edges for v in edge)
        seen = set()
        for tiers in product((0, 1, 2), repeat=number):
            if (form := _form(edges, tiers)) not in seen:
                seen.add(form)
                yield _rule(edges, tiers)


def _rule(edges: tuple[Pair, ...], tiers: tuple[int, ...]) -> str:
    def listed(tier: int) -> str:
        return ", ".join(NAMES[i] for i, mine in enumerate(tiers) if mine == tier) or "."

    body = ", ".join(f"{RELATIONS[i]}({NAMES[a]}, {NAMES[b]})" for i, (a, b) in enumerate(edges))
    return f"Q({listed(1)} | {listed(2)}) = {body}"


def brute_points(query: Cqap) -> set[Point]:
    """What is possible by trees, by stored sets of atoms, and by evaluation at the request, of all orders."""
    return {_tree_point(query), *_split_points(query)}


def _tree_point(query: Cqap) -> Point:
    """View trees over the best order of each component of the fracture."""
    best = [
        min(filter(None, (order_widths(part, parents) for parents in every_elimination_order(part))))
        for part in _components(query)
    ]
    return Point(max(w[0] for w in best), Fraction(0), max([Fraction(1), *(w[1] for w in best)]))


def _components(query: Cqap) -> list[Cqap]:
    """The parts that hang together without their inputs."""
    left = [*query.hypergraph.edges]
    found = []
    while left:
        part = [left.pop(0)]
        while more := [e for e in left if any((e.variables & p.variables) - query.input for p in part)]:
            part += more
            left = [edge for edge in left if edge not in more]
        found.append(query.restricted(Hypergraph(tuple(part))))
    return found


def _split_points(query: Cqap) -> Iterator[Point]:
    """Some disjoint connected sets of atoms are stored, with what is outside or free; the rest waits for a request."""
    edges = query.hypergraph.edges
    sets = [
        chosen
        for number in range(2, len(edges) + 1)
        for chosen in combinations(edges, number)
        if len(Hypergraph(chosen).components()) == 1
    ]
    yield _split_point(query, ())
    for first in sets:
        yield _split_point(query, (first,))
        for second in sets:
            if not set(first) & set(second) and edges.index(first[0]) < edges.index(second[0]):
                yield _split_point(query, (first, second))


def _split_point(query: Cqap, stored: tuple[tuple[Edge, ...], ...]) -> Point:
    edges = query.hypergraph.edges
    update, space, asked = Fraction(0), Fraction(1), []
    for chosen in stored:
        outside = frozenset().union(*(edge.variables for edge in edges if edge not in chosen))
        schema = Hypergraph(chosen).vertices & (outside | query.free)
        asked.append(schema)
        space = max(space, cover_number(Hypergraph(chosen), schema))
        for edge in chosen:
            rest = frozenset(other.variables for other in chosen if other != edge)
            update = max(update, _walk(rest, frozenset(chosen), edge.variables, schema))
    rest = frozenset([*asked, *(e.variables for e in edges if not any(e in chosen for chosen in stored))])
    if query.output and len(rest) == 1 and not query.variables - query.free and query.input <= min(rest, key=len):
        return Point(update, Fraction(0), space)
    if len(stored) == 1 and len(stored[0]) == len(edges):
        return Point(update, Fraction(0), space)
    return Point(update, _walk(rest, frozenset(edges), query.input, query.output, listed=False), space)


@cache
def _walk(
    joined: frozenset[frozenset[str]],
    bounds: frozenset[Edge],
    fixed: frozenset[str],
    kept: frozenset[str],
    *,
    listed: bool = True,
) -> Fraction:
    """The least exponent at which the variables that are neither fixed nor kept are summed away, in any order. If the
    kept ones need not be `listed`, what rows are read off is found in the same way, without the sums."""
    graph = Hypergraph(tuple(sorted(bounds, key=str)))
    schemas = frozenset(schema - fixed for schema in joined) - {frozenset()}
    return _summed(schemas, graph, kept - fixed, listed)


@cache
def _summed(schemas: frozenset[frozenset[str]], graph: Hypergraph, kept: frozenset[str], listed: bool) -> Fraction:
    left = frozenset().union(*schemas) - kept
    if not left and (listed or not schemas):
        return cover_number(graph, frozenset().union(*schemas))
    found = []
    for variable in left or frozenset().union(*schemas):
        bag = frozenset().union(*(schema for schema in schemas if variable in schema))
        after = frozenset(schema for schema in schemas if variable not in schema) | {bag - {variable}}
        found.append(max(cover_number(graph, bag), _summed(after - {frozenset()}, graph, kept, listed)))
    return min(found)
