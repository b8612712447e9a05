"""SELECTs of several blocks against DuckDB, on both backends, under random batches with NULLs and duplicates."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ivme.database import Database
from tests.empty_duckdb import empty_duckdb, insert_rows
from tests.fuzz.engines import Engine

QUERIES = (Path(__file__).parent / "select_queries.txt").read_text(encoding="utf-8").splitlines()
TABLES = {"R": {"a": "int", "b": "int"}, "S": {"b": "int", "c": "string"}, "T": {"a": "int", "d": "int"}}
_DUCKDB = {"int": "BIGINT", "string": "VARCHAR"}

Row = tuple[Any, ...]


class Both:
    """A database of ours, and one of DuckDB, with the same rows."""

    def __init__(self, database: Database, seed: int, connection: duckdb.DuckDBPyConnection | None = None) -> None:
        self.database = database
        self.duckdb = empty_duckdb() if connection is None else connection
        self.rows: dict[str, list[Row]] = {name: [] for name in TABLES}
        self._random = random.Random(seed)
        for name, columns in TABLES.items():
            database.create_table(name, columns)
            self.duckdb.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {_DUCKDB[t]}' for c, t in columns.items())})")

    def change(self) -> None:
        """A batch that deletes some rows, now and then all of a table, and inserts some."""
        with self.database.batch() as batch:
            for name, columns in TABLES.items():
                gone = self._chosen(name)
                come = [tuple(self._value(t) for t in columns.values()) for _ in range(self._random.randrange(5))]
                batch.delete(name, gone)
                batch.insert(name, come)
                for row in gone:
                    self.rows[name].remove(row)
                self.rows[name] += come
        for name in TABLES:
            self.duckdb.execute(f"DELETE FROM {name}")
            insert_rows(self.duckdb, name, self.rows[name])

    def _chosen(self, name: str) -> list[Row]:
        rows = self.rows[name]
        most = len(rows) if self._random.random() < 0.15 else min(3, len(rows))
        return self._random.sample(rows, self._random.randint(0, most) if most < len(rows) else most)

    def _value(self, kind: str) -> Any:
        if self._random.random() < 0.15:
            return None
        return self._random.randrange(4) if kind == "int" else self._random.choice("xyz")


def comparable(rows: list[Row]) -> Counter[Row]:
    """Counts of rows in which equal numbers are equal, whatever their types."""
    return Counter(tuple(float(v) if type(v) in (int, float) else v for v in row) for row in rows)


def in_duckdb(query: str) -> str:
    """The same in DuckDB's words."""
    return query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI").replace("<=>", "IS NOT DISTINCT FROM")


@pytest.mark.parametrize(
    ("backend", "batches"),
    [("native", 3), *(pytest.param(*each, marks=pytest.mark.long) for each in (("native", 8), ("pure", 3)))],
)
@pytest.mark.parametrize("query", QUERIES)
def test_a_select_is_answered_like_duckdb_does(query: str, backend: str, batches: int, tmp_path: Path) -> None:
    check_followed(Engine(backend, tmp_path), query, in_duckdb(query), batches)


def check_followed(engine: Engine, text: str, theirs: str, batches: int) -> None:
    """Compares a view, and its changes summed up, with what DuckDB answers after each of some random batches."""
    both = Both(engine.database, seed=len(text))
    both.change()
    view = engine.database.create_view("v", text)
    feed, followed = view.changes(), comparable(list(view))
    for _ in range(batches):
        both.change()
        expected = comparable(both.duckdb.execute(theirs).fetchall())
        assert comparable(list(view)) == expected
        for change in feed:
            for row, weight in change.items():
                followed.update({each: weight * n for each, n in comparable([row]).items()})
        assert +followed == expected
        view.verify()
    feed.close()
    engine.database.drop_view("v")
    assert not engine.database.definitions.catalog.views
