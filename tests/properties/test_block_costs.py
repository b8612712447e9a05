"""What blocks cost, counted in operations of the kernel: anti- and outer joins by key do not grow with the tables."""

from __future__ import annotations

import pytest

from ivme.database import Database

BY_KEY = {
    "outer": "SELECT c.id, COUNT(o.id) AS n, SUM(o.v) AS s FROM c LEFT JOIN o ON o.c = c.id GROUP BY c.id",
    "anti": "SELECT c.id, COUNT(*) AS n FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.c = c.id) GROUP BY c.id",
    "except": "SELECT id FROM c EXCEPT SELECT c FROM o",
}


def _operations(query: str, size: int) -> float:
    """The operations of an update, on the average over changes of both tables that make keys come and go."""
    database = Database()
    database.create_table("c", {"id": "int"})
    database.create_table("o", {"id": "int", "c": "int", "v": "int"})
    database.insert("c", [(n,) for n in range(size)])
    database.insert("o", [(n, n // 2, n) for n in range(size)])
    view = database.create_view("v", query)
    before = view.stats()["operations"]
    changes = 0
    for n in range(0, 40, 2):
        for rows in ([(size + n, size - 1 - n, 1)], [(size + n + 1, n, 1)]):
            database.insert("o", rows)
            database.delete("o", rows)
            changes += 2
        database.delete("c", [(n,)])
        database.insert("c", [(n,)])
        changes += 2
    return float(view.stats()["operations"] - before) / changes


@pytest.mark.parametrize("query", BY_KEY.values(), ids=BY_KEY)
def test_an_update_costs_the_same_whatever_the_size(query: str) -> None:
    small, large = (_operations(query, size) for size in (200, 6400))

    assert large <= 1.25 * small


def _left_joins(count: int, keys: int) -> tuple[float, int]:
    """The operations of filling a table that is joined with others, and the bytes of the view at the end."""
    database = Database()
    database.create_table("r", {"a": "int"})
    joins = ""
    for n in range(count):
        database.create_table(f"s{n}", {"a": "int", "b": "int"})
        database.insert(f"s{n}", [(a, a) for a in range(0, keys, 2)])
        joins += f" LEFT JOIN s{n} ON s{n}.a = r.a"
    columns = ", ".join(f"s{n}.b AS b{n}" for n in range(count))
    view = database.create_view("v", f"SELECT r.a, {columns} FROM r{joins}")
    assert sum(len(block.reads) > 1 and block.name == "v" for block in view.explain().blocks) == 1
    before = view.stats()["operations"]
    database.insert("r", [(a,) for a in range(keys)])
    assert len(list(view)) == keys
    return float(view.stats()["operations"] - before), view.stats()["memory_bytes"]


def test_left_joins_cost_in_proportion_to_their_number() -> None:
    few, many = (_left_joins(count, 4000) for count in (2, 10))

    assert many[0] <= 6 * few[0]
    assert many[1] <= 6 * few[1]


def test_a_semi_join_costs_what_a_join_with_distinct_keys_costs() -> None:
    """The view with IN, and the same with a view of the distinct keys in its place, count the same operations."""

    def operations(views: dict[str, str]) -> float:
        database = Database()
        database.create_table("r", {"a": "int", "b": "int"})
        database.create_table("s", {"b": "int", "c": "int"})
        made = [database.create_view(name, query) for name, query in views.items()]
        for n in range(300):
            database.insert("r", [(n, n % 40)])
            database.insert("s", [(n % 60, n)])
        for n in range(0, 300, 3):
            database.delete("s", [(n % 60, n)])
        assert list(made[-1]) == [(sum(n % 40 in {m % 60 for m in range(300) if m % 3} for n in range(300)),)]
        return float(sum(view.stats()["operations"] for view in made))

    within = operations({"v": "SELECT COUNT(*) AS n FROM r WHERE b IN (SELECT b FROM s)"})
    apart = operations(
        {"keys": "SELECT DISTINCT b FROM s", "v": "SELECT COUNT(*) AS n FROM r JOIN keys ON keys.b = r.b"}
    )

    assert within <= apart


def test_rows_that_are_ordered_when_they_are_read_cost_an_update_nothing() -> None:
    """A customer whose orders are shown by their number: the more there are, the same it costs to change his city."""

    def operations(orders: int) -> tuple[int, dict[str, str]]:
        database = Database()
        database.create_table("c", {"id": "int", "city": "string"}, primary_key="id")
        database.sql("CREATE TABLE o (id INT PRIMARY KEY, c INT REFERENCES c, at INT)")
        query = "SELECT o.id, c.city FROM o JOIN c ON c.id = o.c WHERE c.id = :x ORDER BY o.at LIMIT 5"
        view = database.create_view("v", query)
        database.insert("c", [(1, "Bern")])
        database.insert("o", [(n, 1, n) for n in range(orders)])
        before = view.stats()["operations"]
        database.upsert("c", [(1, "Basel")])
        updates = {name: str(each) for name, each in view.explain().updates.items()}
        assert "v: ordered when it is read, so that an update costs it nothing" in str(view.explain())
        return view.stats()["operations"] - before, updates

    (few, told), (many, _) = operations(10), operations(1000)

    assert few == many
    assert told == {"o": "O(1)", "c": "O(1)"}
