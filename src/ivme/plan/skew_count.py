"""Skew-aware plans for counts: queries without free variables (source 000; SEEDS.md).

For each signature the change of one part is joined with the other parts, or with views over several of them that are
stored because that is cheaper; such a view is kept in the same way. A search over all connected sets of atoms finds,
for each signature, which views to store so that no update costs more than it must. For triangles it finds the three
views over a light middle (source 000, Figure 2; in linear space, SEEDS.md); for paths, cycles and Loomis-Whitney
queries the plans of SEEDS.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations

from ivme.plan.blueprint import Blueprint, Definition, Leaf, Node, Propagation, Reading, Rule, View
from ivme.plan.degree import Limit, degree_bound
from ivme.plan.leaves import Leaves
from ivme.plan.parts import Role, part_label, sides_of, signatures, splits_of, with_parts
from ivme.plan.skew_trees import SkewPlan, limits
from ivme.structure.hypergraph import connected_edges

Atoms = frozenset[str]
"""The labels of the parts that a view joins."""


@dataclass(frozen=True, slots=True)
class Delta:
    """How the change of one part reaches a view: the sets of atoms that it is joined with, in order."""

    pieces: tuple[Atoms, ...]
    cost: Fraction


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What it takes to keep a view: for each of its parts a delta, and the greatest cost, that of the views it reads
    included. `views` counts those."""

    cost: Fraction
    views: int
    deltas: Mapping[str, Delta]


class CountSearch:
    """The search for one skew-aware query: `schemas` are the join variables of its parts."""

    def __init__(
        self, schemas: Mapping[str, frozenset[str]], bounds: Mapping[str, frozenset[Limit]], epsilon: Fraction
    ) -> None:
        self._schemas = schemas
        self._bounds = bounds
        self._epsilon = epsilon
        self._goal = max(epsilon, 1 - epsilon)
        self._kept: dict[Atoms, Upkeep] = {}
        self._all = frozenset(schemas)

    def schema(self, atoms: Atoms) -> frozenset[str]:
        """The variables that a view over these atoms shares with the others."""
        outside = frozenset().union(*(self._schemas[label] for label in self._all - atoms))
        if len(atoms) == 1:
            return self._schemas[next(iter(atoms))]
        return frozenset().union(*(self._schemas[label] for label in atoms)) & outside

    def upkeep(self, atoms: Atoms) -> Upkeep:
        """The cheapest way to keep the view over these atoms."""
        if atoms not in self._kept:
            deltas = {label: self._best(label, atoms) for label in sorted(atoms)}
            used = {piece for delta in deltas.values() for piece in delta.pieces if len(piece) > 1}
            below = [self.upkeep(piece) for piece in used]
            cost = max([delta.cost for delta in deltas.values()] + [each.cost for each in below])
            self._kept[atoms] = Upkeep(cost, len(used) + sum(each.views for each in below), deltas)
        return self._kept[atoms]

    def _best(self, label: str, atoms: Atoms) -> Delta:
        """The cheapest delta; of those the one that reads the fewest views."""
        best: tuple[tuple[Fraction, int, Fraction], Delta] | None = None
        for pieces in sorted(self._cuts(atoms - {label}), key=lambda cut: sum(len(piece) > 1 for piece in cut)):
            kept = [self.upkeep(piece) for piece in pieces if len(piece) > 1]
            below = max((each.cost for each in kept), default=Fraction(0))
            if best is not None and below > best[0][0]:
                continue
            for order in permutations(pieces):
                cost = self._cost(label, order, self.schema(atoms))
                rank = (max(cost, below), len(kept) + sum(each.views for each in kept), cost)
                if best is None or rank < best[0]:
                    best = rank, Delta(order, cost)
            if best is not None and best[0][0] <= self._goal:
                break
        assert best is not None
        return best[1]

    def _cuts(self, atoms: Atoms) -> Iterator[tuple[Atoms, ...]]:
        """The ways to cut a set of atoms into single atoms and connected sets."""
        if not atoms:
            yield ()
            return
        first = min(atoms)
        rest = sorted(atoms - {first})
        for mask in range(2 ** len(rest)):
            piece = frozenset([first, *(label for i, label in enumerate(rest) if mask >> i & 1)])
            if len(piece) == 1 or len(connected_edges(self._schemas[label] for label in sorted(piece))) == 1:
                for others in self._cuts(atoms - piece):
                    yield (piece, *others)

    def _cost(self, label: str, order: tuple[Atoms, ...], kept: frozenset[str]) -> Fraction:
        """What joining the pieces one after the other may find for one change; after each what nobody needs is
        summed."""
        fixed = self._schemas[label]
        known, size, cost = fixed, Fraction(0), Fraction(0)
        seen: list[Limit] = list(self._bounds[label])
        for i, piece in enumerate(order):
            mine = [limit for atom in piece for limit in self._bounds[atom]]
            seen += mine
            schema = self.schema(piece)
            size += degree_bound(mine, known, schema, self._epsilon)
            size = min(size, degree_bound(seen, fixed, known | schema, self._epsilon))
            cost = max(cost, size)
            needed = kept.union(*(self.schema(later) for later in order[i + 1 :]))
            known = fixed | ((known | schema) & needed)
            size = min(size, degree_bound(seen, fixed, known, self._epsilon))
        return cost


@dataclass(frozen=True, slots=True)
class Counted:
    """A plan with its update and space exponents."""

    update: Fraction
    space: Fraction
    plan: SkewPlan


def count_plan(name: str, leaves: Leaves, roles: tuple[Role, ...], epsilon: Fraction) -> Counted:
    """The best plan that is split by these roles, for this ε."""
    even = dict.fromkeys((role.partition for role in roles), epsilon)
    sides = {
        label: [sides_of(leaves, label, signature) for signature in signatures(roles)] for label, _ in leaves.sources
    }
    parted = with_parts(leaves, sides)
    result = View(name, (), "result", tuple(label for label, _ in parted.sources))
    views = _Views(leaves, result)
    cost = Fraction(0)
    for signature in signatures(roles):
        labels = {label: part_label(label, sides_of(leaves, label, signature)) for label, _ in leaves.sources}
        schemas = {part: frozenset(views.joined(label)) for label, part in labels.items()}
        bounds = {part: limits(parted, [part]) for part in labels.values()}
        search = CountSearch(schemas, bounds, epsilon)
        cost = max(cost, search.upkeep(frozenset(labels.values())).cost)
        views.take(search, {part: label for label, part in labels.items()})
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
    return Counted(cost, max(Fraction(1), space), SkewPlan(blueprint, followed, roles))


class _Views:
    """The views and rules of all signatures; equal views are one."""

    def __init__(self, leaves: Leaves, result: View) -> None:
        self._leaves = leaves
        self._result = result
        self._rules: dict[str, dict[Rule, None]] = {}
        self._definitions: dict[tuple[View, tuple[Node, ...]], Definition] = {}
        self._named: dict[Atoms, View] = {}

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
            deltas = search.upkeep(atoms).deltas
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

    def _view(self, search: CountSearch, atoms: Atoms) -> View:
        if atoms not in self._named:
            schema = tuple(sorted(search.schema(atoms)))
            self._named[atoms] = View(f"V_{len(self._named) + 1}", schema, "view", tuple(sorted(atoms)))
        return self._named[atoms]

    def all(self) -> Iterable[View]:
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
