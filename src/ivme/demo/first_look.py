"""A first look, within seconds and without Spark: a view over a million orders, beside its recomputation.

`ivme demo first`. The recomputation is Arrow's own join and sum over the same rows, checked to be equal.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.table import Table

from ivme.database import Database

if TYPE_CHECKING:
    from rich.console import Console

CITIES = ("Amsterdam", "Istanbul", "Lagos", "Lima", "Oslo", "Osaka", "Quito", "Zurich")
VIEW = """SELECT c.city, COUNT(*) AS orders, SUM(o.price) AS total
FROM orders o JOIN customers c ON o.customer = c.id
GROUP BY c.city"""


def show_first_look(console: Console, orders: int = 1_000_000) -> None:
    """Loads orders, changes some, and prints the view with the times of its updates and of its recomputation."""
    customers, rows = _made(orders)
    with Database() as db:
        db.sql("CREATE TABLE customers (id INT PRIMARY KEY, city STRING)")
        db.sql("CREATE TABLE orders (id INT PRIMARY KEY, customer INT, price INT)")
        view = db.create_view("spent", VIEW)
        console.print(f"[bold]CREATE VIEW spent AS[/bold]\n{VIEW}\n")
        console.print(f"{view.explain().to_dict()['verdict']}\n")
        db.insert("customers", customers)
        seconds = _seconds(lambda: db.insert("orders", rows))
        console.print(f"{orders:,} orders loaded, and the view with them, in {seconds:.1f} s")
        new = [(orders + number, number % len(customers), 25) for number in range(1_000)]
        one = _seconds(lambda: db.insert("orders", new[:1]))
        many = _seconds(lambda: db.insert("orders", new[1:]))
        moved = _seconds(lambda: db.upsert("customers", [(7, "Oslo")]))
        added = pa.table(dict(zip(rows.column_names, zip(*new, strict=True), strict=True)))
        customers = customers.set_column(1, "city", pa.array(_moved(customers)))
        recomputed: list[tuple[str, int, int]] = []
        again = _seconds(lambda: recomputed.extend(_recomputed(customers, pa.concat_tables([rows, added]))))
        shown = sorted(view)
        assert sorted(recomputed) == shown, "the view is what recomputing it gives"
    result = Table(*("city", "orders", "total"), title="SELECT * FROM spent", title_justify="left")
    for city, number, total in shown:
        result.add_row(city, f"{number:,}", f"{total:,}")
    console.print(result)
    times = Table("from the change to the fresh answer", "", title_justify="left")
    for what, taken in (
        ("one order inserted", one),
        ("999 orders inserted", many),
        ("a customer moves to another city", moved),
        ("for comparison: Arrow recomputes the view", again),
    ):
        times.add_row(what, f"{taken * 1000:.2f} ms")
    console.print(times)


def _made(orders: int) -> tuple[pa.Table, pa.Table]:
    """Customers and their orders, the same ones each time."""
    chance = random.Random(7)
    number = max(10, orders // 50)
    customers = pa.table({"id": range(number), "city": [CITIES[chance.randrange(len(CITIES))] for _ in range(number)]})
    buyers = pa.array([chance.randrange(number) for _ in range(orders)])
    prices = pa.array([chance.randrange(5, 200) for _ in range(orders)])
    return customers, pa.table({"id": range(orders), "customer": buyers, "price": prices})


def _moved(customers: pa.Table) -> list[str]:
    cities: list[str] = customers["city"].to_pylist()
    cities[7] = "Oslo"
    return cities


def _recomputed(customers: pa.Table, orders: pa.Table) -> list[tuple[str, int, int]]:
    joined = orders.join(customers, keys="customer", right_keys="id", join_type="inner")
    found = joined.group_by("city").aggregate([("price", "count"), ("price", "sum")])
    return [(row["city"], row["price_count"], row["price_sum"]) for row in found.to_pylist()]


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
