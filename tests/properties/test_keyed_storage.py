"""Views over tables with primary keys, whose maps are hashed by these: as the reference engine has them, at each step.

Batches replace rows by others of their key, in either order; some are refused, and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.errors import DataError
from tests.databases import BACKENDS, in_one_batch, make_database, rows_of
from tests.example_counts import examples

VIEWS = {
    "joined": "SELECT o.id AS o, c.city AS city, c.id AS c FROM o JOIN c ON o.cust = c.id",
    "grouped": "SELECT c.city AS city, COUNT(*) AS n, SUM(o.price) AS s FROM o JOIN c ON o.cust = c.id GROUP BY c.city",
    "bosses": "SELECT one.id AS id, boss.city AS city FROM c one JOIN c boss ON one.boss = boss.id",
    "left": "SELECT o.id AS id, c.city AS city FROM o LEFT JOIN c ON o.cust = c.id",
    "lines": "SELECT l.id AS id, l.n AS n, o.price AS p, city FROM l JOIN o ON l.id = o.id JOIN c ON o.cust = c.id",
    "absent": "SELECT o.id AS id FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.id = o.cust)",
}
TABLES = {
    "c": ("CREATE TABLE c (id INT, boss INT, city INT, PRIMARY KEY (id))", 1),
    "o": ("CREATE TABLE o (id INT, cust INT, price INT, PRIMARY KEY (id))", 1),
    "l": ("CREATE TABLE l (id INT, n INT, price INT, PRIMARY KEY (id, n))", 2),
}

Rows = dict[str, dict[tuple[int, ...], tuple[int, ...]]]
VALUES = st.integers(0, 3)
ROWS = st.tuples(VALUES, VALUES, VALUES)
CHANGES = st.tuples(
    st.sampled_from(sorted(TABLES)),
    st.lists(ROWS, max_size=4),
    st.sampled_from(["put first", "delete first", "only insert", "delete all"]),
)


def made() -> list[Database]:
    databases = [make_database(backend) for backend in BACKENDS]
    for database in databases:
        for text, _ in TABLES.values():
            database.sql(text)
        for name, text in VIEWS.items():
            database.create_view(name, text)
    return databases


def steps_of(held: Rows, table: str, rows: Sequence[Any], how: str) -> list[tuple[str, str, Any]]:
    """The steps of a batch; those that only insert may break the key."""
    width = TABLES[table][1]
    fresh = {row[:width]: row for row in rows}
    old = [held[table][key] for key in fresh if key in held[table]]
    if how == "only insert":
        return [("insert", table, list(rows))]
    if how == "delete all":
        return [("delete", table, old)]
    both = [("insert", table, list(fresh.values())), ("delete", table, old)]
    return both if how == "put first" else both[::-1]


def follow(held: Rows, steps: Sequence[tuple[str, str, Any]]) -> None:
    for method, table, rows in sorted(steps, key=lambda step: step[0]):
        for row in rows:
            key = row[: TABLES[table][1]]
            if method == "insert":
                held[table][key] = row
            else:
                held[table].pop(key)


def check(databases: Sequence[Database]) -> None:
    native, pure = databases
    backend = native._runtime.backend
    assert isinstance(backend, NativeBackend)
    backend.kernel.verify()
    for name in VIEWS:
        assert rows_of(native.view(name)) == rows_of(pure.view(name)), name


@settings(max_examples=examples(24), deadline=None)
@given(st.lists(CHANGES, max_size=10))
def test_views_over_keyed_tables_are_those_of_the_reference_engine(changes: Any) -> None:
    databases = made()
    held: Rows = {table: {} for table in TABLES}
    for table, rows, how in changes:
        steps = steps_of(held, table, rows, how)
        refused = []
        for database in databases:
            try:
                in_one_batch(database, *steps)
            except DataError:
                refused.append(database)
        assert refused in ([], databases)
        if not refused:
            follow(held, steps)
        check(databases)


def test_only_leaves_with_an_enforced_key_are_hashed_by_it() -> None:
    """UNIQUE is a promise, and a leaf without a column of the key has none."""
    hashed = {}
    for key in ("PRIMARY KEY (id)", "PRIMARY KEY (id, city)", "PRIMARY KEY (id, name)", "UNIQUE (id)"):
        database = Database()
        database.sql(f"CREATE TABLE c (id INT NOT NULL, city INT NOT NULL, name INT NOT NULL, {key})")
        database.sql("CREATE TABLE o (id INT, cust INT)")
        text = "SELECT o.id AS o, c.city AS city FROM o JOIN c ON o.cust = c.id"
        database.create_view("v", text, strategy="classical")
        plan = database._runtime.catalog.views["v"].plan
        assert plan is not None
        maps = plan.program.maps
        hashed[key] = [tuple(m.schema[i] for i in m.key) for m in maps if m.atoms == ("c",) and m.role == "leaf"]
    assert [*hashed.values()] == [[("cust",)], [("cust", "city")], [()], [()]]
