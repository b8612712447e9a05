"""A gallery of views for `ivme demo gallery`: one for each thing that an explanation has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ivme.query.model import Table, table


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A view with a title, its tables (none: those that the text implies), and options."""

    title: str
    query: str
    tables: tuple[Table, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


_FLIGHTS = (
    table("airports", {"id": "int", "name": "string", "city": "string"}, primary_key="id"),
    table("flights", {"dep": "int", "arr": "int", "no": "string"}),
)

_TPCH = (
    table("customer", {"c_custkey": "int", "c_mktsegment": "string"}, primary_key="c_custkey"),
    table(
        "orders",
        {"o_orderkey": "int", "o_custkey": "int", "o_orderdate": "date", "o_shippriority": "int"},
        primary_key="o_orderkey",
    ),
    table(
        "lineitem",
        {
            "l_orderkey": "int",
            "l_linenumber": "int",
            "l_extendedprice": "decimal(12, 2)",
            "l_discount": "decimal(4, 2)",
            "l_shipdate": "date",
        },
        primary_key=("l_orderkey", "l_linenumber"),
    ),
)

GALLERY = (
    Exhibit(
        "What each customer ordered and paid",
        """SELECT o.customer, SUM(o.amount) AS ordered, COUNT(*) AS pairs
FROM orders o JOIN payments p ON p.customer = o.customer
GROUP BY o.customer""",
        (
            table("orders", {"id": "int", "customer": "int", "amount": "decimal(12, 2)"}),
            table("payments", {"customer": "int", "paid": "date"}),
        ),
    ),
    Exhibit(
        "Counting triangles (sources 000 and 001)", "Q(. | .) = R(A, B), S(B, C), T(C, A)", options={"epsilon": 0.5}
    ),
    Exhibit("The triangles of a given node (source 003, Example 3.3)", "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"),
    Exhibit("Is this a triangle? (source 003, section 6.5)", "Q(. | A, B, C) = R(A, B), S(B, C), T(C, A)"),
    Exhibit(
        "A 4-cycle through two given corners (source 003, Example 5.29)",
        "Q(A, C | B, D) = R(A, B), S(B, C), T(C, D), U(A, D)",
    ),
    Exhibit(
        "Flights between two cities (source 003, Example 1.1)",
        """SELECT f.no
FROM flights f JOIN airports a1 ON a1.id = f.dep JOIN airports a2 ON a2.id = f.arr
WHERE a1.city = :origin AND a2.city = :dest""",
        _FLIGHTS,
    ),
    Exhibit(
        "Revenue of unshipped orders (after TPC-H Q3)",
        """SELECT l.l_orderkey, o.o_orderdate, o.o_shippriority,
       SUM(l.l_extendedprice * (1 - l.l_discount)) AS revenue
FROM customer c JOIN orders o ON c.c_custkey = o.o_custkey
JOIN lineitem l ON l.l_orderkey = o.o_orderkey
WHERE c.c_mktsegment = 'BUILDING'
AND o.o_orderdate < DATE '1995-03-15' AND l.l_shipdate > DATE '1995-03-15'
GROUP BY l.l_orderkey, o.o_orderdate, o.o_shippriority""",
        _TPCH,
    ),
    Exhibit(
        "The cheapest and most expensive offer for each item",
        """SELECT i.name, MIN(o.price) AS cheapest, MAX(o.price) AS highest
FROM items i JOIN offers o ON o.item = i.name
GROUP BY i.name""",
        (
            table("items", {"name": "string", "category": "string"}),
            table("offers", {"item": "string", "seller": "string", "price": "decimal(10, 2)"}),
        ),
    ),
    Exhibit("A smallest query in CQAP1 (source 003, Example 3.9)", "Q(A | .) = R(A, B), S(B)"),
)
"""The queries of the sources are as printed there."""
