"""A database with a view of each kind to look at."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal

from ivme.database import Database

CITIES = ("London", "Zurich", "Oslo", "Paris", "Rome", "Madrid", "Berlin", "Vienna")
DAY = date(2024, 2, 29)
STRANGE = "<img src=x onerror=alert(1)>"


def make_shop(db: Database) -> Database:
    """Flights between cities, orders and returns with a heavy customer, and who follows whom."""
    chosen = random.Random(3)
    db.create_table("flights", {"no": "string", "src": "int", "dst": "int"})
    db.create_table("airports", {"id": "int", "city": "string"}, primary_key="id", static=True)
    db.create_table("orders", {"customer": "int", "item": "int"})
    db.create_table("returns", {"customer": "int", "item": "int"})
    db.create_table("follows", {"a": "int", "b": "int"})
    db.create_table("odd", {"id": "int", "text": "string", "price": "decimal(12, 2)", "day": "date", "ok": "bool"})
    db.insert("airports", [(i, CITIES[i % 8]) for i in range(24)])
    db.create_view(
        "search",
        "SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id "
        "WHERE a.city = :origin AND b.city = :dest",
    )
    db.create_view(
        "per_city", "SELECT a.city, COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id GROUP BY a.city"
    )
    db.create_view(
        "bought_and_returned",
        "SELECT o.item, r.item AS other FROM orders o JOIN returns r ON o.customer = r.customer",
        strategy="skew",
        epsilon=0.5,
    )
    db.create_view("triangles", "Q(COUNT) = follows(A, B), follows(B, C), follows(C, A)")
    db.create_view("friends", "Q(B, C | A) = follows(A, B), follows(B, C), follows(C, A)")
    db.create_view("reach", "Q(X, Y) = closure(follows)")
    db.create_view("by_day", "SELECT id, text, price FROM odd WHERE day = :day AND ok = :ok")
    db.insert("flights", [(f"LX {i}", i % 24, (i * 7 + i // 24) % 24) for i in range(1200)])
    db.insert("orders", [(1, i) for i in range(120)] + [(i, i) for i in range(2, 400)])
    db.insert("returns", [(1, i) for i in range(80)] + [(i, i) for i in range(2, 300)])
    pairs = {(0, i) for i in range(1, 60)} | {(chosen.randrange(60), chosen.randrange(60)) for _ in range(200)}
    db.insert("follows", sorted(pairs))
    db.insert("odd", [(2**62 + 1, STRANGE, Decimal("12.50"), DAY, True), (7, None, None, DAY, True)])
    return db
