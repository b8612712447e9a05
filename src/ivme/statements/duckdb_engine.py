"""A SELECT that DuckDB answers, over the rows of tables and views as Arrow has them.

For queries that ivme refuses, or takes long to plan for a single answer. The text is Spark's, as everywhere, and is
translated; its functions then mean what DuckDB's do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from ivme.definitions.table_rows import TableRows
from ivme.errors import QueryError
from ivme.extras import require
from ivme.query.sql import whole_statement
from ivme.query.table_expression import Parameters
from ivme.statements.constants import default_values, with_values
from ivme.statements.model import Select
from ivme.statements.select import pointing_into
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions


def ask_duckdb(definitions: Definitions, query: Select, parameters: Mapping[str, Any]) -> pa.Table:
    """The rows of a query by DuckDB, which is given copies of nothing: O(1) for the columns of each table it reads.

    The caller holds the lock while the rows are taken, and no longer.
    """
    with pointing_into(query):
        source, node = whole_statement(query.text, functions=definitions.functions.defined)
        node = with_values(source, node, Parameters({**default_values(source), **parameters}))
    rows = _relations(definitions, node)
    require("duckdb", "engine='duckdb'")
    import duckdb

    config: dict[str, Any] = {"enable_external_access": "false", "temp_directory": ""}
    with duckdb.connect(":memory:", config=config) as connection:
        for name, data in rows.items():
            connection.register(name, data)
        try:
            return connection.sql(node.sql(dialect="duckdb", comments=False)).to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(f"DuckDB refuses this: {error}", text=query.text) from error


def _relations(definitions: Definitions, node: exp.Expr) -> dict[str, pa.Table]:
    """The rows of all tables and views that a query names, as of one moment."""
    named = {table.name.lower() for table in node.find_all(exp.Table)}
    found: dict[str, pa.Table] = {}
    with definitions.runtime.lock:
        for name in definitions.catalog.tables:
            if name.lower() in named:
                found[name] = TableRows(definitions, name).to_arrow()
        for name, view in definitions.views.items():
            if name.lower() in named and isinstance(view, View) and not view.parameters:
                found[name] = view.to_arrow()
    return found
