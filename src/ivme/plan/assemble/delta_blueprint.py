"""Blueprints of the strategies that store the result flat and join deltas with tables or views.

The delta of a query for an atom r is δr joined with the rest of the body. Once δr is given, the rest falls apart
into parts that share no variable outside r; each part can be joined, and summed, on its own. `classical` joins the
part's atoms on the fly, variable by variable where that is cheaper (`elimination`); `recursive` stores each part as a
view, maintained in the same way (source 000, section 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ivme.budget import spend
from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    Iteration,
    Leaf,
    Node,
    Propagation,
    Reading,
    Rule,
    StoredView,
)
from ivme.plan.assemble.elimination import Residuals, Stages, Start
from ivme.plan.assemble.leaves import Leaves
from ivme.query.model import Query
from ivme.structure.analysis import ordered_reads
from ivme.structure.hypergraph import connected_edges

MOST_VIEWS = 200
"""How many views `recursive` may need before it is refused: it stores up to one for each connected part."""


def classical_blueprint(query: Query, leaves: Leaves, ordered: str | None, *, at_once: bool = False) -> Blueprint:
    """First-order deltas for the result, or for the groups of one ordered variable; each by variable elimination, or,
    with `at_once`, by one join of each part."""
    labels = tuple(label for label, _ in leaves.sources)
    result = result_node(query, leaves, ordered)
    residuals = Residuals(leaves)
    propagations, definitions = [], []
    for label in labels:
        parts = _parts(leaves, set(labels) - {label}, set(leaves.source(label).schema))
        groups = _by_output(leaves, parts, result)
        given: Stages = tuple(tuple(_whole(leaves, part) for part in group) for group in groups)
        stages = given if at_once else residuals.eliminated(given, _changed(leaves, label), result.schema)
        rules = (Rule(result, _whole(leaves, label), stages),) if isinstance(result, StoredView) else ()
        propagations.append(Propagation(_whole(leaves, label), rules))
    if isinstance(result, StoredView):
        whole = tuple(_whole(leaves, label) for label in labels)
        stages = () if at_once else residuals.eliminated((whole,), Start(), result.schema)
        definitions.append(Definition(result, whole, stages if len(stages) > 1 else ()))
    return Blueprint(leaves, tuple(propagations), tuple(definitions), _reading(query, result, ordered))


def recursive_blueprint(query: Query, leaves: Leaves, ordered: str | None) -> Blueprint:
    """Higher-order deltas: every part of a delta that the change does not touch is a view of its own."""
    labels = tuple(label for label, _ in leaves.sources)
    result = result_node(query, leaves, ordered)
    views = _Views(leaves, "" if ordered is None else f"[{ordered}]")
    rules: dict[str, list[Rule]] = {label: [] for label in labels}
    definitions: list[Definition] = []
    for view in views.closure(result):
        for label in view.atoms:
            parts = views.parts(view, label)
            rules[label].append(Rule(view, _whole(leaves, label), tuple((part,) for part in parts)))
        first = view.atoms[0]
        definitions.append(Definition(view, (_whole(leaves, first), *views.parts(view, first))))
    definitions.sort(key=lambda definition: len(definition.view.atoms))
    propagations = tuple(Propagation(_whole(leaves, label), tuple(rules[label])) for label in labels)
    return Blueprint(leaves, propagations, tuple(definitions), _reading(query, result, ordered))


class _Views:
    """The views of the recursive strategy, by the atoms they join and the variables they keep."""

    def __init__(self, leaves: Leaves, suffix: str) -> None:
        self._leaves = leaves
        self._suffix = suffix
        self._names: dict[tuple[tuple[str, ...], tuple[str, ...]], str] = {}

    def closure(self, result: Node) -> Iterator[StoredView]:
        """The result and every view that its deltas need, and theirs."""
        found: dict[StoredView, None] = {}
        waiting = [result]
        while waiting:
            view = waiting.pop()
            if isinstance(view, StoredView) and view not in found:
                found[view] = None
                waiting += [part for label in view.atoms for part in self.parts(view, label)]
            if len(found) > MOST_VIEWS:
                raise PlanError(
                    f"strategy 'recursive' would store more than {MOST_VIEWS} views for this query; "
                    "use strategy 'view-tree', or leave the choice to ivme"
                )
        return iter(found)

    def parts(self, view: StoredView, label: str) -> tuple[Node, ...]:
        """What δview joins with δlabel: one node for each part of the rest, parts without output first."""
        spend(5 * len(view.atoms))
        fixed = set(self._leaves.source(label).schema)
        groups = _parts(self._leaves, set(view.atoms) - {label}, fixed)
        kept = fixed | set(view.schema)
        return tuple(self._node(group, kept) for group in _by_output(self._leaves, groups, view))

    def _node(self, labels: tuple[str, ...], kept: set[str]) -> Node:
        variables = dict.fromkeys(v for label in labels for v in self._leaves.source(label).schema)
        schema = tuple(variable for variable in variables if variable in kept)
        if len(labels) == 1:
            return Leaf(labels[0], schema)
        count = sum(1 for atoms, _ in self._names if atoms == labels)
        name = "V_" + "".join(labels) + (f".{count + 1}" if count else "") + self._suffix
        return StoredView(self._names.setdefault((labels, schema), name), schema, "view", labels)


def result_node(query: Query, leaves: Leaves, ordered: str | None) -> Leaf | StoredView:
    """The node that holds the result flat, or the groups of one ordered variable."""
    labels = tuple(label for label, _ in leaves.sources)
    schema = query.free if ordered is None else (*query.free, ordered)
    if len(labels) == 1:
        mine = leaves.source(labels[0]).schema
        return Leaf(labels[0], tuple(variable for variable in mine if variable in schema))
    return StoredView(query.name if ordered is None else f"{query.name}[{ordered}]", schema, "result", labels)


def _whole(leaves: Leaves, label: str) -> Leaf:
    return Leaf(label, leaves.source(label).schema)


def _changed(leaves: Leaves, label: str) -> Start:
    return Start(frozenset(leaves.source(label).schema), label)


def _parts(leaves: Leaves, labels: Iterable[str], fixed: set[str]) -> list[tuple[str, ...]]:
    """The atoms grouped by what they share besides the fixed variables, in the order of the query."""
    ordered = [label for label, _ in leaves.sources if label in set(labels)]
    groups = connected_edges(frozenset(leaves.source(label).schema) - fixed for label in ordered)
    return [tuple(ordered[i] for i in group) for group in groups]


def _by_output(leaves: Leaves, parts: list[tuple[str, ...]], view: Node) -> list[tuple[str, ...]]:
    """Parts that bring no variable of the view first: they only scale or cut the delta."""
    kept = set(view.schema)
    return sorted(parts, key=lambda part: any(kept & set(leaves.source(label).schema) for label in part))


def _reading(query: Query, result: Node, ordered: str | None) -> Reading:
    if ordered is None:
        return Reading((Iteration(result, query.output),) if query.output else (), (result,))
    return Reading((), (), tuple((function, ordered, result) for function in ordered_reads(query, ordered)))
