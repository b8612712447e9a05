"""Skew-aware plans for counts: queries without free variables (source 000).

For each signature the change of one part is joined with the other parts, or with views over several of them that are
stored because that is cheaper, and maintained in the same way. A search over all connected sets of atoms finds,
for each signature, which views to store so that no update costs more than it must. For triangles it finds the three
views over a light middle (source 000, Figure 2; here in linear space); for paths, cycles and Loomis-Whitney
queries plans of our own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ivme.budget import spend
from ivme.plan.assemble.blueprint import Blueprint, Definition, Leaf, Node, Propagation, Reading, Rule, StoredView
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.order.degree import Limit, degree_bound
from ivme.plan.strategy.skew.parts import Role, part_label, sides_of, signatures, splits_of, with_parts
from ivme.plan.strategy.skew.trees import SkewPlan, limits
from ivme.structure.hypergraph import connected_edges

_UNLIMITED = 1_000_000
"""More than any update costs."""

Atoms = frozenset[str]
"""The labels of the parts that a view joins."""


@dataclass(frozen=True, slots=True)
class Delta:
    """How the change of one part reaches a view: the sets of atoms that it is joined with, in order.

    Costs are exponents, counted in units of 1 over the denominator of ε, of which all are multiples.
    """

    pieces: tuple[Atoms, ...]
    cost: int


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What it takes to keep a view: for each of its parts a delta, and the greatest cost, that of the views it reads
    included. `views` counts those."""

    cost: int
    views: int
    deltas: Mapping[str, Delta]


@dataclass(frozen=True, slots=True)
class PartialJoin:
    """A delta that is joined with the pieces of `order`, and not yet with `rest`: the variables that are known, how
    many values they have, and the greatest number on the way."""

    order: tuple[Atoms, ...]
    rest: tuple[Atoms, ...]
    known: frozenset[str]
    size: int = 0
    cost: int = 0


class CountSearch:
    """The search for all skew-aware queries, which have views in common: `atoms` says which atom each part is of,
    `schemas` its join variables, and `bounds` its limits. Only what costs less than N^`below` is looked at, if that is
    given: most of what costs more is left at its first join."""

    def __init__(
        self,
        atoms: Mapping[str, str],
        schemas: Mapping[str, frozenset[str]],
        bounds: Mapping[str, frozenset[Limit]],
        epsilon: Fraction,
        below: Fraction | None,
    ) -> None:
        self._atoms = atoms
        self._schemas = schemas
        self._bounds = bounds
        self._epsilon = epsilon
        self._goal = max(epsilon.numerator, epsilon.denominator - epsilon.numerator)
        self._limit = ceil(below * epsilon.denominator) if below is not None else _UNLIMITED
        self._kept: dict[Atoms, Upkeep | None] = {}
        self._joins = {atom: schemas[part] for part, atom in atoms.items()}
        self._known_cuts: dict[Atoms, list[tuple[Atoms, ...]]] = {}
        self._connected: dict[Atoms, bool] = {}
        self._shared: dict[Atoms, frozenset[str]] = {}
        self._sizes: dict[tuple[frozenset[str], ...], int] = {}

    def schema(self, atoms: Atoms) -> frozenset[str]:
        """The variables that a view over these atoms shares with the others; all of a single one."""
        if atoms not in self._shared:
            inside = {self._atoms[part] for part in atoms}
            mine = frozenset().union(*(self._schemas[part] for part in atoms))
            others = (schema for part, schema in self._schemas.items() if self._atoms[part] not in inside)
            self._shared[atoms] = mine if len(atoms) == 1 else mine & frozenset().union(*others)
        return self._shared[atoms]

    def upkeep(self, atoms: Atoms) -> Upkeep | None:
        """The cheapest plan that maintains the view over these atoms; None if there is none below the limit."""
        if atoms not in self._kept:
            self._kept[atoms] = self._upkeep(atoms)
        return self._kept[atoms]

    def _upkeep(self, atoms: Atoms) -> Upkeep | None:
        deltas: dict[str, Delta] = {}
        for label in sorted(atoms):
            delta = self._best(label, atoms)
            if delta is None:
                return None
            deltas[label] = delta
        used = {piece for delta in deltas.values() for piece in delta.pieces if len(piece) > 1}
        below = [each for each in map(self.upkeep, used) if each is not None]
        cost = max([delta.cost for delta in deltas.values()] + [each.cost for each in below])
        return Upkeep(cost, len(used) + sum(each.views for each in below), deltas)

    def _best(self, label: str, atoms: Atoms) -> Delta | None:
        """The cheapest delta; of those the one that reads the fewest views. An order of the pieces is left as soon as
        its beginning is no better than what was found."""
        best: tuple[tuple[int, int, int], Delta] | None = None
        for pieces in self._cuts(atoms - {label}):
            views_read = [self.upkeep(piece) for piece in pieces if len(piece) > 1]
            kept = [each for each in views_read if each is not None]
            if len(kept) < len(views_read):
                continue
            below = max((each.cost for each in kept), default=0)
            views = len(kept) + sum(each.views for each in kept)
            waiting = [PartialJoin((), pieces, self._schemas[label])]
            while waiting:
                spend(2)
                begun = waiting.pop()
                rank = (max(begun.cost, below), views, begun.cost)
                if rank[0] < self._limit and (best is None or rank < best[0]):
                    best = best if begun.rest else (rank, Delta(begun.order, begun.cost))
                    waiting += [self._joined(label, begun, piece, self.schema(atoms)) for piece in begun.rest[::-1]]
            if best is not None and best[0][0] <= self._goal:
                break
        return None if best is None else best[1]

    def _cuts(self, parts: Atoms) -> Iterator[tuple[Atoms, ...]]:
        """The ways to cut a set of parts into single ones and connected sets, those with the fewest sets first."""
        named = {self._atoms[part]: part for part in parts}
        for cut in self._atom_cuts(frozenset(named)):
            yield tuple([frozenset([named[atom] for atom in piece]) for piece in cut])

    def _atom_cuts(self, atoms: Atoms) -> list[tuple[Atoms, ...]]:
        """The same for atoms, which do not depend on the sides of their parts."""
        if atoms not in self._known_cuts:
            found = sorted(self._new_cuts(atoms), key=lambda cut: sum(len(piece) > 1 for piece in cut))
            self._known_cuts[atoms] = found
        return self._known_cuts[atoms]

    def _new_cuts(self, atoms: Atoms) -> Iterator[tuple[Atoms, ...]]:
        if not atoms:
            yield ()
            return
        first = min(atoms)
        rest = sorted(atoms - {first})
        for mask in range(2 ** len(rest)):
            spend(2)
            piece = frozenset([first, *(label for i, label in enumerate(rest) if mask >> i & 1)])
            if len(piece) == 1 or self._is_connected(piece):
                for others in self._atom_cuts(atoms - piece):
                    yield (piece, *others)

    def _is_connected(self, atoms: Atoms) -> bool:
        if atoms not in self._connected:
            self._connected[atoms] = len(connected_edges(self._joins[atom] for atom in sorted(atoms))) == 1
        return self._connected[atoms]

    def _joined(self, label: str, begun: PartialJoin, piece: Atoms, kept: frozenset[str]) -> PartialJoin:
        """What joining one more piece may find for one change; afterwards what is not needed is summed away."""
        fixed, schema = self._schemas[label], self.schema(piece)
        rest = tuple(other for other in begun.rest if other is not piece)
        order = (*begun.order, piece)
        seen = frozenset((label,)).union(*order)
        known = begun.known | schema
        size = min(begun.size + self._size(piece, begun.known, schema), self._size(seen, fixed, known))
        if size >= self._limit:  # it is left at once
            return PartialJoin(order, rest, known, size, size)
        left = fixed | (known & kept.union(*map(self.schema, rest)))
        return PartialJoin(order, rest, left, min(size, self._size(seen, fixed, left)), max(begun.cost, size))

    def _size(self, atoms: Atoms, known: frozenset[str], wanted: frozenset[str]) -> int:
        """How many values of the wanted variables the join of some parts has for those of the known ones."""
        question = atoms, known, wanted
        if question not in self._sizes:
            limits = frozenset().union(*(self._bounds[part] for part in atoms))
            size = degree_bound(limits, known, wanted, self._epsilon)
            self._sizes[question] = int(size * self._epsilon.denominator)
        return self._sizes[question]


@dataclass(frozen=True, slots=True)
class Counted:
    """A plan with its update and space exponents."""

    update: Fraction
    space: Fraction
    plan: SkewPlan


def count_plan(
    name: str, leaves: Leaves, roles: tuple[Role, ...], epsilon: Fraction, below: Fraction | None = None
) -> Counted | None:
    """The best plan that is split by these roles, for this ε; None if it has no updates `below` an exponent."""
    even = dict.fromkeys((role.partition for role in roles), epsilon)
    sides = {
        label: [sides_of(leaves, label, signature) for signature in signatures(roles)] for label, _ in leaves.sources
    }
    parted = with_parts(leaves, sides)
    result = StoredView(name, (), "result", tuple(label for label, _ in parted.sources))
    views = _Views(leaves, result)
    atoms = {part_label(label, each): label for label, mine in sides.items() for each in mine}
    schemas = {part: frozenset(views.joined(label)) for part, label in atoms.items()}
    search = CountSearch(atoms, schemas, {part: limits(parted, [part]) for part in atoms}, epsilon, below)
    cost = 0
    for parts in zip(*sides.values(), strict=True):
        labels = {part_label(label, each): label for label, each in zip(sides, parts, strict=True)}
        kept = search.upkeep(frozenset(labels))
        if kept is None:
            return None
        cost = max(cost, kept.cost)
        views.take(search, labels)
    blueprint = Blueprint(
        parted, views.propagations(parted), views.definitions(), Reading((), (result,)), splits=splits_of(roles, even)
    )
    followed = Blueprint(
        parted,
        blueprint.propagations,
        blueprint.definitions,
        blueprint.reading,
        changes=(result,),
        splits=blueprint.splits,
    )
    space = max(
        degree_bound(limits(parted, view.atoms), frozenset(), frozenset(view.schema), epsilon) for view in views.all()
    )
    return Counted(Fraction(cost, epsilon.denominator), max(Fraction(1), space), SkewPlan(blueprint, followed, roles))


class _Views:
    """The views and rules of all signatures; equal views are one."""

    def __init__(self, leaves: Leaves, result: StoredView) -> None:
        self._leaves = leaves
        self._result = result
        self._rules: dict[str, dict[Rule, None]] = {}
        self._definitions: dict[tuple[StoredView, tuple[Node, ...]], Definition] = {}
        self._named: dict[Atoms, StoredView] = {}

    def joined(self, label: str) -> tuple[str, ...]:
        """The variables of an atom that others have, too."""
        others = {v for other, source in self._leaves.sources if other != label for v in source.schema}
        return tuple(variable for variable in self._leaves.source(label).schema if variable in others)

    def take(self, search: CountSearch, originals: Mapping[str, str]) -> None:
        """Adds the plan of one signature."""
        waiting = [frozenset(originals)]
        done: set[Atoms] = set()
        while waiting:
            atoms = waiting.pop()
            if atoms in done:
                continue
            done.add(atoms)
            view = self._result if len(atoms) == len(originals) else self._view(search, atoms)
            kept = search.upkeep(atoms)
            assert kept is not None, "a view that is read is kept"
            deltas = kept.deltas
            for label in sorted(atoms, key=list(originals).index):
                pieces = [self._node(search, piece, originals) for piece in deltas[label].pieces]
                leaf = self._leaf(label, originals)
                self._rules.setdefault(label, {})[Rule(view, leaf, _stages(leaf, pieces))] = None
                waiting += [piece for piece in deltas[label].pieces if len(piece) > 1]
            cheapest = min(sorted(atoms), key=lambda label: deltas[label].cost)
            children = (
                self._leaf(cheapest, originals),
                *(self._node(search, piece, originals) for piece in deltas[cheapest].pieces),
            )
            self._definitions[view, children] = Definition(view, children)

    def _leaf(self, label: str, originals: Mapping[str, str]) -> Leaf:
        return Leaf(label, self.joined(originals[label]))

    def _node(self, search: CountSearch, atoms: Atoms, originals: Mapping[str, str]) -> Node:
        if len(atoms) == 1:
            return self._leaf(next(iter(atoms)), originals)
        return self._view(search, atoms)

    def _view(self, search: CountSearch, atoms: Atoms) -> StoredView:
        if atoms not in self._named:
            schema = tuple(sorted(search.schema(atoms)))
            self._named[atoms] = StoredView(f"V_{len(self._named) + 1}", schema, "view", tuple(sorted(atoms)))
        return self._named[atoms]

    def all(self) -> Iterable[StoredView]:
        return (self._result, *self._named.values())

    def propagations(self, leaves: Leaves) -> tuple[Propagation, ...]:
        """The rules of each part, those of smaller views first."""
        return tuple(
            Propagation(Leaf(label, source.schema), tuple(sorted(self._rules.get(label, {}), key=_size)))
            for label, source in leaves.sources
        )

    def definitions(self) -> tuple[Definition, ...]:
        return tuple(sorted(self._definitions.values(), key=lambda definition: len(definition.view.atoms)))


def _stages(leaf: Leaf, pieces: Sequence[Node]) -> tuple[tuple[Node, ...], ...]:
    """What brings no new variable is joined together with what comes before it: the smaller one of them proposes."""
    stages: list[tuple[Node, ...]] = []
    known = set(leaf.schema)
    for piece in pieces:
        if stages and known.issuperset(piece.schema):
            stages[-1] = (*stages[-1], piece)
        else:
            stages.append((piece,))
        known.update(piece.schema)
    return tuple(stages)


def _size(rule: Rule) -> int:
    return len(rule.view.atoms)
