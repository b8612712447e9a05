"""Sums and averages of decimals have 38 digits each, and no decimal holds both: they were not comparable in a join by
an inequality (TPC-DS 1, 24, 30, 58, 65 and 81 were refused)."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from ivme.database import Database
from ivme.errors import IvmeError

ABOVE_AVERAGE = """WITH totals AS (SELECT store, customer, SUM(price) AS total FROM sales GROUP BY store, customer)
    SELECT one.store, one.customer FROM totals AS one
    WHERE one.total > (SELECT AVG(total) * 1.2 FROM totals AS other WHERE one.store = other.store)"""


def test_a_sum_is_compared_with_a_share_of_an_average() -> None:
    rng, db = random.Random(5), Database()
    db.create_table("sales", {"store": "int", "customer": "int", "price": "decimal(7, 2)"})
    view = db.create_view("v", ABOVE_AVERAGE)
    rows: list[tuple[int, int, Decimal]] = []
    for _ in range(6):
        new = [(rng.randrange(3), rng.randrange(5), Decimal(rng.randrange(9999)) / 100) for _ in range(6)]
        gone = [rows.pop() for _ in range(min(len(rows), 2))]
        with db.batch() as batch:
            batch.delete("sales", gone)
            batch.insert("sales", new)
        rows += new
        totals: dict[tuple[int, int], Decimal] = {}
        for store, customer, price in rows:
            totals[store, customer] = totals.get((store, customer), Decimal(0)) + price
        stores = {store: [n for (s, _), n in totals.items() if s == store] for store, _ in totals}
        means = {store: sum(each, Decimal(0)) / len(each) for store, each in stores.items()}
        assert sorted(view) == sorted(key for key, total in totals.items() if total > means[key[0]] * Decimal("1.2"))
        view.verify()


def test_what_has_more_digits_than_a_decimal_is_refused_and_changes_nothing() -> None:
    db = Database()
    db.create_table("a", {"x": "decimal(38, 0)"})
    db.create_table("b", {"y": "decimal(38, 10)"})
    view = db.create_view("v", "SELECT x, y FROM a JOIN b ON a.x < b.y")
    db.insert("a", [(Decimal(1),)])
    db.insert("b", [(Decimal("1.5"),)])
    with pytest.raises(IvmeError):
        db.insert("a", [(Decimal(10) ** 37,)])
    assert [(Decimal(1), Decimal("1.5"))] == list(view)
    view.verify()
