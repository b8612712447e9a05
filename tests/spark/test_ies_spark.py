"""The same systems, run by Spark SQL: the same tables as in DuckDB, change by change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.examples import parity
from ivme.closure.executor import Executor
from ivme.closure.ies import IES
from ivme.closure.spark_executor import SparkExecutor
from ivme.closure.systems import acyclic_closure, digraph_closure, undirected_closure
from ivme.errors import DataError

Change = tuple[str, Any]


@pytest.mark.long
@pytest.mark.parametrize(
    ("make", "changes", "tables"),
    [
        (
            acyclic_closure,
            [
                ("insert_many", [(1, 2), (2, 3), (1, 4)]),
                ("insert", (4, 3)),
                ("delete", (2, 3)),
                ("delete_many", [(1, 2), (4, 3)]),
            ],
            ["tc", "edge"],
        ),
        (
            lambda: undirected_closure("string"),
            [("insert_many", [("a", "b"), ("b", "c"), ("a", "c")]), ("delete", ("a", "b")), ("insert", ("d", "d"))],
            ["tc", "forest", "through"],
        ),
        (digraph_closure, [("insert", (1, 2)), ("insert", (2, 1)), ("delete", (1, 2))], ["tc", "paths"]),
    ],
)
def test_spark_sql_keeps_what_duckdb_keeps(
    spark: Any, make: Callable[[], IES], changes: list[Change], tables: list[str]
) -> None:
    there, here = SparkExecutor(make(), spark), DuckDbExecutor(make())
    for method, rows in changes:
        for executor in (there, here):
            getattr(executor, method)("edge", rows)
        assert {table: here.rows(table) for table in tables} == {table: there.rows(table) for table in tables}


def test_a_refused_change_leaves_spark_as_it_was(spark: Any) -> None:
    executor: Executor = SparkExecutor(acyclic_closure(), spark)
    executor.insert("edge", (1, 2))
    with pytest.raises(DataError, match="would close the cycle 2 -> 1 -> 2"):
        executor.insert("edge", (2, 1))
    assert ([(1, 2)], [(1, 2)]) == (executor.answer(), executor.rows("edge"))


def test_a_program_of_ones_own_runs_in_spark(spark: Any) -> None:
    executor = SparkExecutor(parity({"x": "int"}), spark)
    executor.start()
    executor.insert("r", (5,))
    assert [] == executor.answer()
    executor.delete("r", (5,))
    assert [(1,)] == executor.answer()
