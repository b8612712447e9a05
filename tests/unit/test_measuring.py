"""What a view really costs, counted on a copy."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import QueryError
from ivme.plan.explain.measurement import MeasuredTable


@pytest.fixture
def shop() -> Database:
    db = Database()
    db.sql("""
        CREATE TABLE customers (id BIGINT PRIMARY KEY, city STRING);
        CREATE TABLE orders (customer BIGINT, amount DECIMAL(8, 2));
        CREATE TABLE log (customer BIGINT) WITH (append_only = true);
        CREATE TABLE cities (city STRING) WITH (static = true);
    """)
    db.insert("customers", [(number, f"city {number % 4}") for number in range(200)])
    db.insert("orders", [(number % 200, number % 7) for number in range(3000)])
    db.insert("log", [(number % 200,) for number in range(1000)])
    db.insert("cities", [(f"city {number}",) for number in range(4)])
    return db


def counted(explanation: Any) -> dict[str, MeasuredTable]:
    return {each.table: each for each in explanation.measured.tables}


def test_operations_are_counted_for_each_table_and_nothing_is_changed(shop: Database) -> None:
    text = "SELECT c.city, SUM(o.amount) AS t FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.city"
    view = shop.create_view("spent", text)
    feed, before = view.changes(), (sorted(view), shop.entries(), shop.views)
    found = counted(view.explain(analyze=True))
    assert {name: (each.rows, each.tried, each.promised) for name, each in found.items()} == {
        "customers": (200, 100, "O(1)"),
        "orders": (3000, 100, "O(1)"),
    }
    assert all(0 < each.mean <= each.most < 20 for each in found.values())
    assert (sorted(view), shop.entries(), shop.views) == before
    assert list(feed) == []
    assert view.explain().measured is None


def test_a_cost_that_grows_is_seen_to_grow() -> None:
    counts = []
    for size in (50, 200):
        db = Database()
        db.create_table("r", {"a": "int", "b": "int"})
        db.create_table("s", {"b": "int", "c": "int"})
        db.insert("r", [(number, 0) for number in range(size)])
        db.insert("s", [(0, number) for number in range(size)])
        view = db.create_view("v", "SELECT DISTINCT r.a, s.c FROM r JOIN s ON r.b = s.b", strategy="classical")
        counts.append(counted(view.explain(analyze=True))["r"].mean)
    assert counts[1] > 3 * counts[0]


def test_tables_that_only_grow_and_those_that_never_change(shop: Database) -> None:
    shop.sql("""
        CREATE VIEW visits AS SELECT c.city, COUNT(*) AS n
        FROM log l JOIN customers c ON c.id = l.customer JOIN cities USING (city) GROUP BY c.city
    """)
    found = counted(shop.view("visits").explain(analyze=True))  # type: ignore[call-arg]
    assert (found["log"].rows, found["log"].tried) == (1000, 100)
    assert (found["cities"].tried, found["cities"].promised) == (0, "static")


def test_views_on_views_and_blocks_are_counted_with_what_they_are_built_on(shop: Database) -> None:
    shop.sql("CREATE VIEW spent AS SELECT customer, SUM(amount) AS t FROM orders GROUP BY customer")
    shop.sql("CREATE VIEW best AS SELECT customer, t FROM spent ORDER BY t DESC LIMIT 3")
    found = shop.view("best").explain(analyze=True)  # type: ignore[call-arg]
    assert [each.table for each in found.measured.tables] == ["orders"]
    assert found.measured.rows_read == 3
    assert "measured on a copy" in str(found)


def test_explain_analyze_is_a_statement(shop: Database) -> None:
    shown = str(shop.sql("EXPLAIN ANALYZE SELECT amount FROM orders WHERE customer = :customer"))
    assert "    orders  3,000  O(1)" in shown
    assert "operations a row" not in shown
    assert shop.views == ()
    with pytest.raises(QueryError, match="no column"):
        shop.sql("EXPLAIN ANALYZE SELECT nothing FROM orders")
    with pytest.raises(QueryError, match="only a SELECT"):
        shop.sql("EXPLAIN ANALYZE")


def test_an_empty_table_is_nothing_to_measure() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    found = counted(db.create_view("v", "SELECT a, COUNT(*) AS n FROM r GROUP BY a").explain(analyze=True))
    assert (found["r"].tried, found["r"].most) == (0, 0)


def test_the_latest_requests_are_asked_again_by_the_plan_that_the_view_has() -> None:
    db = Database(replan=False)
    for name in "rst":
        db.create_table(name, {"x": "int", "y": "int"})
        db.insert(name, [(number % 10, number % 9) for number in range(90)])
    text = "SELECT COUNT(*) AS n FROM r JOIN s ON r.y = s.x JOIN t ON s.y = t.x WHERE r.x = :a"
    view = db.create_view("v", text)
    assert view.explain(analyze=True).measured.requests == 0  # type: ignore[union-attr]
    for number in range(5):
        view.scalar(a=number)
    kept = view.explain(analyze=True)
    planned, _, _ = db.definitions.planned("v", text, {"strategy": "request"})
    assert planned.plan is not None
    with db.definitions.runtime.lock, db.definitions.change():
        db.definitions.runtime.installation.replace_plan(view.state, planned.explanation, planned.plan)
    asked = view.explain(analyze=True)
    assert ("view-tree", "request") == (kept.strategy, asked.strategy)
    assert kept.measured is not None
    assert asked.measured is not None
    assert (5, 5) == (kept.measured.requests, asked.measured.requests)
    assert kept.measured.operations_a_request < asked.measured.operations_a_request / 4
    assert "5 requests, repeated" in str(asked)
