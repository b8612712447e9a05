"""Who takes part: what each must do, and the three that live in this process (ivme, DuckDB, SQLite).

A contender loads the tables, applies the changes of a round in one transaction, and gives whole answers. How it
keeps the view fresh, or whether it does, is its own affair.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from benchmarks.peers.triggers import kept_query, trigger_statements
from benchmarks.peers.workload import Change, Request, Round, Table, Workload
from ivme.database import Database

SINGLE = 50
"""Up to so many rows, calls for each row are quicker than Arrow in all of these systems."""

OURS = "ivme"


class Contender(Protocol):
    """A system that answers the workload's view; `name` is its column in the report."""

    name: str

    def apply(self, round_: Round) -> None: ...

    def answer(self, request: Request) -> Any: ...

    def close(self) -> None: ...


Start = Callable[[Workload], Contender]


def canonical(answer: Any) -> Counter[tuple[Any, ...]]:
    """The rows of an answer, whatever their order and form."""
    if isinstance(answer, pa.Table):
        return Counter(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    if isinstance(answer, int):
        return Counter([(answer,)])
    return Counter(map(tuple, answer))


class Ivme:
    """The embedded database, in memory."""

    name = OURS

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.database = Database()
        for table in workload.tables:
            self.database.create_table(table.name, dict(table.columns), primary_key=list(table.key))
            self.database.insert(table.name, workload.loaded[table.name])
        for name, text in workload.views or (("v", workload.sql),):
            self.view = self.database.create_view(name, text)
        self.few = workload.reading == "rows" and not workload.parameters and self.view.count() <= SINGLE

    def apply(self, round_: Round) -> None:
        if len(round_.changes) == 1:
            self._apply(self.database, round_.changes[0])
            return
        with self.database.batch() as batch:
            for change in round_.changes:
                self._apply(batch, change)

    def _apply(self, target: Any, change: Change) -> None:
        rows = change.rows if len(change.tuples) > SINGLE else change.tuples
        (target.insert if change.sign > 0 else target.delete)(change.table, rows)

    def answer(self, request: Request) -> Any:
        if request or self.few:
            return list(self.view(**request))
        if self.workload.reading == "rows":
            return self.view.to_arrow()
        return self.view.scalar() if self.workload.reading == "scalar" else self.view.count()

    def close(self) -> None:
        self.database.close()


def column_types(table: Table) -> str:
    """The columns as CREATE TABLE declares them in the peers."""
    kinds = {"int": "BIGINT", "string": "TEXT"}
    return ", ".join(f"{name} {kinds[kind]}" for name, kind in table.columns.items())


def insert_row(table: Table, mark: str) -> str:
    return f"INSERT INTO {table.name} VALUES ({', '.join([mark] * len(table.columns))})"


def delete_row(table: Table, mark: str) -> str:
    return f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = {mark}' for name in table.key)}"


def parameters_written(sql: str, form: str) -> str:
    """The query with its `:name` in the system's own form."""
    return re.sub(r":(\w+)", form, sql)


def index_statements(table: Table) -> list[str]:
    """An index for each access path, and a unique one for the key."""
    unique = f"CREATE UNIQUE INDEX {table.name}_key ON {table.name} ({', '.join(table.key)})"
    others = [
        f"CREATE INDEX {table.name}_{number} ON {table.name} ({', '.join(columns)})"
        for number, columns in enumerate(table.indexes)
    ]
    return [unique, *others]


class DuckDb:
    """DuckDB in memory with all cores: applies the changes, and runs the query anew for each request."""

    name = "DuckDB, recompute"

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.connection = duckdb.connect()
        self.query = parameters_written(workload.sql, r"$\1")
        for table in workload.tables:
            self.connection.execute(f"CREATE TABLE {table.name} ({column_types(table)})")
            self._insert(table.name, workload.loaded[table.name])
            if workload.parameters:
                for statement in index_statements(table):
                    self.connection.execute(statement)

    def _insert(self, name: str, rows: pa.Table) -> None:
        self.connection.register("given", rows)
        self.connection.execute(f"INSERT INTO {name} SELECT * FROM given")
        self.connection.unregister("given")

    def apply(self, round_: Round) -> None:
        self.connection.begin()
        for change in round_.changes:
            table = self.workload.table(change.table)
            if len(change.tuples) <= SINGLE:
                for row in change.tuples:
                    if change.sign > 0:
                        self.connection.execute(insert_row(table, "?"), row)
                    else:
                        self.connection.execute(delete_row(table, "?"), [row[place] for place in table.places()])
            elif change.sign > 0:
                self._insert(change.table, change.rows)
            else:
                self._delete(table, change.rows)
        self.connection.commit()

    def _delete(self, table: Table, rows: pa.Table) -> None:
        self.connection.register("given", rows)
        equal = " AND ".join(f"{table.name}.{name} = given.{name}" for name in table.key)
        self.connection.execute(f"DELETE FROM {table.name} USING given WHERE {equal}")
        self.connection.unregister("given")

    def answer(self, request: Request) -> Any:
        if not request and self.workload.reading == "rows":
            return self.connection.sql(self.query).to_arrow_table()
        found = self.connection.execute(self.query, dict(request)) if request else self.connection.execute(self.query)
        return found.fetchall()

    def close(self) -> None:
        self.connection.close()


class Sqlite:
    """SQLite in memory: triggers keep the view where it has them, otherwise the indexed query runs for each request."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.name = "SQLite, triggers" if workload.triggers else "SQLite, indexed query"
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.query = kept_query(workload) if workload.triggers else workload.sql
        for table in workload.tables:
            self.connection.execute(f"CREATE TABLE {table.name} ({column_types(table)})")
            rows = zip(*(column.to_pylist() for column in workload.loaded[table.name].columns), strict=True)
            self.connection.executemany(insert_row(table, "?"), rows)
            for statement in index_statements(table):
                self.connection.execute(statement)
        self.connection.execute("ANALYZE")
        for statement in trigger_statements(workload) if workload.triggers else ():
            self.connection.execute(statement)

    def apply(self, round_: Round) -> None:
        self.connection.execute("BEGIN")
        for change in round_.changes:
            table = self.workload.table(change.table)
            if change.sign > 0:
                self.connection.executemany(insert_row(table, "?"), change.tuples)
            else:
                keys = [[row[place] for place in table.places()] for row in change.tuples]
                self.connection.executemany(delete_row(table, "?"), keys)
        self.connection.execute("COMMIT")

    def answer(self, request: Request) -> Any:
        return self.connection.execute(self.query, dict(request)).fetchall()

    def close(self) -> None:
        self.connection.close()
