"""PostgreSQL's catalog as tables of an in-memory DuckDB, which answers what clients ask about tables and views.

Its SQL is PostgreSQL's: joins of a dozen catalog tables, arrays, regular expressions. It has the names and types of the
database, no rows of it, and no way to files or the network; only one SELECT at a time reaches it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.errors import PlanError, QueryError
from ivme.extras import require
from ivme.serve.grants import Grant
from ivme.serve.pg.catalog_rows import catalog_rows
from ivme.serve.pg.catalog_text import catalog_query
from ivme.serve.pg.text import Piece

if TYPE_CHECKING:
    from ivme.database import Database

_SCRIPT = Path(__file__).with_name("catalog.sql").read_text("utf-8")

TABLES = frozenset(re.findall(r"CREATE TABLE pg\.(\w+)", _SCRIPT))
"""The names of the catalog's tables."""

_MOST_ROWS = 100_000


class PostgresCatalog:
    """Answers catalog queries; the tables are filled when the database's have changed. Used by one thread at a time."""

    def __init__(self, database: Database, grant: Grant) -> None:
        self._database = database
        self._grant = grant
        self._lock = threading.Lock()
        self._filled: object = None
        self._connection: Any = None

    def run(self, piece: Piece, parameters: Sequence[Any]) -> pa.Table:
        """The rows of a catalog query, as Arrow has them."""
        with self._lock:
            connection = self._open()
            self._fill(connection)
            text = catalog_query(piece, TABLES)
            try:
                statements = connection.extract_statements(text)
                if len(statements) != 1 or statements[0].type.name != "SELECT":
                    raise QueryError("the catalog can only be read", text=piece.source)
                found = connection.sql(text, params=list(parameters) or None).to_arrow_table()
            except self._errors as error:
                raise QueryError(f"this question about the catalog is not understood: {error}") from error
        if found.num_rows > _MOST_ROWS:
            raise PlanError(f"the answer has more than {_MOST_ROWS} rows")
        return found

    def interrupt(self) -> None:
        """Ends the query that runs; called in another thread."""
        if self._connection is not None:
            self._connection.interrupt()

    def _open(self) -> Any:
        if self._connection is not None:
            return self._connection
        require("duckdb", "a query of PostgreSQL's catalog")
        import duckdb

        self._errors = (duckdb.Error,)
        config: dict[str, Any] = {
            "threads": "1",
            "memory_limit": "256MB",
            "enable_external_access": "false",
            "temp_directory": "",
        }
        made = duckdb.connect(":memory:", config=config)
        made.execute(_SCRIPT)
        self._connection = made
        return made

    def _fill(self, connection: Any) -> None:
        """Puts in what is there now, unless it is there already."""
        tables, views = self._relations()
        if (tables, views) == self._filled:
            return
        self._filled = None
        for name, rows in catalog_rows(tables, views).items():
            connection.execute(f"DELETE FROM {name}")
            if rows:
                columns = [row[0] for row in connection.execute(f"DESCRIBE {name}").fetchall()][: len(rows[0])]
                marks = ", ".join("?" for _ in columns)
                connection.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", rows)
        self._filled = (tables, views)

    def _relations(self) -> tuple[Any, Any]:
        definitions = self._database.definitions
        with definitions.runtime.lock:
            tables = [definitions.table(name) for name in self._database.tables if self._grant.sees(name)]
            states = [definitions.map_view(name).state for name in definitions.map_views if self._grant.sees(name)]
            views = [(state.table, state.typed.written.text or "") for state in states if not state.typed.query.input]
        return tables, views
