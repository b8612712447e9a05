"""An IES in DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.closure.executor import CHANGES, Executor
from ivme.closure.ies import IES, Relation, Row
from ivme.closure.program_text import Statement
from ivme.errors import IvmeError
from ivme.extras import require
from ivme.query.types import Type

_TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "binary": "BLOB",
}


class DuckDbExecutor(Executor):
    """Keeps an IES on a DuckDB connection of its own (in memory unless one is given)."""

    def __init__(self, ies: IES, connection: Any = None) -> None:
        super().__init__(ies)
        self.connection = connect() if connection is None else connection
        self._error = _duckdb().Error
        _avoid_merged_subplans(self.connection)
        for relation in (*ies.inputs, *ies.auxiliary):
            self._create(relation)
        if ies.answer.query is None:
            self._create(ies.answer)
        else:
            self.connection.execute(f"CREATE VIEW {ies.answer.name} AS {ies.answer.query}")

    def _create(self, relation: Relation) -> None:
        columns = ", ".join(f"{name} {_sql_type(type_)}" for name, type_ in relation.columns)
        self.connection.execute(f"CREATE TABLE {relation.name} ({columns})")

    def rows(self, table: str) -> list[Row]:
        return sorted(self.connection.execute(f"SELECT * FROM {table}").fetchall())

    def _begin(self) -> None:
        self.connection.execute("BEGIN")

    def _commit(self) -> None:
        self._end("COMMIT")

    def _roll_back(self) -> None:
        self._end("ROLLBACK")

    def _end(self, how: str) -> None:
        try:
            self.connection.execute(how)
        except _duckdb().TransactionException as error:
            if "no transaction is active" not in str(error):
                raise

    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> None:
        body, target = statement.with_marks("$"), statement.target
        if statement.kind == "temp":
            text = f"CREATE OR REPLACE TEMP TABLE {target} AS {body}"
        elif statement.kind == "insert":
            text = f"INSERT INTO {target} {body}"
        else:
            text = f"DELETE FROM {target}" + (f" WHERE {body}" if body else "")
        try:
            self.connection.execute(text, {name: parameters[name] for name, _ in statement.parameters} or None)
        except self._error as error:
            raise IvmeError(f"a program of IES {self.ies.name} failed at {statement.kind} {target}: {error}") from None

    def _size(self, table: str) -> int:
        return int(self.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def _make_changes(self, relation: Relation, rows: list[Row]) -> None:
        columns = ", ".join(f"{name} {_sql_type(type_)}" for name, type_ in relation.columns)
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE {CHANGES} ({columns})")
        self._insert_rows(CHANGES, rows)

    def _change_input(self, relation: Relation, rows: list[Row], sign: int) -> None:
        if sign > 0:
            self._insert_rows(relation.name, rows)
            return
        condition = " AND ".join(f"{name} = ?" for name in relation.column_names)
        self.connection.executemany(f"DELETE FROM {relation.name} WHERE {condition}", rows)

    def _insert_rows(self, table: str, rows: list[Row]) -> None:
        marks = ", ".join("?" * len(rows[0]))
        self.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def connect() -> Any:
    """A DuckDB database in memory."""
    return _duckdb().connect()


def _duckdb() -> Any:
    """The module; an error says what to install if it is missing."""
    require("duckdb", "an IES")
    import duckdb

    return duckdb


def _avoid_merged_subplans(connection: Any) -> None:
    """Switches off an optimisation of DuckDB 2.0.0 that merges joins which differ in their columns only.

    It takes SELECT t1.a, t1.v FROM e JOIN t t1 ... JOIN t t2 ... for SELECT t1.a, t2.v FROM the same joins, and the
    parts of a UNION over THROUGH are just that.
    """
    known = {name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()}
    (off,) = connection.execute("SELECT current_setting('disabled_optimizers')").fetchone()
    if "common_subplan" in known and "common_subplan" not in off.split(","):
        connection.execute(f"SET disabled_optimizers = '{','.join(filter(None, [off, 'common_subplan']))}'")


def _sql_type(type_: Type) -> str:
    return f"DECIMAL({type_.precision}, {type_.scale})" if type_.kind == "decimal" else _TYPES[type_.kind]
