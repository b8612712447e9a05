"""The supplier database of source 002, Figure 3.1, tuple by tuple: which are good, which are bad, with which marks.

The figure's tables are lost in the text; this is the reconstruction that fits all of it. On every kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.assemble.blueprint import Node, StoredView
from ivme.plan.assemble.mark_blueprint import Marks, shared
from ivme.plan.order.mark_tree import MarkNode
from ivme.plan.strategy.marks import plan_marks
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse
from tests.programs import NativeProgram, Running

SUPPLIED = replace(
    parse_rule("V(S, P) = R1(S, P), R2(S, LEVEL), R3(PROJ, P, LOC), R4(PROJ, BUDGET), R5(PROJ, MGR, LOC)"),
    distinct=True,
)
TABLES: dict[str, list[tuple[Any, ...]]] = {
    "R1": [(3, 8), (9, 17), (19, 18), (20, 18)],
    "R2": [(3, "L"), (9, "L"), (7, "M"), (19, "M")],
    "R3": [(47, 8, "SF"), (55, 8, "LA"), (99, 15, "LA"), (99, 15, "SF"), (60, 17, "NY")],
    "R4": [(47, 90), (55, 40), (70, 50)],
    "R5": [(47, "White", "SF"), (55, "Green", "LA"), (99, "Brown", "LA"), (70, "Black", "DC")],
}
GOOD: set[str] = set()
BAD_AT_FIRST = {
    (9, 17): {"R3"},
    (19, 18): {"R3"},
    (20, 18): {"R2", "R3"},
    (99, 15, "LA"): {"R4"},
    (99, 15, "SF"): {"R4", "R5"},
    (60, 17, "NY"): {"R4", "R5"},
}
Marked = dict[str, dict[tuple[Any, ...], set[str]]]


@pytest.fixture(params=[Interpreter, NativeProgram])
def kernel(request: pytest.FixtureRequest) -> Running:
    running: Running = request.param(plan_with("marks", SUPPLIED).program)
    for relation, rows in TABLES.items():
        running.apply(relation, dict.fromkeys(rows, 1))
    return running


def marked(kernel: Running) -> Marked:
    """For each relation the marks of its tuples: the children whose good-counter is zero for it."""
    drawn = plan_marks(analyse(SUPPLIED))
    marks = Marks(drawn.forest, drawn.leaves)
    found: Marked = {}
    for node in every_node(drawn.forest.roots[0][0]):
        tuples = [key for key, _ in kernel.map(stored(kernel, marks.base(node))).items()]
        found[node.name] = {row: set(lacking(kernel, marks, node, row)) for row in tuples}
    return found


def every_node(node: MarkNode) -> Iterator[MarkNode]:
    yield node
    for child in node.supports:
        yield from every_node(child)


def lacking(kernel: Running, marks: Marks, node: MarkNode, row: tuple[Any, ...]) -> Iterator[str]:
    for child in node.supports:
        key = tuple(row[node.schema.index(variable)] for variable in shared(node, child))
        if kernel.map(stored(kernel, marks.support(child, shared(node, child)))).get(key) is None:
            yield child.name


def stored(kernel: Running, node: Node) -> str:
    """The map that holds a node."""
    if isinstance(node, StoredView):
        return node.name
    label = node.label  # type: ignore[union-attr]
    return next(m.name for m in kernel.program.maps if (m.atoms, set(m.schema)) == ((label,), set(node.schema)))


def bad(kernel: Running) -> dict[tuple[Any, ...], set[str]]:
    return {row: marks for rows in marked(kernel).values() for row, marks in rows.items() if marks}


def answer(kernel: Running) -> set[tuple[Any, ...]]:
    return {row for row, _, _ in kernel.items({})}


def test_the_join_tree_is_the_one_of_the_figure() -> None:
    assert str(plan_marks(analyse(SUPPLIED)).forest) == "R1(R2, R3(R4, R5))"


def test_at_first_two_tuples_of_r3_and_one_of_r1_are_good(kernel: Running) -> None:
    assert BAD_AT_FIRST == bad(kernel)
    assert [(47, 8, "SF"), (55, 8, "LA")] == [row for row, marks in marked(kernel)["R3"].items() if not marks]
    assert {(3, 8)} == answer(kernel)


def test_leaves_have_only_good_tuples(kernel: Running) -> None:
    for relation in ("R2", "R4", "R5"):
        assert dict.fromkeys(TABLES[relation], GOOD) == marked(kernel)[relation]


def test_the_good_counters_are_the_numbers_of_good_tuples(kernel: Running) -> None:
    """Part 8 is needed by two good tuples of R3, part 17 by a bad one only."""
    assert {(8,): 2} == dict(kernel.map("support R3").items())


def test_a_tuple_added_to_the_root_is_good_if_all_children_support_it(kernel: Running) -> None:
    kernel.apply("R1", {(9, 8): 1})
    assert marked(kernel)["R1"][9, 8] == GOOD
    assert {(3, 8), (9, 8)} == answer(kernel)
    kernel.apply("R1", {(7, 99): 1})
    assert {**BAD_AT_FIRST, (7, 99): {"R3"}} == bad(kernel)
    assert {(3, 8), (9, 8)} == answer(kernel)


def test_a_tuple_added_to_a_leaf_takes_marks_off_its_parents(kernel: Running) -> None:
    kernel.apply("R4", {(99, 30): 1})
    expected = {row: marks - {"R4"} if row[0] == 99 else marks for row, marks in BAD_AT_FIRST.items()}
    del expected[99, 15, "LA"]
    assert expected == bad(kernel)
    assert bad(kernel)[99, 15, "SF"] == {"R5"}
    assert {(3, 8)} == answer(kernel)


def test_a_tuple_added_to_an_inner_node_makes_its_parents_good_that_lack_nothing_else(kernel: Running) -> None:
    kernel.apply("R3", {(70, 18, "DC"): 1})
    expected = {row: marks for row, marks in BAD_AT_FIRST.items() if row != (19, 18)}
    expected[20, 18] = {"R2"}
    assert expected == bad(kernel)
    assert {(3, 8), (19, 18)} == answer(kernel)


def test_a_support_that_does_not_reach_zero_stops_a_delete(kernel: Running) -> None:
    """Erratum 7: the list is scanned only if the good-counter became zero."""
    kernel.apply("R5", {(47, "White", "SF"): -1})
    assert {(8,): 1} == dict(kernel.map("support R3").items())
    assert {**BAD_AT_FIRST, (47, 8, "SF"): {"R5"}} == bad(kernel)
    assert {(3, 8)} == answer(kernel)
    kernel.apply("R4", {(55, 40): -1})
    assert {
        **BAD_AT_FIRST,
        (47, 8, "SF"): {"R5"},
        (55, 8, "LA"): {"R4"},
        (3, 8): {"R3"},
    } == bad(kernel)
    assert set() == answer(kernel)


def test_insert_then_delete_leaves_what_was_there(kernel: Running) -> None:
    before = {declared.name: dict(kernel.map(declared.name).items()) for declared in kernel.program.maps}
    added = [("R1", (9, 8)), ("R4", (99, 30)), ("R3", (70, 18, "DC")), ("R1", (7, 99))]
    for relation, row in added:
        kernel.apply(relation, {row: 1})
    for relation, row in added:
        kernel.apply(relation, {row: -1})
    assert before == {declared.name: dict(kernel.map(declared.name).items()) for declared in kernel.program.maps}


def test_a_new_tuple_is_marked_where_the_good_counter_is_zero(kernel: Running) -> None:
    """Erratum 6: as printed, Insert would mark a tuple where it has support."""
    kernel.apply("R3", {(70, 8, "DC"): 1, (70, 8, "NY"): 1})
    assert marked(kernel)["R3"][70, 8, "DC"] == GOOD
    assert marked(kernel)["R3"][70, 8, "NY"] == {"R5"}
