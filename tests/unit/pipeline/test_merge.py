"""Delta tables that are kept equal to views by key, against the views themselves."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from ivme.database import Database
from ivme.engine.runtime.delta import delta_table
from ivme.errors import DataError
from ivme.pipeline.document import Place
from ivme.pipeline.merge import GONE, merged_rows
from ivme.pipeline.model import WEIGHT, Sink
from ivme.pipeline.read_sinks import merge_key
from ivme.spark.pipeline.delta_merge import DeltaMergeWriter


def _sink(path: Path, view: str, *key: str) -> Sink:
    return Sink("s", view, "merge", "delta", str(path), Place("p.yml", 1, 1), key=key)


def _rows(path: Path) -> list[tuple[Any, ...]]:
    found = DeltaTable(str(path)).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


_VIEWS = {
    "per_city": ("SELECT city, COUNT(*) AS n, SUM(paid) AS paid FROM t GROUP BY city", ()),
    "per_pair": ("SELECT city, paid, COUNT(*) AS n FROM t GROUP BY city, paid", ()),
    "total": ("SELECT COUNT(*) AS n, SUM(paid) AS paid FROM t", ()),
    "left_join": ("SELECT t.id, u.name FROM t LEFT JOIN u ON t.city = u.city", ("id",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _VIEWS)
def test_a_merged_table_equals_its_view_after_every_batch(tmp_path: Path, name: str) -> None:
    chance = random.Random(7)
    database = Database()
    database.create_table("t", {"id": "int", "city": "string", "paid": "int"}, primary_key="id")
    database.create_table("u", {"city": "string", "name": "string"}, primary_key="city")
    query, key = _VIEWS[name]
    view: Any = database.create_view(name, query)
    feed = view.changes()
    sink = _sink(tmp_path / "out", name, *key)
    writer = DeltaMergeWriter(sink, "app", lambda: merge_key(sink, database))
    writer.write(0, view.to_arrow())
    cities = [None, "Oslo", "Bern", "Rome", "it's `odd`"]
    for batch in range(1, 9):
        with database.batch() as changes:
            rows = {chance.randrange(30): (chance.choice(cities), chance.randrange(9)) for _ in range(8)}
            changes.upsert("t", [(key, *values) for key, values in rows.items()])
            changes.delete_where("t", f"id = {chance.randrange(30)}")
            changes.upsert("u", [(chance.choice(cities[1:]), f"n{batch}")])
        change = next(iter(feed), None)
        if change is None:
            continue
        table = delta_table([change], view.change_schema, WEIGHT)
        for _ in range(2):  # a batch that comes again changes nothing
            DeltaMergeWriter(sink, "app", lambda: merge_key(sink, database)).write(batch, table)
        assert batch == writer.last()
        assert sorted(map(tuple, view), key=repr) == _rows(tmp_path / "out")
    database.close()


def test_columns_that_are_no_key_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    database = Database()
    database.create_table("t", {"id": "int", "city": "string"}, primary_key="id")
    view: Any = database.create_view("v", "SELECT id, city FROM t")
    sink = _sink(tmp_path / "out", "v", "city")
    assert (("city",), False) == merge_key(sink, database)
    writer = DeltaMergeWriter(sink, "app", lambda: merge_key(sink, database))
    database.insert("t", [(1, "Oslo")])
    writer.write(0, view.to_arrow())
    two = pa.table({"id": [2, 3], "city": ["Bern", "Bern"], WEIGHT: [1, 1]})
    with pytest.raises(DataError, match=r"two rows have the key .*Bern.* city is not a key of the view"):
        writer.write(1, two)
    with pytest.raises(DataError, match="several rows have one key"):
        writer.write(1, two.slice(0, 1).set_column(1, "city", pa.array(["Oslo"])))
    assert [(1, "Oslo")] == _rows(tmp_path / "out")
    database.insert("t", [(4, "Oslo")])
    with pytest.raises(DataError, match="is not a key"):
        writer.write(1, view.to_arrow())
    assert 0 == writer.last()
    database.close()


def test_a_key_whose_row_changes_is_replaced_and_one_without_a_row_goes() -> None:
    changes = pa.table({"k": [1, 1, 2, 3, None], "v": [5, 6, 7, 8, 9], WEIGHT: [-1, 1, -1, 1, -1]})
    found = merged_rows(changes, ["k"], "s").to_pylist()
    expected = {(1, 6, False), (2, 7, True), (3, 8, False), (None, 9, True)}
    assert expected == {(row["k"], row["v"], row[GONE]) for row in found}
