"""Transitive closure maintained by SQL alone (source 004): its systems, and what runs them in DuckDB or Spark.

An incremental evaluation system (`IES`) has input tables, an answer, auxiliary tables, and a program for a row that
comes and one for a row that goes. `Database.create_ies` keeps one beside other views; the executors here run it by
themselves. docs/closure.md tells how they compare with `closure(...)` in a view, which the kernel keeps.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ivme.closure.examples import equal_cardinality, parity
from ivme.closure.ies import IES, Refusal, Relation, make_ies, relation
from ivme.closure.systems import acyclic_closure, digraph_closure, undirected_closure

if TYPE_CHECKING:
    from ivme.closure.duckdb_executor import DuckDbExecutor
    from ivme.closure.spark_executor import SparkExecutor

__all__ = [
    "IES",
    "DuckDbExecutor",
    "Refusal",
    "Relation",
    "SparkExecutor",
    "acyclic_closure",
    "digraph_closure",
    "equal_cardinality",
    "make_ies",
    "parity",
    "relation",
    "undirected_closure",
]

_EXECUTORS = {"DuckDbExecutor": "ivme.closure.duckdb_executor", "SparkExecutor": "ivme.closure.spark_executor"}
"""They need DuckDB and Spark: each is imported when it is first used."""


def __getattr__(name: str) -> Any:
    if name in _EXECUTORS:
        return getattr(import_module(_EXECUTORS[name]), name)
    raise AttributeError(f"module 'ivme.definitions.closures' has no attribute {name!r}")
