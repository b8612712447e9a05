"""Views with ORDER BY and LIMIT under random batches, against DuckDB, which sorts: rows, their order, and changes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.errors import DataError
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.empty_duckdb import empty_duckdb, insert_rows
from tests.example_counts import examples

TYPES = {"int": "BIGINT", "string": "VARCHAR", "float": "DOUBLE", "decimal(30,2)": "DECIMAL(30,2)", "date": "DATE"}
VALUES = {
    "int": st.integers(-2, 2),
    "string": st.sampled_from(["", "a", "é", "ab", "longer than 8 a", "longer than 8 b"]),
    "float": st.sampled_from([-1.5, 0.0, 2.5]),
    "decimal(30,2)": st.sampled_from(["-0.01", "12345678901234567890.12", "7.00"]),
    "date": st.sampled_from(["0001-01-01", "2024-02-29"]),
}


def _value(kind: str, value: Any) -> Any:
    import datetime
    import decimal

    if value is None:
        return None
    if kind == "date":
        return datetime.date.fromisoformat(value)
    return decimal.Decimal(value) if kind.startswith("decimal") else value


def _sorted_rows(duck: Any, select: str, order: str, columns: list[str], rest: str) -> list[Any]:
    """The rows as SQL has them, with ties broken by all columns."""
    ties = ", ".join(f"{column} ASC NULLS FIRST" for column in columns)
    found: list[Any] = duck.execute(f"{select} ORDER BY {order}, {ties} {rest}").fetchall()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_a_limit_shows_the_rows_that_duckdb_sorts_to_the_front(backend: str, data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=2, max_size=2))
    names = ["x", "y", "id"]
    directions = st.sampled_from(["ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"])
    keys = data.draw(st.sampled_from([["x"], ["x", "y"], ["y", "x"], ["id", "y"]]))
    order = ", ".join(f"{key} {data.draw(directions)}" for key in keys)
    limit, offset = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 3))
    grouped = data.draw(st.booleans())
    select = "SELECT x, y, id FROM r"
    if grouped:
        select, names = "SELECT x, COUNT(*) AS y, SUM(id) AS id FROM r GROUP BY x", ["x", "y", "id"]
    rest = f"LIMIT {limit} OFFSET {offset}"
    types = [*kinds, "int"]
    db, duck = make_database(backend), empty_duckdb()
    db.create_table("r", dict(zip(("x", "y", "id"), types, strict=True)))
    duck.execute(f"CREATE TABLE r (x {TYPES[types[0]]}, y {TYPES[types[1]]}, id BIGINT)")
    view = db.create_view("v", f"{select} ORDER BY {order} {rest}")
    changes = view.changes() if data.draw(st.booleans()) else None
    heard: Counter[Any] = Counter(list(view))
    rows: list[Any] = []
    for _ in range(data.draw(st.integers(1, 5))):
        row = st.tuples(*(st.none() | VALUES[kind] for kind in types))
        new = [tuple(_value(k, v) for k, v in zip(types, each, strict=True)) for each in data.draw(st.lists(row))]
        gone = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
        if data.draw(st.integers(0, 4)) == 0:
            with pytest.raises(DataError):
                in_one_batch(db, ("insert", "r", new), ("delete", "r", [(None, None, 99)]))
        with db.batch() as batch:
            batch.insert("r", new)
            batch.delete("r", [rows[i] for i in gone])
        rows = [each for i, each in enumerate(rows) if i not in gone] + new
        duck.execute("DELETE FROM r")
        insert_rows(duck, "r", rows)
        expected = _sorted_rows(duck, select, order, names, rest)
        assert expected == list(view)
        assert Counter(expected) == Counter(dict(view.items()))
        if changes is not None:
            for change in changes:
                heard.update(change)
            assert Counter(expected) == +heard
            assert min(heard.values(), default=0) >= 0
    view.verify()
    duck.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_change_of_a_limit_is_the_rows_at_its_edges(backend: str) -> None:
    db = make_database(backend)
    db.create_table("r", {"id": "int", "x": "int"})
    db.insert("r", [(i, 10 * i) for i in range(100)])
    view = db.create_view("v", "SELECT id FROM r ORDER BY x LIMIT 3 OFFSET 2")
    changes = view.changes()

    db.insert("r", [(1000, 15)])  # in front of what is shown
    db.insert("r", [(1001, 500)])  # behind it
    db.delete("r", [(3, 30)])  # inside
    db.insert("r", [(1002, -5), (1003, -5), (1004, -5)])

    assert [
        {(1000,): 1, (4,): -1},
        {(4,): 1, (3,): -1},
        {(1000,): -1, (2,): -1, (4,): -1, (1004,): 1, (0,): 1, (1,): 1},
    ] == [dict(change) for change in changes]


def test_updates_of_a_limit_compare_log_n_rows() -> None:
    """No update, and no read of the first rows, looks at all rows."""
    compared = {}
    for size in (1_000, 10_000, 100_000):
        db = make_database("native")
        db.create_table("r", {"id": "int", "x": "int"})
        db.insert("r", [(i, i * 7919 % size) for i in range(size)])
        view = db.create_view("v", "SELECT id, x FROM r ORDER BY x LIMIT 10")
        group: Any = db.definitions.catalog.views["v"].group
        changes = view.changes()
        before = group.operations
        for i in range(100):
            db.insert("r", [(size + i, i * 104729 % size)])
        list(view), list(changes)
        compared[size] = (group.operations - before) / 100
    assert compared[100_000] < 3 * compared[1_000]
    assert compared[100_000] < 100
