"""What an explanation tells to declare."""

from __future__ import annotations

from typing import Any

import ivme
from ivme.query.model import Table, table

ORDERS = table("orders", {"id": "int", "customer": "int", "price": "int"}, primary_key="id")
CUSTOMERS = table("customers", {"id": "int", "city": "string"})
AIRPORTS = {"id": "int", "city": "string"}
FLIGHTS = table("flights", {"no": "string", "src": "int", "dst": "int"})
BY_CITY = "SELECT c.city, SUM(o.price) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"
SEARCH = """
    SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id
    WHERE a.city = :origin AND b.city = :dest
"""


def _advice(text: str, *tables: Table, **options: Any) -> list[str]:
    return [note for note in ivme.explain(text, tables, **options).notes if note.startswith("declare ")]


def test_a_key_that_makes_updates_constant_is_told() -> None:
    found = _advice(BY_CITY, ORDERS, CUSTOMERS)
    assert found == ["declare customers.id as a primary key, if it is one, and this becomes O(1)"]


def test_what_is_told_comes_true() -> None:
    keyed = table("customers", {"id": "int", "city": "string"}, primary_key="id")
    assert str(ivme.explain(BY_CITY, [ORDERS, keyed]).update) == "O(1)"
    assert not _advice(BY_CITY, ORDERS, keyed)


def test_a_key_that_makes_facts_constant_is_told_with_what_remains() -> None:
    found = _advice(SEARCH, FLIGHTS, table("airports", AIRPORTS))
    told = "keeping the view takes O(N), and a change of flights O(1)"
    assert found == [f"declare airports.id as a primary key, if it is one, and {told}"]


def test_keys_that_help_only_together_are_told_together() -> None:
    facts = table("f", {"id": "int", "a": "int", "b": "int", "n": "int"})
    first, second = (table(name, {"id": "int", "x": "int"}) for name in ("s", "t"))
    found = _advice(
        "SELECT s.x, t.x AS y, SUM(f.n) AS n FROM f JOIN s ON f.a = s.id JOIN t ON f.b = t.id GROUP BY s.x, t.x",
        *(facts, first, second),
    )
    told = "this becomes O(N), and a change of f O(1)"
    assert found == [f"declare s.id and t.id as primary keys, if they are, and {told}"]


def test_references_are_told_where_the_key_is_declared() -> None:
    found = _advice(SEARCH, FLIGHTS, table("airports", AIRPORTS, primary_key="id"))
    assert found == [
        "declare references={'src': 'airports', 'dst': 'airports'} of flights, and a change of airports becomes "
        "O(1) amortised, if its rows come before and go after the rows that reference them"
    ]


def test_nothing_is_told_about_tables_that_nobody_declared_or_a_strategy_that_was_asked_for() -> None:
    assert not _advice("Q(A | .) = R(A, B), S(B)")
    assert not _advice(BY_CITY, ORDERS, CUSTOMERS, strategy="classical")
