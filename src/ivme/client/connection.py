"""A database behind a server, with the methods of `Database`: `ivme.connect("http://localhost:8321", token=...)`.

Statements, rows and changes go over HTTP, rows as Arrow; nothing but Python's own modules and pyarrow is needed.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape
from http.client import HTTPException
from pathlib import Path
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Never
from urllib.parse import quote, urlencode

import pyarrow as pa

from ivme.client.client_values import distinct_rows, plain_references, quoted, read_table, sql_type
from ivme.client.remote_batch import RemoteBatch
from ivme.client.remote_connection import RemoteConnection, RemoteError
from ivme.client.remote_table import RemoteTable
from ivme.client.remote_view import RemoteView, Row
from ivme.definitions.altering import NOW
from ivme.definitions.clock import read_moment
from ivme.definitions.single_changes import SingleChanges
from ivme.engine.runtime.positions import read_progress
from ivme.errors import PlanError, SchemaError, UnknownNameError, UnnamedValueError
from ivme.query.table import References
from ivme.query.types import Type, parse_type
from ivme.schemas import columns_of
from ivme.serve.asking import ARROW
from ivme.serve.tagged_values import tagged
from ivme.statements.result import Result
from ivme.store.backup import new_directory

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["RemoteDatabase", "RemoteError", "RemoteView", "Row", "connect"]


class RemoteDatabase(RemoteConnection, SingleChanges):
    """A database behind a server. Its methods raise the errors of ivme, with the server's message."""

    # Statements

    def sql(self, text: str, /, *unnamed: Never, engine: str = "ivme", **parameters: Any) -> Result:
        """Runs SQL statements on the server; the result of the last. BEGIN needs its COMMIT in the same text."""
        if unnamed:
            raise UnnamedValueError.of_sql()
        if engine != "ivme":
            raise PlanError(f"a server answers by itself: engine={engine!r} is for a database in this program")
        body = {"sql": text, "parameters": {name: tagged(value) for name, value in parameters.items()}}
        kind, answer = self.request("POST", "/sql", body, ARROW)
        if kind == ARROW:
            return Result(read_table(answer))
        told = json.loads(answer)
        return Result(count=told["count"], message=told["message"])

    # Reading

    def _asked(self, path: str) -> Any:
        return json.loads(self.request("GET", path)[1])

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(each["name"] for each in self._asked("/tables"))

    @property
    def views(self) -> tuple[str, ...]:
        """The names of all views that can be read."""
        return tuple(each["name"] for each in self._asked("/views") if "broken" not in each)

    @property
    def broken_views(self) -> dict[str, str]:
        """The views that could not be built when the server opened its directory, and why."""
        return {each["name"]: each["broken"] for each in self._asked("/views") if "broken" in each}

    @property
    def scopes(self) -> tuple[str, ...]:
        """What the token allows, as in `read:revenue`, `write:sales` and `define`."""
        return tuple(self._asked("/token")["scopes"])

    def view(self, name: str) -> RemoteView:
        """The view of that name."""
        return RemoteView(self, _named(self._asked("/views"), name, "view"))

    def table(self, name: str) -> RemoteTable:
        """The table of that name, to be read as Python rows, Arrow or pandas."""
        return RemoteTable(self, _named(self._asked("/tables"), name, "table"))

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, in Arrow, and their multiplicities."""
        return distinct_rows(self.sql(f"SELECT * FROM {quoted(name)}").to_arrow())

    def entries(self) -> int:
        """The number of entries in the maps of all tables and views: the size of the state."""
        return int(self._asked("/stats?_maps=false")["entries"])

    def position(self, source: str) -> int | None:
        """The position that the last batch of a source recorded; None if there was none."""
        found: int | None = self._asked(f"/position?{urlencode({'source': source})}")["position"]
        return found

    def check_promises(self, table: str | None = None) -> None:
        """Raises DataError for the first row that breaks a UNIQUE, NOT NULL or REFERENCES of a table, or of all."""
        self._asked("/promises" if table is None else f"/promises?{urlencode({'table': table})}")

    # Definitions

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
        keep_rows: bool = True,
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
        defaults: Mapping[str, object] | None = None,
        if_not_exists: bool = False,
        replace: bool = False,
    ) -> None:
        """Creates an empty table; see `Database.create_table`."""
        columns = {column: str(parse_type(type_)) for column, type_ in columns_of(name, schema).items()}
        key = [primary_key] if isinstance(primary_key, str) else primary_key
        body = {
            "name": name,
            "columns": columns,
            "append_only": append_only,
            "static": static,
            "keep_rows": keep_rows,
            "references": plain_references(references),
            "unique": [[each] if isinstance(each, str) else [*each] for each in unique],
            "not_null": [not_null] if isinstance(not_null, str) else [*not_null],
            "defaults": {column: tagged(value) for column, value in (defaults or {}).items()},
            "if_not_exists": if_not_exists,
            "replace": replace,
        }
        self.request("POST", "/tables", body if key is None else {**body, "primary_key": [*key]})

    def create_view(
        self, name: str, query: str, *, if_not_exists: bool = False, replace: bool = False, **options: object
    ) -> RemoteView:
        """Creates a view; see `Database.create_view`."""
        how = {"if_not_exists": if_not_exists, "replace": replace}
        self.request("POST", "/views", {"name": name, "query": query, "options": options, **how})
        return self.view(name)

    def rebuild_view(self, name: str) -> RemoteView:
        """Builds a broken view again; an error says why that fails."""
        self.request("POST", f"/views/{quote(name, safe='')}/rebuild")
        return self.view(name)

    def drop_view(self, name: str) -> None:
        """Drops a view."""
        self.request("DELETE", f"/views/{quote(name, safe='')}")

    def drop_table(self, name: str) -> None:
        """Drops a table and its rows."""
        self.request("DELETE", f"/tables/{quote(name, safe='')}")

    def add_column(self, table: str, name: str, type: str | Type, default: object = None) -> None:
        """Adds a column to a table, after the others; see `Database.add_column`."""
        told, given = _default(default, parse_type(type).kind)
        kind = sql_type(type)
        self.sql(
            f"ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} {kind} {f'DEFAULT {told}' if told else ''}", **given
        )

    def drop_column(self, table: str, name: str) -> None:
        """Drops a column and its values."""
        self.sql(f"ALTER TABLE {quoted(table)} DROP COLUMN {quoted(name)}")

    def rename_column(self, table: str, name: str, to: str) -> None:
        """Renames a column."""
        self.sql(f"ALTER TABLE {quoted(table)} RENAME COLUMN {quoted(name)} TO {quoted(to)}")

    def set_default(self, table: str, name: str, default: object) -> None:
        """Sets the default of a column, for rows inserted from now on; None drops it."""
        types = {column.lower(): type_ for column, type_ in self.table(table).described["columns"].items()}
        told, given = _default(default, parse_type(types.get(name.lower(), "string")).kind)
        what = f"SET DEFAULT {told}" if told else "DROP DEFAULT"
        self.sql(f"ALTER TABLE {quoted(table)} ALTER COLUMN {quoted(name)} {what}", **given)

    def rename_table(self, name: str, to: str) -> None:
        """Renames a table."""
        self.sql(f"ALTER TABLE {quoted(name)} RENAME TO {quoted(to)}")

    def advance(self, now: datetime) -> None:
        """Advances the clock of the database; see `Database.advance`."""
        self.request("POST", "/clock", {"now": read_moment(now).isoformat()})

    @property
    def now(self) -> datetime | None:
        """The time of the database's clock; None if it was never advanced and no view reads it."""
        told = self._asked("/clock")["now"]
        return None if told is None else datetime.fromisoformat(told)

    # Changes

    def batch(self, source: str | None = None, position: int | None = None) -> RemoteBatch:
        """Several changes, all or nothing: they are sent when the `with` block ends without an error.

        With a source and a position it is applied once, however often it is sent; see `Database.batch`.
        """
        read_progress(source, position)
        return RemoteBatch(self, source, position)

    def insert(self, table: str, rows: Any, *, round_floats: bool = False) -> None:
        """Inserts rows: tuples, dicts, a generator, or an object with an Arrow stream, such as a DataFrame."""
        with self.batch() as batch:
            batch.insert(table, rows, round_floats=round_floats)

    def delete(self, table: str, rows: Any, *, strict: bool = True) -> None:
        """Deletes rows; a row that is not in the table is an error, or ignored with strict=False."""
        with self.batch() as batch:
            batch.delete(table, rows, strict=strict)

    # Upkeep

    def checkpoint(self) -> None:
        """Lets the server write a snapshot of all tables, so that opening its directory need not read the log."""
        self.request("POST", "/checkpoint", {})

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Writes a copy of the database to a new directory of this machine; `Database(path)` opens it.

        It is written as a whole or not at all. The server goes on meanwhile.
        """
        connection, response = self.open_stream("/backup", "application/x-tar")
        try:
            with new_directory(Path(path)) as directory, tarfile.open(fileobj=response, mode="r|") as archive:
                archive.extractall(directory, filter="data")
        except (HTTPException, tarfile.TarError, EOFError) as error:
            raise RemoteError(f"{self.url} broke the backup off: {error!r}") from error
        finally:
            connection.close()

    def __repr__(self) -> str:
        return f"<RemoteDatabase {self.url}>"

    def _repr_html_(self) -> str:
        """The tables and the views, with what is known of each."""
        tables = self.sql("SHOW TABLES")._repr_html_()
        return f"<p>{escape(repr(self))}</p>{tables}{self.sql('SHOW VIEWS')._repr_html_()}"

    def _repr_svg_(self) -> str:
        """A picture of the tables and of the views that read them."""
        from ivme.definitions.lineage import lineage_svg

        views = {each["name"]: each["reads"] for each in self._asked("/views") if "broken" not in each}
        return lineage_svg(f"Database at {self.url}", self.tables, views)


def _named(listed: list[dict[str, Any]], name: str, kind: str) -> dict[str, Any]:
    for each in listed:
        if isinstance(name, str) and each["name"].lower() == name.lower():
            return each
    raise UnknownNameError(
        f"there is no {kind} {name}; there are: {', '.join(each['name'] for each in listed) or 'none'}"
    )


def _default(default: object, kind: str) -> tuple[str, dict[str, Any]]:
    """A default as ALTER TABLE has it, and its value; nothing for NULL."""
    if default is None:
        return "", {}
    if kind in ("timestamp", "date") and isinstance(default, str) and default.lower() == NOW:
        return NOW, {}
    if isinstance(default, list | tuple | Mapping):
        raise SchemaError("the default of an array or a struct is given in create_table")
    return ":default", {"default": default}


def connect(url: str, *, token: str | None = None, context: SSLContext | None = None) -> RemoteDatabase:
    """The database of a server (`ivme serve`); `context` is for certificates that the system does not know."""
    return RemoteDatabase(url, token=token, context=context)
