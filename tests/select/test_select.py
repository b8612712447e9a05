"""Whole SELECTs from a grammar against DuckDB, half a minute of them; `python -m tests.select` runs longer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from random import Random

import duckdb
import pytest

from tests.example_counts import some_of
from tests.fuzz.cases import TableSpec
from tests.fuzz.script import script
from tests.fuzz.steps import Change, CreateView, Op
from tests.fuzz.values import Row, column
from tests.select.cases import SelectCase, SelectView, make_case, shape
from tests.select.coverage import RELATIONS, cover, known_rules
from tests.select.fuzzing import findings, shrunk
from tests.select.queries import Queries
from tests.select.running import MACROS, SelectOracle, run_case
from tests.select.unaccepted import UNACCEPTED

PARTS = 8
"""Into how many tests the runs are split."""

CASES = 12
"""The cases of each part of the default run."""


@pytest.mark.parametrize("part", some_of(range(PARTS), 0, 1, 2))
def test_a_select_is_refused_by_name_or_has_the_rows_of_duckdb(part: int) -> None:
    first = part * 1_000_000
    seeds = range(first, first + CASES)
    covered: Counter[str] = Counter()
    found = [each.script for each in findings(seeds, covered, 600.0, 30.0)]

    assert not found, "\n".join(found)
    assert covered["accepted"]


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_every_rule_of_the_grammar_is_accepted_but_those_that_are_listed(part: int) -> None:
    """Change unaccepted.py where this fails: take out what is accepted now."""
    missing, found = cover(part, PARTS, least=10, most=60)

    assert not found, "\n".join(each.script for each in found)
    assert {rule for rule in UNACCEPTED if rule in known_rules()[part::PARTS]} == missing


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_a_select_is_refused_by_name_or_has_the_rows_of_duckdb_for_longer(part: int) -> None:
    """IVME_FUZZ_SECONDS for each of four parts, 150 by default; each run tries other cases."""
    seconds = os.environ.get("IVME_FUZZ_SECONDS", "150")
    seed = str(int.from_bytes(os.urandom(3), "big") * 4 + part)
    command = [sys.executable, "-m", "tests.select", "--seconds", seconds, "--seed", seed, "--most", "3", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


DECLARED = (
    "CREATE TABLE r0 (i BIGINT, j BIGINT, s VARCHAR, d2 DECIMAL(9, 2))",
    "CREATE TABLE r1 (i BIGINT, k BIGINT, dt DATE, b BOOLEAN)",
    "CREATE TABLE r2 (j BIGINT, s VARCHAR, ts TIMESTAMP, li BIGINT[], ls VARCHAR[], st STRUCT(x BIGINT, y VARCHAR))",
)


def test_every_rule_of_the_grammar_is_drawn_and_what_is_drawn_is_sql() -> None:
    connection = duckdb.connect()
    for statement in (*DECLARED, *MACROS):
        connection.execute(statement)
    drawn: set[str] = set()
    refused = 0
    for seed in range(6000):
        grammar = Queries(Random(seed), RELATIONS)
        text = grammar.statement().text
        drawn |= grammar.rules
        if seed % 12 == 0:
            try:
                connection.execute(f"EXPLAIN {text}")
            except duckdb.Error:
                refused += 1

    assert set(known_rules()) == drawn
    assert refused <= 5  # DuckDB refuses a list in the order of a constant


def test_a_case_is_the_same_each_time() -> None:
    assert make_case(17) == make_case(17)


def test_the_order_and_the_limit_of_a_text_are_known() -> None:
    text = "SELECT i AS a, j FROM (SELECT i, j FROM r0 ORDER BY i LIMIT 2) t ORDER BY j DESC, 1 LIMIT 3"
    assert shape(text).order == (1, 0)
    assert shape(text).unlimited == text.removesuffix(" LIMIT 3")
    assert shape(text).relations == {"r0"}


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle that forgets rows with a 2 when tables are joined, so that ivme seems to be wrong."""
    honest = SelectOracle.rows

    def rows(self: SelectOracle, sql: str) -> list[Row]:
        found = honest(self, sql)
        return [row for row in found if 2 not in row] if "JOIN" in sql else found

    monkeypatch.setattr(SelectOracle, "rows", rows)


@pytest.mark.usefixtures("forgetful")
def test_a_difference_is_found_shrunk_and_printed() -> None:
    rows: tuple[Row, ...] = ((1, 1), (2, 1), (3, 0))
    sql = "SELECT t.i, t.j AS c1 FROM r0 t JOIN r1 u ON t.i = u.k AND u.k < 7 WHERE t.j IS NOT NULL OR t.i > 3"
    case = SelectCase(
        5,
        (TableSpec("r0", (column("i"), column("j"))), TableSpec("r1", (column("k"),))),
        (SelectView("v0", sql),),
        (
            CreateView("v0"),
            Change((Op("insert", "r0", rows, (1,) * 3), Op("insert", "r1", ((1,), (2,), (3,)), (1,) * 3))),
        ),
        ("native",),
        16,
    )
    difference = run_case(case)
    assert difference is not None

    found = shrunk(case, difference, 20.0)

    assert found.kind == "rows differ"
    assert "db.create_view('v0', 'SELECT t.i FROM r0 AS t JOIN r1 AS u ON" in found.script
    assert "WHERE" not in found.script
    assert "python -m tests.select --case 5" in found.script


def test_the_script_of_a_case_runs_by_itself() -> None:
    case = SelectCase(
        0,
        (TableSpec("r", (column("i"),)),),
        (SelectView("v", "SELECT COUNT(*) AS n FROM r"),),
        (CreateView("v"), Change((Op("insert", "r", ((1,), (2,)), (1, 1)),))),
        ("native",),
        16,
    )
    text = script(case, "an example", "tests.select")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.stdout == "v [((2,), 1)]\n", done.stderr
