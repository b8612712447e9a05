"""The interpreter: what each step does, failures that leave no trace, lazy programs, counted operations."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from ivme.engine.reference.interpreter import Interpreter, Overlay, PureKernel, accumulate, picker
from ivme.errors import DataError
from ivme.plan.ir import program as ir
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from tests.counting import COUNTING
from tests.invariants import check_indexes

EVERY = pytest.mark.parametrize("strategy", COUNTING)
NOTHING = ir.Enumeration((), (), (), (), ())
BY_A, BY_B = ir.Index((0,), (1,)), ir.Index((1,), (0,))


def sources(text: str) -> tuple[tuple[str, ir.Source], ...]:
    return plan_with("classical", parse_rule(text)).program.sources


def running(*steps: ir.Step, **contents: dict[Any, Any]) -> Interpreter:
    """A program with one trigger, on R(A, B), and maps S(A, B), indexed both ways, and OUT as wide as need be."""
    maps = (
        ir.Map("S", ("A", "B"), "leaf", Fraction(1), indexes=(BY_A, BY_B, ir.Index((), (0,)))),
        ir.Map("OUT", ("A", "B"), "view", Fraction(1)),
    )
    ((_, source),) = sources("Q(A, B) = R(A, B)")
    load = ir.Load("d1", source)
    kernel = Interpreter(ir.Program((("R", source),), maps, (ir.Trigger("R", (load, *steps)),), (), NOTHING))
    for name, entries in contents.items():
        kernel.map(name).add_all(entries)
    return kernel


def out(kernel: Interpreter, changes: dict[Any, int]) -> dict[Any, Any]:
    kernel.apply("R", changes)
    return dict(kernel.map("OUT").items())


ADD = ir.Add("d2", "OUT")
CHANGES = {(1, 1): 2, (1, 2): 3, (2, 2): -1}


def test_project_sums_payloads_and_drops_what_cancels() -> None:
    project = ir.Project("d2", "d1", ("B",))
    assert out(running(project, ADD), CHANGES) == {(1,): 2, (2,): 2}
    assert out(running(project, ADD), {(1, 1): 2, (1, 2): 3, (2, 2): -3}) == {(1,): 2}


def test_project_may_reorder_columns() -> None:
    assert out(running(ir.Project("d2", "d1", ("B", "A")), ADD), CHANGES) == {(1, 1): 2, (2, 1): 3, (2, 2): -1}


def test_rename_changes_names_only() -> None:
    kernel = running(ir.Rename("d2", "d1", ("X", "Y")), ir.Project("d3", "d2", ("Y",)), ir.Add("d3", "OUT"))
    assert out(kernel, CHANGES) == {(1,): 2, (2,): 2}


def test_scan_takes_all_entries_with_their_payloads_or_as_ones() -> None:
    entries = {(1, 2): 5, (3, 4): -2}
    assert entries == out(running(ir.Scan("d2", "S", ("A", "B")), ADD, S=entries), {})
    assert out(running(ir.Scan("d2", "S", ("A", "B"), indicator=True), ADD, S=entries), {}) == {(1, 2): 1, (3, 4): 1}


def test_a_join_with_nothing_new_looks_up_and_multiplies() -> None:
    step = ir.Join("d2", "d1", (ir.Read("S", ("A", "B")),), ("A", "B"), Fraction(0))
    assert out(running(step, ADD, S={(1, 1): 7, (2, 2): 5, (9, 9): 1}), CHANGES) == {(1, 1): 14, (2, 2): -5}


def test_a_read_without_payload_only_asks_for_presence() -> None:
    step = ir.Join("d2", "d1", (ir.Read("S", ("A", "B"), payload=False),), ("A", "B"), Fraction(0))
    assert out(running(step, ADD, S={(1, 1): 7}), CHANGES) == {(1, 1): 2}


def test_a_join_with_new_variables_extends_by_all_matches_of_all_reads() -> None:
    """C with S(B, C) and S(A, C): the two reads intersect."""
    reads = (ir.Read("S", ("B", "C")), ir.Read("S", ("A", "C")))
    steps = (ir.Join("d2", "d1", reads, ("A", "B", "C"), Fraction(1)), ADD)
    entries = {(1, 5): 2, (1, 6): 1, (2, 5): 3, (2, 7): 1}
    assert out(running(*steps, S=entries), {(1, 2): 3}) == {(1, 2, 5): 18}


def test_a_join_reads_columns_by_their_variables_whatever_their_order() -> None:
    step = ir.Join("d2", "d1", (ir.Read("S", ("C", "B")),), ("A", "B", "C"), Fraction(1))
    assert out(running(step, ADD, S={(8, 2): 4, (2, 8): 1}), {(1, 2): 3}) == {(1, 2, 8): 12}


def test_two_new_variables_come_in_the_order_of_the_schema() -> None:
    step = ir.Join("d2", "d1", (ir.Read("S", ("C", "D")),), ("A", "B", "D", "C"), Fraction(1))
    assert out(running(step, ADD, S={(7, 8): 1}), {(1, 2): 3}) == {(1, 2, 8, 7): 3}


def test_a_projection_read_tells_whether_some_entry_goes_with_the_key() -> None:
    reads = (ir.Read("S", ("C", "B")), ir.Read("S", ("C", None), payload=False))
    step = ir.Join("d2", "d1", reads, ("A", "B", "C"), Fraction(1))
    assert out(running(step, ADD, S={(8, 2): 1, (9, 3): 1}), {(1, 2): 3}) == {(1, 2, 8): 3}


@pytest.mark.parametrize(("large", "small"), [("B", "A"), ("A", "B")])
def test_the_read_with_the_fewest_matches_is_iterated(large: str, small: str) -> None:
    """One side has 100 matches and the other 1: the work does not see the 100, whichever comes first."""
    reads = (ir.Read("S", (large, "C")), ir.Read("S", (small, "C")))
    steps = (ir.Join("d2", "d1", reads, ("A", "B", "C"), Fraction(1)), ADD)
    kernel = running(*steps, S={(1, 5): 1, **{(2, c): 1 for c in range(100)}})
    before = kernel.operations
    kernel.apply("R", {(1, 2): 1})
    assert dict(kernel.map("OUT").items()) == {(1, 2, 5): 1}
    assert kernel.operations - before < 10


def test_exists_gives_plus_one_where_an_entry_will_appear_and_minus_one_where_it_will_go() -> None:
    step = ir.Exists("d2", "d1", "S", ("A", "B"))
    entries = {(1, 1): 3, (2, 2): 3}
    changes = {(1, 1): -3, (2, 2): -2, (3, 3): 5, (4, 4): -1}
    assert out(running(step, ADD, S=entries), changes) == {(1, 1): -1, (3, 3): 1, (4, 4): 1}


def test_exists_looks_at_counts_and_not_at_sums() -> None:
    kernel = running(ir.Scan("d3", "OUT", ("A", "B")), ir.Exists("d2", "d3", "S", ("A", "B")), ir.Add("d2", "OUT"))
    kernel.map("S").add_all({(1, 1): (1, 5), (2, 2): (1, 0)})
    delta = kernel.kernel._presence({(1, 1): (-1, 0), (2, 2): (0, 7), (3, 3): (1, 0), (4, 4): (0, 9)}, kernel.map("S"))
    assert delta == {(1, 1): -1, (3, 3): 1}


def test_filter_routes_by_presence_of_the_key() -> None:
    read = ir.Read("S", ("B", "A"), payload=False)
    entries = {(2, 1): 1}
    assert out(running(ir.Filter("d2", "d1", read, True, ("A", "B")), ADD, S=entries), CHANGES) == {(1, 2): 3}
    rest = out(running(ir.Filter("d2", "d1", read, False, ("A", "B")), ADD, S=entries), CHANGES)
    assert rest == {(1, 1): 2, (2, 2): -1}


def test_a_pending_read_sees_the_map_and_the_delta() -> None:
    """S = {(2, 5): 1, (2, 6): 4, (2, 7): 1} with δ = {(2, 5): 2, (2, 6): -4, (2, 8): 9} pending."""
    kernel = running(S={(2, 5): 1, (2, 6): 4, (2, 7): 1})
    overlay = Overlay(kernel.map("S"), {(2, 5): 2, (2, 6): -4, (2, 8): 9, (3, 3): 1})
    assert [overlay.get((2, b)) for b in (5, 6, 7, 8)] == [3, None, 1, 9]
    assert overlay.get((7, 7)) is None
    assert sorted([(5,), (6,), (7,), (8,)]) == sorted(overlay.matches(BY_A, (2,)))
    assert overlay.size(BY_A, (2,)) >= 4
    assert overlay.supports(BY_A, (3,), (3,))
    assert not overlay.supports(BY_A, (3,), (4,))


def test_a_pending_join_equals_a_join_after_the_add() -> None:
    read, schema = ("B", "C"), ("A", "B", "C")
    pending = ir.Join("d2", "d1", (ir.Read("S", read, pending="d1"),), schema, Fraction(1))
    later = ir.Join("d2", "d1", (ir.Read("S", read),), schema, Fraction(1))
    entries = {(1, 1): -2, (1, 5): 1, (2, 1): 2}
    expected = out(running(ir.Add("d1", "S"), later, ADD, S=entries), CHANGES)
    assert expected == out(running(pending, ADD, S=entries), CHANGES)
    assert expected


def test_accumulating_drops_an_entry_whose_payload_is_all_zero() -> None:
    delta: dict[Any, Any] = {}
    accumulate(delta, (1,), (1, 5))
    accumulate(delta, (1,), (-1, 0))
    assert delta == {(1,): (0, 5)}
    accumulate(delta, (1,), (0, -5))
    assert delta == {}


def test_a_picker_takes_columns_by_name() -> None:
    assert picker(("A", "B"), ())((1, 2)) == ()
    assert picker(("A", "B"), ("B",))((1, 2)) == (2,)
    assert picker(("A", "B"), ("B", "A"))((1, 2)) == (2, 1)


# Failures


def contents(kernel: Interpreter) -> dict[str, dict[Any, Any]]:
    return {declared.name: dict(kernel.map(declared.name).items()) for declared in kernel.program.maps}


def unchanged(before: dict[str, dict[Any, Any]], kernel: Interpreter) -> bool:
    for declared in kernel.program.maps:
        check_indexes(kernel.map(declared.name))
    return before == contents(kernel)


def dividing() -> Query:
    """Every way in which a row may fail to load: in a predicate, and in a column that is summed."""
    tables = [table("r", {"a": "int", "b": "int"}), table("s", {"a": "int", "c": "int"})]
    return parse_sql(
        "SELECT r.a, SUM(10 / s.c) AS total, MIN(s.c) AS least FROM r JOIN s ON r.a = s.a GROUP BY r.a", tables
    )


@EVERY
def test_a_row_that_cannot_be_computed_in_mid_batch_changes_nothing(strategy: str) -> None:
    query = dividing()
    kernel = Interpreter(plan_with(strategy, query).program)
    kernel.build({"r": {(1, 1): 1, (2, 1): 1}, "s": {(1, 5): 1, (2, 2): 3}})
    answers = list(kernel.items({}))
    before = contents(kernel)
    with pytest.raises(DataError, match="fails: "):
        kernel.apply("s", {(1, 5): -1, (2, 4): 1, (1, 0): 1, (3, 1): 1})
    assert unchanged(before, kernel)
    assert answers == list(kernel.items({}))


class InjectedError(Exception):
    """Stands for whatever may go wrong in mid-trigger."""


@EVERY
def test_an_exception_at_any_step_of_a_trigger_rolls_back(strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The k-th step that makes a delta fails, for every k; then the same change goes through."""
    query = parse_rule("Q(A, SUM(X), MIN(B)) = E(A, B, X), E(B, A, Y), F(B)")
    kernel = Interpreter(plan_with(strategy, query).program)
    kernel.build({"E": {(1, 2, 5): 1, (2, 1, 7): 2, (3, 3, 1): 1}, "F": {(1,): 1, (2,): 1}})
    list(kernel.items({}))
    before = contents(kernel)
    changes = {(1, 2, 5): -1, (1, 1, 4): 2, (2, 2, 9): 1, (1, 2, 6): 1}
    steps = [step for step in kernel.program.trigger("E").steps if not isinstance(step, ir.Add)]
    real = PureKernel._delta
    for failing in steps:

        def injected(self: PureKernel, step: Any, *rest: Any, failing: ir.Step = failing) -> Any:
            if step is failing:
                raise InjectedError
            return real(self, step, *rest)

        monkeypatch.setattr(PureKernel, "_delta", injected)
        with pytest.raises(InjectedError):
            kernel.apply("E", changes)
        assert unchanged(before, kernel)
    monkeypatch.setattr(PureKernel, "_delta", real)
    kernel.apply("E", changes)
    assert before != contents(kernel)


@EVERY
def test_a_build_that_fails_leaves_the_maps_empty(strategy: str) -> None:
    kernel = Interpreter(plan_with(strategy, dividing()).program)
    with pytest.raises(DataError):
        kernel.build({"r": {(1, 1): 1}, "s": {(1, 5): 1, (1, 0): 1}})
    assert {0} == {len(entries) for entries in contents(kernel).values()}


# Lazy programs


def test_a_lazy_program_builds_its_views_once_before_the_next_read() -> None:
    query = parse_rule("Q(. | .) = R(A, B), S(B, C)")
    kernel = Interpreter(plan_with("recompute", query).program)
    kernel.apply("R", {(1, 2): 3})
    kernel.apply("S", {(2, 4): 5})
    views = [declared.name for declared in kernel.program.maps if declared.role not in ("leaf", "support")]
    assert {0} == {len(kernel.map(name)) for name in views}
    assert list(kernel.items({})) == [((), 15, ())]
    before = kernel.operations
    assert list(kernel.items({})) == [((), 15, ())]
    assert kernel.operations - before <= 2
    kernel.apply("S", {(2, 4): -4})
    assert list(kernel.items({})) == [((), 3, ())]


def test_the_views_of_a_program_that_is_not_lazy_are_there_without_a_read() -> None:
    kernel = Interpreter(plan_with("classical", parse_rule("Q(. | .) = R(A, B), S(B, C)")).program)
    kernel.apply("R", {(1, 2): 3})
    kernel.apply("S", {(2, 4): 5})
    assert dict(kernel.map("Q").items()) == {(): 15}


def test_operations_grow_with_every_change_and_every_read() -> None:
    kernel = Interpreter(plan_with("view-tree", parse_rule("Q(A, B) = R(A, B)")).program)
    seen = [kernel.operations]
    kernel.apply("R", {(1, 2): 1})
    seen.append(kernel.operations)
    list(kernel.items({}))
    seen.append(kernel.operations)
    assert 0 == seen[0] < seen[1] < seen[2]
