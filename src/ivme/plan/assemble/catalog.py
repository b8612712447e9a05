"""Several views as one: the blueprints of a database, side by side.

Labels and views are qualified by the name of the view they belong to, so that they stay apart; what is equal is
found again by `Storage`, which knows maps by what they hold and not by who requested them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Iteration,
    Leaf,
    Liveness,
    Node,
    Propagation,
    Reading,
    Reference,
    Rule,
    Split,
    StoredView,
    liveness,
)
from ivme.plan.ir.program import Source
from ivme.structure.dependencies import Dependencies


@dataclass(frozen=True, slots=True)
class MapCatalog:
    """The qualified blueprints by view; the empty name stands for a view on its own, whose names are left alone.

    `unrepeated` are the labels of maintained views whose relation occurs once in their query, and at one place only.
    """

    blueprints: Mapping[str, Blueprint]
    sources: Mapping[str, Source]
    definitions: Mapping[StoredView, Definition]
    unrepeated: frozenset[str]
    dependencies: Dependencies

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.sources)

    @property
    def gradual(self) -> bool:
        """Whether keys may be on both sides of a partition for a while."""
        return any(blueprint.gradual for blueprint in self.blueprints.values())

    @property
    def splits(self) -> tuple[Split, ...]:
        """The partitions of all views."""
        return tuple(split for blueprint in self.blueprints.values() for split in blueprint.splits)

    def liveness(self) -> Liveness:
        """What the views need together."""
        each = [liveness(blueprint) for blueprint in self.blueprints.values()]
        views = frozenset(view for alive in each for view in alive.views)
        return Liveness(views, frozenset(node for alive in each for node in alive.stored))

    def propagations(self, relation: str) -> list[Propagation]:
        """The propagations that a change of the relation sets off: the first of every view, then the second, ...

        Within a view they keep their order, on which the versions of self-joins rest.
        """
        ranked = []
        for blueprint in self.blueprints.values():
            mine = () if blueprint.lazy else blueprint.propagations
            affected = [p for p in mine if self.sources[p.use.label].atom.relation == relation]
            ranked += list(enumerate(affected))
        return [propagation for _, propagation in sorted(ranked, key=lambda pair: pair[0])]


def qualifier(view: str) -> str:
    """What the names of a view's own nodes and partitions begin with among those of others."""
    return f"{view}\0" if view else ""


def catalog_of(blueprints: Mapping[str, Blueprint]) -> MapCatalog:
    """The catalog of some views by name.

    What is qualified is told apart by a NUL, which no name has: a view `a` may read `b.R` beside a view `a.b` of R.
    """
    mine = {name: _qualified(blueprint, qualifier(name)) for name, blueprint in blueprints.items()}
    sources = {label: source for blueprint in mine.values() for label, source in blueprint.leaves.sources}
    definitions = {d.view: d for blueprint in mine.values() for d in blueprint.definitions}
    unrepeated = frozenset(label for blueprint in mine.values() for label in _unrepeated(blueprint))
    dependencies = Dependencies(tuple(each for b in mine.values() for each in b.leaves.dependencies.all))
    return MapCatalog(mine, sources, definitions, unrepeated, dependencies)


def _unrepeated(blueprint: Blueprint) -> list[str]:
    relations = Counter(source.atom.relation for _, source in blueprint.leaves.sources)
    once = [label for label, source in blueprint.leaves.sources if relations[source.atom.relation] == 1]
    indicated = [p.use for p in blueprint.propagations if isinstance(p.use, IndicatorLeaf)]
    placed = {use.label for use in indicated if use.place}
    spread = {label for label in placed if sum(use.label == label for use in indicated) > 1}
    return [] if blueprint.lazy else [label for label in once if label not in spread]


def qualified(node: Node, name: str) -> Node:
    """A node of a view's blueprint as the catalog knows it, by the name of the view."""
    return _node(node, qualifier(name))


def _view(old: StoredView, prefix: str) -> StoredView:
    indicators = tuple([(prefix + label, schema) for label, schema in old.indicators])
    atoms = tuple([prefix + label for label in old.atoms])
    return StoredView(prefix + old.name, old.schema, old.role, atoms, indicators, old.counted)


def _leaf(old: Leaf | IndicatorLeaf, prefix: str) -> Leaf | IndicatorLeaf:
    if isinstance(old, Leaf):
        return Leaf(prefix + old.label, old.schema)
    return IndicatorLeaf(prefix + old.label, old.schema, old.place)


def _node(old: Node, prefix: str) -> Node:
    if isinstance(old, Reference):
        inner = _view(old.node, prefix) if isinstance(old.node, StoredView) else _leaf(old.node, prefix)
        return Reference(inner, old.schema, old.payload)
    return _view(old, prefix) if isinstance(old, StoredView) else _leaf(old, prefix)


def _qualified(blueprint: Blueprint, prefix: str) -> Blueprint:
    if not prefix:
        return blueprint

    known: dict[int, StoredView] = {}
    """Views by their identity: each is at many places."""

    def view(old: StoredView) -> StoredView:
        if id(old) not in known:
            known[id(old)] = _view(old, prefix)
        return known[id(old)]

    def leaf(old: Leaf | IndicatorLeaf) -> Leaf | IndicatorLeaf:
        return _leaf(old, prefix)

    def node(old: Node) -> Node:
        return view(old) if isinstance(old, StoredView) else _node(old, prefix)

    def staged(old: tuple[tuple[Node, ...], ...]) -> tuple[tuple[Node, ...], ...]:
        return tuple([tuple(map(node, stage)) for stage in old])

    def rule(old: Rule) -> Rule:
        return Rule(view(old.view), node(old.origin), staged(old.stages))

    def read(old: Reading) -> Reading:
        return Reading(
            tuple(Iteration(node(iteration.node), iteration.new) for iteration in old.iterations),
            tuple(map(node, old.factors)),
            tuple((function, variable, node(n)) for function, variable, n in old.extremes),
            tuple(tuple(Iteration(node(each.node), each.new) for each in guard) for guard in old.guards),
            staged(old.answer),
            staged(old.probe),
            tuple(replace(piece, stages=staged(piece.stages)) for piece in old.pieces),
        )

    def parted(old: Source) -> Source:
        return replace(old, part=tuple(replace(side, partition=prefix + side.partition) for side in old.part))

    sources = tuple((prefix + label, parted(source)) for label, source in blueprint.leaves.sources)
    return replace(
        blueprint,
        leaves=replace(blueprint.leaves, sources=sources, dependencies=blueprint.leaves.dependencies.prefixed(prefix)),
        propagations=tuple(Propagation(leaf(p.use), tuple(map(rule, p.rules))) for p in blueprint.propagations),
        definitions=tuple(
            Definition(view(d.view), tuple(map(node, d.children)), staged(d.stages)) for d in blueprint.definitions
        ),
        reading=read(blueprint.reading),
        changes=tuple(map(view, blueprint.changes)),
        splits=tuple(replace(split, name=prefix + split.name) for split in blueprint.splits),
        branches=tuple(map(read, blueprint.branches)),
        gathered=tuple(replace(each, reading=read(each.reading)) for each in blueprint.gathered),
    )
