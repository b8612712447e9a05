"""The compiler's front: which notation a text is in, whose tables it is over, and what the options promise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

import ivme
from ivme.compile import compile_query
from ivme.errors import PlanError, QueryError, SchemaError
from ivme.query.model import Table, table
from ivme.query.parse import is_sql
from ivme.query.rule import parse_rule


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM r",
        "select(a) FROM r",
        "  -- a comment\n/* and\nanother */ with x AS (SELECT 1) SELECT a FROM r",
        "(SELECT a FROM r)",
        "CREATE TABLE r (a INT)",
    ],
)
def test_what_starts_like_sql_is_sql(text: str) -> None:
    assert is_sql(text)


@pytest.mark.parametrize(
    "text", ["Q(A) = R(A)", "Q(.) :- R(A)", "selected(A) = R(A)", "within(A) = R(A)", "from(A) = R(A)"]
)
def test_what_starts_with_a_head_is_a_rule(text: str) -> None:
    assert not is_sql(text)


def test_both_notations_compile_to_the_same_plan() -> None:
    rule = ivme.explain("Q(A, C | .) = R(A, B), S(B, C)")
    sql = ivme.explain("SELECT R.A, S.C FROM R JOIN S ON R.B = S.B")
    for found in (rule, sql):
        assert (found.query_class, found.strategy, str(found.update)) == ("CQAP1", "skew", "O(N^ε) amortised")


@pytest.mark.parametrize(
    "tables",
    [
        {"R": {"a": "int", "b": "string"}},
        {"R": ["a", "b"]},
        {"R": table("R", ["a", "b"])},
        [table("R", {"a": "int", "b": "string"})],
        (each for each in [table("R", ["a", "b"])]),
    ],
)
def test_tables_may_be_declared_in_several_ways(tables: Any) -> None:
    assert ivme.explain("Q(A) = R(A, B)", tables).query.table("R").column_names == ("a", "b")


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("R", "tables must map names to schemas"),
        (["R"], "list Table objects"),
        ({"R": "ab"}, "table R needs its columns"),
        ({"R": {"a": ["int"]}}, "table R needs a type for each column"),
        ({"R": {"a": "money"}}, "money"),
        ({"R": [1]}, "names of its columns as strings"),
        ({3: ["a"]}, "the name of a table must be a string"),
        ({"S": table("R", ["a"])}, "use one name"),
        (ivme.Database(), r'over the tables of a database, run db.sql\("EXPLAIN SELECT'),
        (7, "tables must map names to schemas"),
    ],
)
def test_tables_that_are_none_are_refused(tables: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ivme.explain("Q(A) = R(A)", tables)


def test_a_query_object_is_taken_as_it_is_over_the_given_tables() -> None:
    query = parse_rule("Q(A, B) = R(A, B)")
    keyed = table("R", ["_1", "_2"], primary_key="_1")
    assert compile_query(query, [keyed]).query.table("R").primary_key == ("_1",)


def promised(**options: Any) -> Table:
    return ivme.explain("Q(A) = R(A, B), S(B)", **options).query.table("R")


def test_append_only_and_static_name_tables_whatever_their_case() -> None:
    assert (promised(append_only="r").append_only, promised(append_only="r").static) == (True, False)
    assert (promised(static=["R"]).append_only, promised(static=["R"]).static) == (False, True)


NOTHING: Any = None
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "unknown table": (
        lambda: promised(static="X"),
        PlanError,
        "X, which is not a table of the query; its tables are R, S",
    ),
    "epsilon for an unknown relation": (lambda: promised(epsilon={"X": 0.5}), PlanError, "option epsilon names X"),
    "both promises": (lambda: promised(static="R", append_only="R"), SchemaError, "both static and append-only"),
    "unknown option": (lambda: promised(speed="fast"), PlanError, "there is no option 'speed'"),
    "no query": (lambda: ivme.explain(NOTHING), QueryError, "it is a NoneType"),
    "a chain that is too long": (
        lambda: ivme.explain("Q(.) = " + ", ".join(f"R{i}(A{i}, A{i + 1})" for i in range(1000)), planning_seconds=600),
        PlanError,
        "its 1000 atoms make too deep a tree; split it",
    ),
    "undeclared table": (lambda: ivme.explain("Q(A) = R(A)", {"S": ["a"]}), QueryError, "R"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_is_refused_with_an_ivme_error(case: str) -> None:
    attempt, error, message = REFUSED[case]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)  # as Python has it; shards in this process may have raised it
    try:
        with pytest.raises(error, match=message):
            attempt()
    finally:
        sys.setrecursionlimit(before)
    assert issubclass(error, ivme.IvmeError)


def test_the_version_is_that_of_the_package() -> None:
    assert version("ivme") == ivme.__version__


def test_importing_ivme_imports_no_parser_of_sql_and_no_terminal() -> None:
    code = "import ivme, sys; print(sorted({'sqlglot', 'typer', 'rich', 'yaml'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
