"""What a strategy decides, before it is turned into steps: which views exist and how changes reach them.

Every strategy is a `Blueprint`. Its nodes are leaves (an atom, possibly summed to fewer variables), indicators
and views; a `Rule` says how the delta of one node becomes the delta of a view; a `Propagation` lists the rules
that a change of one leaf or indicator sets off, in order; a `Definition` says how a view is built from nothing.
`assemble` turns it into a `Program`: it shares equal leaves, chooses indexes, orders the joins, and leaves out
whatever is not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from ivme.budget import spend
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.ir.program import Source


@dataclass(frozen=True, slots=True)
class Leaf:
    """The atom `label`, its payloads summed to the variables of `schema`."""

    label: str
    schema: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndicatorLeaf:
    """The indicator projection of the atom `label` to the variables of `schema` (Definition 4.5).

    `place` tells apart the uses of one projection at several places: they are propagated one after the other.
    """

    label: str
    schema: tuple[str, ...]
    place: int = 0


@dataclass(frozen=True, slots=True)
class StoredView:
    """A view: the join of the atoms below, filtered by the indicators below, summed to `schema`.

    With `counted`, multiplicities are forgotten: an entry is the number of distinct tuples over these variables
    that the join has. Where they are more than the schema's, the view is a support: it passes on only which of its
    entries appear or disappear, and is read for presence.
    """

    name: str
    schema: tuple[str, ...]
    role: str
    atoms: tuple[str, ...]
    indicators: tuple[tuple[str, tuple[str, ...]], ...] = ()
    counted: tuple[str, ...] | None = None

    @property
    def is_support(self) -> bool:
        return self.counted is not None and len(self.counted) > len(self.schema)


@dataclass(frozen=True, slots=True)
class Reference:
    """A node under other names for its variables (`schema`, in the order of the node's own), or for presence only."""

    node: Leaf | IndicatorLeaf | StoredView
    schema: tuple[str, ...]
    payload: bool = True


Node = Leaf | IndicatorLeaf | StoredView | Reference


def referred(node: Node) -> Leaf | IndicatorLeaf | StoredView:
    """The node behind a reference."""
    return node.node if isinstance(node, Reference) else node


def only_presence(node: Node) -> bool:
    """Whether a node passes on, and is read for, presence only: an indicator, or the support of a view."""
    inner = referred(node)
    return isinstance(inner, IndicatorLeaf) or (isinstance(inner, StoredView) and inner.is_support)


@dataclass(frozen=True, slots=True)
class Rule:
    """δview := δorigin ⋈ siblings, summed to the view's schema.

    `stages` groups the siblings: after each stage the variables that are no longer needed are summed away.
    """

    view: StoredView
    origin: Node
    stages: tuple[tuple[Node, ...], ...]

    @property
    def siblings(self) -> tuple[Node, ...]:
        return tuple([sibling for stage in self.stages for sibling in stage])


@dataclass(frozen=True, slots=True)
class Propagation:
    """The rules that a change of `use` sets off."""

    use: Leaf | IndicatorLeaf
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """view := the join of the children, summed to the view's schema.

    With `stages` the children are joined in these, beginning with the first; after each one the variables that nothing
    needs any more are summed away.
    """

    view: StoredView
    children: tuple[Node, ...]
    stages: tuple[tuple[Node, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Iteration:
    """Where an iterator gets the `new` variables from, or checks the known ones."""

    node: Node
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PieceRule:
    """Part of the rows of a request: tuples over the outputs `schema`, by stages of their own; see `pieces`.

    `parent` is the number of the piece that it hangs below, -1 for the first. If it `follows`, it begins with the
    distinct tuples of its parent over what they have in common, otherwise with the inputs alone.
    """

    schema: tuple[str, ...]
    stages: tuple[tuple[Node, ...], ...]
    parent: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows are read off the nodes: iterators, factors of the payload, ordered groups.

    `guards` are the iterators of components that come after others: unless each of them finds something, there are no
    rows, and to find that out at the end would take as long as all of the others. With an `answer` there are no
    iterators: a request is joined with its stages as a change is with those of a rule, and given rows with those of the
    `probe`. With `pieces` in its place, rows are the join of these.
    """

    iterations: tuple[Iteration, ...]
    factors: tuple[Node, ...]
    extremes: tuple[tuple[str, str, Node], ...] = ()
    guards: tuple[tuple[Iteration, ...], ...] = ()
    answer: tuple[tuple[Node, ...], ...] = ()
    probe: tuple[tuple[Node, ...], ...] = ()
    pieces: tuple[PieceRule, ...] = ()

    @property
    def asked(self) -> Iterator[Node]:
        """What requests and given rows are joined with."""
        stages = (*self.answer, *self.probe, *(stage for piece in self.pieces for stage in piece.stages))
        return (node for stage in stages for node in stage)


@dataclass(frozen=True, slots=True)
class Gathered:
    """An ordered variable whose values are found at requests, by the answer and the probe of a reading of its own;
    `functions` are what is read of them."""

    variable: str
    functions: tuple[str, ...]
    reading: Reading


@dataclass(frozen=True, slots=True)
class Split:
    """A heavy/light partition that the leaves' sources refer to by name; its threshold is M^ε."""

    name: str
    key: tuple[str, ...]
    epsilon: Fraction


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A strategy's decisions for one view; `definitions` come bottom-up, `propagations` in the order of the atoms.

    `changes` are views that are not stored: their deltas are the changes of the result, over the inputs, the outputs
    and an ordered variable, if there is one. With `splits` the leaves are parts of relations; with `branches`, which
    replace `reading`, rows are found in several trees, and no row in two of them if they are `disjoint`. With `gradual`
    keys may be on both sides of a partition at a time, because every combination of parts has its rules. What is
    `gathered` belongs to a branch that answers requests.
    """

    leaves: Leaves
    propagations: tuple[Propagation, ...]
    definitions: tuple[Definition, ...]
    reading: Reading
    lazy: bool = False
    changes: tuple[StoredView, ...] = ()
    splits: tuple[Split, ...] = ()
    branches: tuple[Reading, ...] = ()
    disjoint: bool = False
    gradual: bool = False
    gathered: tuple[Gathered, ...] = ()

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Everything that is read."""
        return (self.reading, *self.branches, *(each.reading for each in self.gathered))

    def source(self, label: str) -> Source:
        return self.leaves.source(label)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all atoms, in the order of the query."""
        return tuple([label for label, _ in self.leaves.sources])


def combine(first: Blueprint, second: Blueprint) -> Blueprint:
    """Both blueprints as one; only the ordered groups of the second are read."""
    spend(len(first.propagations))
    merged = [
        Propagation(propagation.use, propagation.rules + _rules(second, propagation.use))
        for propagation in first.propagations
    ]
    uses = {propagation.use for propagation in first.propagations}
    merged += [propagation for propagation in second.propagations if propagation.use not in uses]
    merged.sort(key=lambda use: (first.labels.index(use.use.label), isinstance(use.use, IndicatorLeaf)))
    extremes = first.reading.extremes + second.reading.extremes
    return replace(
        first,
        propagations=tuple(merged),
        definitions=first.definitions + second.definitions,
        reading=replace(first.reading, extremes=extremes),
        changes=first.changes + second.changes,
    )


def _rules(blueprint: Blueprint, use: Leaf | IndicatorLeaf) -> tuple[Rule, ...]:
    return next((propagation.rules for propagation in blueprint.propagations if propagation.use == use), ())


@dataclass(frozen=True, slots=True)
class Liveness:
    """Which views must be computed when something changes, and which nodes must be stored to be read."""

    views: frozenset[StoredView]
    stored: frozenset[Leaf | IndicatorLeaf | StoredView]


def liveness(blueprint: Blueprint) -> Liveness:
    """Starts from what readers need and follows the rules and definitions back; everything else is left out."""
    stored: set[Leaf | IndicatorLeaf | StoredView] = set()
    for reading in blueprint.readings:
        stored |= {referred(iteration.node) for iteration in reading.iterations}
        stored |= {referred(node) for node in reading.factors}
        stored |= {referred(node) for _, _, node in reading.extremes}
        stored |= set(map(referred, reading.asked))
    live: set[StoredView] = set(blueprint.changes)
    rules = [rule for propagation in blueprint.propagations for rule in propagation.rules]
    size = -1
    while size != len(live) + len(stored):
        spend(len(rules))
        size = len(live) + len(stored)
        live |= {node for node in stored if isinstance(node, StoredView)}
        stored |= {view for view in live if view.is_support}
        for rule in rules:
            if rule.view in live:
                stored.update(referred(sibling) for sibling in rule.siblings)
                live.update([rule.origin] if isinstance(rule.origin, StoredView) else [])
        for definition in blueprint.definitions:
            if definition.view in live and len(definition.children) > 1:
                stored.update(referred(child) for child in definition.children)
            elif definition.view in live:
                live.update(child for child in definition.children if isinstance(child, StoredView))
    return Liveness(frozenset(live), frozenset(stored))
