"""From blueprints to steps: self-joins, indicators, projections, and what nobody reads."""

from __future__ import annotations

import re

import pytest

from ivme.plan.ir.program import Add, Exists, Index, Join, Load, Program, Project, Read, Scan, Step
from ivme.plan.ir.steps import Emit, Watch
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.counting import COUNTING


def program(text: str, strategy: str = "view-tree") -> Program:
    return plan_with(strategy, parse_rule(text)).program


def reads(steps: tuple[Step, ...]) -> list[str]:
    return [str(read) for step in steps if isinstance(step, Join) for read in step.reads]


def printed(steps: tuple[Step, ...]) -> list[str]:
    """The steps without their costs."""
    return [str(step).split("    #")[0] for step in steps]


# Self-joins


def test_two_occurrences_share_a_leaf_that_takes_its_delta_between_them() -> None:
    """δ(E ⋈ E) = δE ⋈ E + (E + δE) ⋈ δE: the second occurrence reads the map after its `+=`."""
    expected = [
        "d1(A, B) := load E(A, B)",
        "d2(A, B) := d1 ⋈ E(B, A)",
        "d3() := sum d2",
        "Q += d3",
        "E += d1",
        "d4(B, A) := d1",
        "d5(B, A) := d4 ⋈ E(A, B)",
        "d6() := sum d5",
        "Q += d6",
    ]
    assert expected == printed(program("Q(.|.) = E(A, B), E(B, A)", "classical").trigger("E").steps)


def test_with_three_occurrences_the_middle_one_reads_new_before_and_old_after() -> None:
    expected = [
        "d1(A, B) := load E(A, B)",
        "d2(A, B, C) := d1 ⋈ E(B, C) ⋈ E(C, A)",
        "d3() := sum d2",
        "Q += d3",
        "d4(B, C) := d1",
        "d5(B, C, A) := d4 ⋈ (E + d1)(A, B) ⋈ E(C, A)",
        "d6() := sum d5",
        "Q += d6",
        "E += d1",
        "d7(C, A) := d1",
        "d8(C, A, B) := d7 ⋈ E(A, B) ⋈ E(B, C)",
        "d9() := sum d8",
        "Q += d9",
    ]
    assert expected == printed(program("Q(.|.) = E(A, B), E(B, C), E(C, A)", "classical").trigger("E").steps)


def test_with_four_occurrences_two_of_them_read_pending_contents() -> None:
    steps = program("Q(.|.) = E(A, B), E(B, C), E(C, D), E(D, A)", "classical").trigger("E").steps
    joins = [set(reads((step,))) for step in steps if isinstance(step, Join)]
    propagations = [joins[i] | joins[i + 1] for i in range(0, 8, 2)]
    whole = [sorted(read for read in group if "_" not in read) for group in propagations]
    expected = [
        ["E(B, C)", "E(C, D)", "E(D, A)"],
        ["(E + d1)(A, B)", "E(C, D)", "E(D, A)"],
        ["(E + d1)(A, B)", "(E + d1)(B, C)", "E(D, A)"],
        ["E(A, B)", "E(B, C)", "E(C, D)"],
    ]
    assert expected == whole
    added = next(i for i, step in enumerate(steps) if isinstance(step, Add) and step.map == "E")
    joined = [i for i, step in enumerate(steps) if isinstance(step, Join)]
    assert joined[5] < added < joined[6]


def test_a_projection_of_a_pending_read_is_pending_too() -> None:
    found = reads(program("Q(.|.) = E(A, B), E(B, C), E(C, D), E(D, A)", "classical").trigger("E").steps)
    assert "∃(E + d1)(A, _)" in found


def test_an_indicator_of_a_shared_leaf_is_read_with_its_new_contents_once_it_was_propagated() -> None:
    """Order of uses: E#1, ∃E#1, E#2, E#3. At E#2 the indicator is new and E#3 is old."""
    steps = program("Q(.|.) = E(A, B), E(B, C), E(C, A)").trigger("E").steps
    assert "d12(B, C, A) := d11 ⋈ E(C, A) ⋈ ∃(E + d1)(A, B)" in printed(steps)
    assert "d6(A, B, C) := d2 ⋈ E(B, C) ⋈ E(C, A)" in printed(steps)


def test_occurrences_that_read_differently_have_leaves_of_their_own_and_nothing_is_pending() -> None:
    """B joins: in E(A, B) the second column, in E(B, C) the first; the other columns may be NULL."""
    found = program("Q(A, B, C) = E(A, B), E(B, C)", "classical")
    assert {"E", "E.2", "Q"} == {declared.name for declared in found.maps}
    assert sum(isinstance(step, Load) for step in found.trigger("E").steps) == 2
    assert not [read for read in reads(found.trigger("E").steps) if "+" in read]


@pytest.mark.parametrize("strategy", COUNTING)
def test_without_self_joins_nothing_is_pending(strategy: str) -> None:
    assert " + " not in str(program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)", strategy))


@pytest.mark.parametrize("strategy", COUNTING)
@pytest.mark.parametrize("text", ["Q(.|.) = E(A,B), E(B,C), E(C,A)", "Q(B|A) = E(A,B), E(B,A), F(A)"])
def test_each_map_of_the_changed_relation_takes_its_delta_once(text: str, strategy: str) -> None:
    found = program(text, strategy)
    leaves = {declared.name for declared in found.maps if declared.role in ("leaf", "support")}
    for trigger in found.triggers:
        added = [step.map for step in trigger.steps if isinstance(step, Add) and step.map in leaves]
        assert len(added) == len(set(added)) > 0


# Indicators


def test_presence_is_judged_before_the_leaf_takes_its_delta() -> None:
    steps = program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)").trigger("R").steps
    kinds = [type(step) for step in steps]
    assert kinds.index(Exists) < kinds.index(Add)


def test_the_change_of_an_indicator_reads_the_new_leaf() -> None:
    """δV_B of the second delta tree in Figure 4.7 joins R + δR: R was propagated first."""
    found = printed(program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)").trigger("R").steps)
    assert found.index("R += d1") < found.index("d6(A, B) := d5 ⋈ R(A, B)")


def test_an_indicator_on_fewer_variables_counts_distinct_tuples_in_a_support_map() -> None:
    """R has X besides the edge A, B that closes the triangle."""
    found = program("Q(A, B, C | .) = R(A, B, X), S(B, C), T(C, A)")
    assert {m.name: m.role for m in found.maps if m.role in ("leaf", "support") and m.name.strip("∃.2") == "R"} == {
        "R": "leaf",
        "R.2": "leaf",
        "∃R": "support",
    }
    expected = [
        "d1(A, B, X) := load R(A, B, X)",
        "d2(A, B) := sum d1",
        "d3(A, B, X) := ∃-changes of R by d1",
        "d4(A, B) := sum d3",
        "d5(A, B) := ∃-changes of ∃R by d4",
        "R += d1",
        "R.2 += d2",
        "∃R += d4",
    ]
    assert expected == printed(found.trigger("R").steps)[:8]
    assert "∃∃R(A, B)" in reads(found.trigger("S").steps)


def test_an_indicator_on_all_variables_needs_no_support_map() -> None:
    found = program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    assert "support" not in {declared.role for declared in found.maps}


# Joins


def test_a_join_of_blocks_in_a_cycle_reads_projections_through_indexes() -> None:
    """Of A, B, C, D only A is known after δR; S has B and C in different blocks."""
    found = program("Q(.|.) = R(A), S(A, B, C), T(B, D), U(C, D)", "classical")
    assert reads(found.trigger("R").steps)[:2] == ["∃S(A, B, _)", "∃T(B, _)"]
    assert Index((0,), (1,)) in found.map("S").indexes
    assert Index((), (0,)) in found.map("T").indexes


def test_the_cost_of_a_join_is_the_cover_of_what_the_change_leaves_open() -> None:
    costs = {
        trigger.relation: max(step.exponent for step in trigger.steps if isinstance(step, Join))
        for trigger in program("Q(.|.) = R(A), S(A, B, C), T(B, D), U(C, D)", "classical").triggers
    }
    assert {name: str(cost) for name, cost in costs.items()} == {"R": "3/2", "S": "1", "T": "1", "U": "1"}


def test_stages_sum_variables_away_before_the_next_join() -> None:
    """A is done with before T is read: the join never holds A and D together."""
    steps = program("Q(.|.) = R(A, B), S(B, C), T(C, D)", "classical").trigger("S").steps
    assert [step.schema for step in steps if isinstance(step, Join)] == [("B", "C", "A"), ("C", "D")]


# Liveness


def test_views_that_nobody_reads_are_neither_stored_nor_computed() -> None:
    """V_A of Example 4.2 is above V_B, whose iterator yields B for a given A."""
    found = program("Q(B, C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)")
    assert [declared.name for declared in found.maps] == ["R", "R.2", "S", "V_B", "S.2", "T"]
    assert "V_A" not in str(found)


def test_a_leaf_that_only_passes_changes_on_is_not_stored() -> None:
    """Without siblings to read it, S is needed summed to A and B only."""
    found = program("Q(B | A) = R(A, B, C), S(A, B, D), T(A, E)")
    assert [(declared.name, declared.schema) for declared in found.maps] == [
        ("R", ("A_1", "B")),
        ("S", ("A_1", "B")),
        ("V_B", ("A_1", "B")),
        ("T", ("A_2",)),
    ]


@pytest.mark.parametrize("strategy", COUNTING)
@pytest.mark.parametrize(
    "text",
    ["Q(.|.) = E(A,B), E(B,C), E(C,A)", "Q(A,B,C|.) = R(A,B,X), S(B,C), T(C,A)", "Q(A, MIN(Y)) = R(A,B,X), S(B,Y)"],
)
def test_every_delta_is_used_and_defined_before_it_is(text: str, strategy: str) -> None:
    found = program(text, strategy)
    for steps in (found.build, *(trigger.steps for trigger in found.triggers)):
        defined: set[str] = set()
        used: set[str] = set()
        for step in steps:
            made = set() if isinstance(step, Add | Emit | Watch) else {step.target}
            now = set(re.findall(r"\bd\d+\b", str(step))) - made
            assert now <= defined
            used |= now
            defined |= made
        assert used == defined


def test_a_sum_of_a_sum_is_taken_in_one_step() -> None:
    steps = program("Q(.|.) = R(A, B), S(B, C), T(C, A)").trigger("S").steps
    sums = {step.target: step.origin for step in steps if isinstance(step, Project)}
    stored = {step.origin for step in steps if isinstance(step, Add)}
    assert not [target for target, origin in sums.items() if origin in sums and origin not in stored]


# Bulk build, laziness, reading


def test_a_lazy_program_only_keeps_leaves_and_builds_from_scans() -> None:
    found = program("Q(.|.) = R(A, B), S(B, C), T(C, A)", "recompute")
    assert found.lazy
    for trigger in found.triggers:
        assert [Load, Add] == [type(step) for step in trigger.steps]
    assert not [step for step in found.build if isinstance(step, Load)]
    assert "build before reading" in str(found)


def test_the_build_fills_leaves_first_and_then_each_view_once() -> None:
    found = program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    assert [step.map for step in found.build if isinstance(step, Add)] == ["R", "S", "T", "V_C", "V'_C", "V_B"]


def test_a_view_that_is_not_stored_is_computed_inside_the_one_that_needs_it() -> None:
    """V_C is summed to V'_C on the fly; the scan starts at S."""
    found = printed(program("Q(.|.) = R(A, B), S(B, C), T(C, A)").build)
    assert not [line for line in found if "V_C" in line]
    assert [line for line in found if line.startswith("V'_C +=")]


def test_a_build_that_starts_from_an_indicator_takes_it_as_ones() -> None:
    """R is the widest child of the view at D, where it only filters."""
    found = program("Q(A, B, C | .) = R(A, B, C), S(A, D), T(B, D), U(C, D)")
    assert "∃scan R" in str(found)
    assert [step.indicator for step in found.build if isinstance(step, Scan) and step.map == "R"] == [True]


def test_the_build_starts_from_the_widest_child() -> None:
    """R is then a look-up; the other way round S would be joined."""
    first = next(step for step in program("Q(A) = R(A), S(A, B)", "classical").build if isinstance(step, Scan))
    assert first.map == "S"


def test_a_sum_of_a_delta_that_is_stored_too_starts_from_it() -> None:
    """d9 is V_C's change, summed to V'_C's: summing the longer d8 again would cost more."""
    steps = program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)").trigger("S").steps
    assert [step.origin for step in steps if isinstance(step, Project)] == ["d8", "d9"]


def test_the_indexes_of_a_map_are_those_that_its_readers_use() -> None:
    found = program("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    assert (Index((0, 1), (2,)),) == found.map("V_C").indexes
    assert found.map("V'_C").indexes == ()


def test_reading_names_inputs_loops_and_factors() -> None:
    reading = program("Q(B, C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)").enumeration
    assert reading.inputs == (("A_1", "A"), ("A_2", "A"))
    assert reading.outputs == ("B", "C", "D", "E")
    assert [loop.new for loop in reading.loops] == [("B",), ("C",), ("D",), ("E",)]
    assert Read("R", ("A_1", "B", "C")) == reading.factors[0]
    assert [str(factor) for factor in reading.factors] == ["R(A_1, B, C)", "S.2(A_1, B, D)", "T(A_2, E)"]
