"""ivme keeps the results of SQL queries up to date while the data changes.

>>> import ivme
>>> view = ivme.explain("Q(A, B, C) = R(A, B), S(A, C)")
>>> view.query_class, view.strategy, str(view.update), str(view.delay)
('CQAP0', 'view-tree', 'O(1)', 'O(1)')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.errors import IvmeError

if TYPE_CHECKING:
    from ivme.client.async_client import AsyncDatabase, connect_async
    from ivme.client.connection import RemoteDatabase, connect
    from ivme.database import Database
    from ivme.definitions.user_functions import UserFunction
    from ivme.plan.explain.explanation import Explanation
    from ivme.query.model import Query
    from ivme.spark.pipeline.open_pipeline import Pipeline
    from ivme.spark.shards.database import SparkDatabase
    from ivme.tables import Tables
    from ivme.view import View

__all__ = [
    "AsyncDatabase",
    "Database",
    "Explanation",
    "IvmeError",
    "Pipeline",
    "RemoteDatabase",
    "SparkDatabase",
    "UserFunction",
    "View",
    "__version__",
    "connect",
    "connect_async",
    "explain",
]
__version__ = "0.1.0"

_LAZY = {
    "AsyncDatabase": "ivme.client.async_client",
    "connect_async": "ivme.client.async_client",
    "Database": "ivme.database",
    "Explanation": "ivme.plan.explain.explanation",
    "Pipeline": "ivme.spark.pipeline.open_pipeline",
    "RemoteDatabase": "ivme.client.connection",
    "connect": "ivme.client.connection",
    "SparkDatabase": "ivme.spark.shards.database",
    "UserFunction": "ivme.definitions.user_functions",
    "View": "ivme.view",
}
"""Names that are imported when they are first used: `import ivme` is quick, and `ivme explain` needs no Arrow."""


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse others

    def __getattr__(name: str) -> object:
        if name in _LAZY:
            from importlib import import_module

            return getattr(import_module(_LAZY[name]), name)
        raise AttributeError(f"module 'ivme' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def explain(query: str | Query, tables: Tables | None = None, **options: object) -> Explanation:
    """What ivme would do for a view, and what that guarantees, without any data.

    `query` is SQL or a rule. `tables` maps names to schemas (columns with types, or just names), or lists tables;
    without it, they are those that the text implies. Options: `strategy`, `epsilon` (a number from 0 to 1, "auto", or
    one for each relation), `append_only` and `static` (names of tables), `semantics` ("bag", "set" or "ring"),
    `space` ("linear" or "source"), `rebalance` ("amortised" or "deamortised"), `graph` ("digraph", "acyclic" or
    "undirected", for closures), `favour` ("balanced", "updates" or "reads"), `planning_seconds` (5), `expire`
    (an SQL expression: the moment at which a row leaves), `dialect` ("spark"; "postgres", "duckdb", "snowflake" and
    others are translated).
    """
    from ivme.compile import compile_query

    return compile_query(query, tables, **options)
