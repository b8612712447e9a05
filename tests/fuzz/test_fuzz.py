"""Random schemas, views and streams against DuckDB, about a minute of them; `python -m tests.fuzz` runs longer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.fuzz import dialect
from tests.fuzz.cases import Case, TableSpec, make_case
from tests.fuzz.coverage import cover
from tests.fuzz.planted import FAULTS, Fault, cases_until_found
from tests.fuzz.script import script
from tests.fuzz.shrinking import shrink
from tests.fuzz.steps import Change, CreateView, Op, Reopen
from tests.fuzz.values import column
from tests.fuzz.views import Item, Source, ViewSpec

PARTS = 12
"""Into how many tests the long run is split; each covers its share of the features. The default run has a quarter of
one."""


@pytest.mark.parametrize(
    ("part", "parts"), [(0, 4 * PARTS), *(pytest.param(part, PARTS, marks=pytest.mark.long) for part in range(PARTS))]
)
def test_views_are_what_duckdb_says_and_every_feature_is_among_them(part: int, parts: int) -> None:
    missing, found = cover(part, parts, least=3, most=240)

    assert not found, "\n".join(each.script for each in found)
    assert [] == missing


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_views_are_what_duckdb_says_for_longer(part: int) -> None:
    """IVME_FUZZ_SECONDS for each of four parts, 150 by default; each run tries other cases."""
    seconds = os.environ.get("IVME_FUZZ_SECONDS", "150")
    seed = str(int.from_bytes(os.urandom(3), "big") * 4 + part)
    command = [sys.executable, "-m", "tests.fuzz", "--seconds", seconds, "--seed", seed, "--most", "3", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_is_the_same_each_time() -> None:
    assert make_case(17) == make_case(17)


def test_a_failing_case_is_shrunk_to_what_makes_it_fail() -> None:
    case = next(c for c in map(make_case, range(100)) if sum(isinstance(s, Change) for s in c.steps) > 4)
    wanted = next(op for step in case.steps if isinstance(step, Change) for op in step.ops if op.rows)

    def fails(candidate: Case) -> bool:
        return any(
            op.rows[:1] == wanted.rows[:1] for step in candidate.steps if isinstance(step, Change) for op in step.ops
        )

    small = shrink(case, fails, seconds=20)

    (step,) = small.steps
    assert isinstance(step, Change)
    assert [(wanted.table, wanted.rows[:1])] == [(op.table, op.rows) for op in step.ops]
    assert () == small.views


def test_the_script_of_a_case_runs_by_itself() -> None:
    item = Item("n", "t0", None, "count")
    case = Case(
        0,
        (TableSpec("r", (column("i"),)),),
        (ViewSpec("v", (Source("r", "t0"),), (item,), options=(("strategy", "view-tree"),)),),
        (
            CreateView("v"),
            Change((Op("insert", "r", ((1,), (2,)), (1, 1)), Op("discard", "r", ((3,),), (-1,)))),
            Reopen(checkpoint=True),
            Change((Op("apply", "r", ((2,),), (4,)),), batched=False),
        ),
        ("pure on disk",),
        2,
    )
    done = subprocess.run(
        [sys.executable, "-c", script(case, "an example")], capture_output=True, text=True, check=False
    )

    assert done.stdout == "v [((6,), 1)]\n", done.stderr


def test_each_difference_of_the_dialects_has_a_reason() -> None:
    casts = {rule.name for rule in dialect.RULES if rule.duck and not rule.reason}
    assert {"cast string", "divide"} >= casts


QUICK = ("a batch of several rows loses its signs", "NULL joins NULL")
"""Faults that the first few cases find: the others take more than two minutes together."""


@pytest.mark.parametrize("fault", [f for f in FAULTS if f.name in QUICK], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    assert cases_until_found(fault) is not None


@pytest.mark.long
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.name not in QUICK], ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_in_bounded_time(fault: Fault) -> None:
    assert cases_until_found(fault) is not None
