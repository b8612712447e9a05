"""What keys and references do for plans: on worked examples."""

from __future__ import annotations

from typing import Any

import pytest

import ivme
from ivme.plan.explain.explanation import Explanation
from ivme.query.model import Table, table

AIRPORTS = table("airports", {"id": "int", "city": "string"}, primary_key="id")
FLIGHTS = table("flights", {"no": "string", "src": "int", "dst": "int"})
CUSTOMERS = table("customers", {"id": "int", "city": "string"}, primary_key="id")
ORDERS = table("orders", {"id": "int", "customer": "int", "price": "int"}, primary_key="id")
FLIGHTS_BY_CITY = """
    SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id
    WHERE a.city = :origin AND b.city = :dest
"""
BY_CITY = "SELECT c.city, SUM(o.price) AS total FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city"
LINEITEM = {"l_orderkey": "int", "l_linenumber": "int", "l_partkey": "int", "l_suppkey": "int", "l_price": "int"}
TPCH = (
    table("part", {"p_partkey": "int", "p_name": "string"}, primary_key="p_partkey"),
    table("supplier", {"s_suppkey": "int", "s_nationkey": "int"}, primary_key="s_suppkey"),
    table("lineitem", LINEITEM, primary_key=("l_orderkey", "l_linenumber")),
    table(
        "partsupp",
        {"ps_partkey": "int", "ps_suppkey": "int", "ps_cost": "int"},
        primary_key=("ps_partkey", "ps_suppkey"),
    ),
    table("orders", {"o_orderkey": "int", "o_orderdate": "date"}, primary_key="o_orderkey"),
    table("nation", {"n_nationkey": "int", "n_name": "string"}, primary_key="n_nationkey"),
)
Q9 = """
    SELECT n_name, YEAR(o_orderdate) AS year, SUM(l_price) AS revenue, SUM(ps_cost) AS cost
    FROM part, supplier, lineitem, partsupp, orders, nation
    WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
      AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
    GROUP BY n_name, YEAR(o_orderdate)
"""


def _explained(text: str, *tables: Table, **options: Any) -> tuple[Explanation, dict[str, str]]:
    found = ivme.explain(text, tables, **options)
    return found, {name: str(bound) for name, bound in found.updates.items()}


def test_a_flight_costs_a_few_look_ups_and_an_airport_its_flights() -> None:
    found, updates = _explained(FLIGHTS_BY_CITY, FLIGHTS, AIRPORTS)
    assert updates == {"flights": "O(1)", "airports": "O(N)"}
    assert [str(each) for each in (found.update, found.space, found.delay)] == ["O(N)", "O(N)", "O(1)"]
    assert found.strategy == "view-tree"
    assert "A change of flights costs a few look-ups, whatever the size; one of airports" in str(found).replace(
        "\n", " "
    )


def test_orders_by_the_city_of_their_customers_cost_a_few_look_ups_for_both_tables() -> None:
    found, updates = _explained(BY_CITY, ORDERS, CUSTOMERS)
    assert updates == {"orders": "O(1)", "customers": "O(1)"}
    assert (found.strategy, found.lower_bound, str(found.space)) == ("view-tree", None, "O(N)")


def test_without_the_key_the_same_query_has_heavy_and_light_parts() -> None:
    keyless = table("customers", {"id": "int", "city": "string"})
    found, updates = _explained(BY_CITY, ORDERS, keyless)
    assert (found.strategy, len(set(updates.values()))) == ("skew", 1)


def test_the_join_of_tpch_query_9_is_linear_in_space_and_constant_for_lineitems() -> None:
    found, updates = _explained(Q9, *TPCH)
    assert updates["lineitem"] == "O(1)"
    assert {updates[name] for name in ("part", "supplier", "partsupp", "orders", "nation")} <= {"O(1)", "O(N)"}
    assert [str(each) for each in (found.update, found.space, found.preprocessing)] == ["O(N)", "O(N)", "O(N)"]


def test_an_insert_into_the_table_that_holds_the_key_intersects_two_sets() -> None:
    """The reduct of R(k,v), S(y,v), G(k,y) with k and y keys of G is q-hierarchical, which says too much."""
    keyed = table("G", {"k": "int", "y": "int"}, primary_key="k", unique=["y"])
    pairs = (table("R", {"k": "int", "v": "int"}), table("S", {"y": "int", "v": "int"}), keyed)
    _, updates = _explained("Q(. | .) = R(K, V), S(Y, V), G(K, Y)", *pairs)
    assert updates == {"R": "O(1)", "S": "O(1)", "G": "O(N)"}


def _star(*, keys: bool = True, sizes: dict[str, int] | None = None) -> tuple[Table, ...]:
    rows = (sizes or {}).get
    return (
        table("R", {"a": "int"}, primary_key="a" if keys else None, rows=rows("R")),
        table("F", {"a": "int", "b": "int"}, rows=rows("F")),
        table("T", {"b": "int"}, primary_key="b" if keys else None, rows=rows("T")),
    )


STAR = "Q(. | .) = R(A), F(A, B), T(B)"


def test_a_star_is_as_hard_with_keys_as_without_and_its_facts_are_cheap() -> None:
    found, updates = _explained(STAR, *_star())
    assert found.strategy == "view-tree"
    assert updates["F"] == "O(1)"
    assert sorted(updates.values()) == ["O(1)", "O(1)", "O(N)"]
    assert found.lower_bound is not None
    assert "for changes of all tables" in found.lower_bound.text


def test_the_dimension_whose_changes_are_costly_decides_by_how_often_it_changes() -> None:
    sizes = {"R": 100, "F": 1_000_000, "T": 100}
    assert _explained(STAR, *_star(sizes=sizes))[0].strategy == "view-tree"
    assert _explained(STAR, *_star(sizes=sizes), changes={"F": 10**6})[0].strategy == "view-tree"
    assert _explained(STAR, *_star(sizes=sizes), changes={"R": 100, "T": 100})[0].strategy == "skew"
    assert _explained(STAR, *_star(keys=False))[0].strategy == "skew"


def test_changes_that_name_no_table_or_have_no_number_are_refused() -> None:
    with pytest.raises(ivme.IvmeError, match="not a table of the query"):
        ivme.explain(STAR, _star(), changes={"X": 1})
    for wrong in ({"F": -1}, {"F": "many"}, 3):
        with pytest.raises(ivme.IvmeError, match="changes"):
            ivme.explain(STAR, _star(), changes=wrong)


def test_a_referenced_row_costs_a_look_up_if_it_comes_first_and_goes_last() -> None:
    flights = table(
        "flights",
        {"no": "string", "src": "int", "dst": "int"},
        references={"src": "airports", "dst": "airports (id)"},
    )
    found, updates = _explained(FLIGHTS_BY_CITY, flights, AIRPORTS)
    assert updates == {"flights": "O(1)", "airports": "O(1) amortised"}
    note = next(each for each in found.notes if "come before and go after" in each)
    assert "rows of flights that reference them; a change of a referenced row in place costs O(N)" in note


def test_a_reference_on_other_columns_than_those_joined_promises_nothing() -> None:
    flights = table("flights", {"no": "string", "src": "int", "dst": "int"}, references={"src": "airports"})
    assert _explained(FLIGHTS_BY_CITY, flights, AIRPORTS)[1]["airports"] == "O(N)"


def test_no_lower_bound_is_claimed_where_rows_reference_others() -> None:
    r, _, t = _star()
    facts = table("F", {"a": "int", "b": "int"}, references={"a": "R", "b": "T"})
    found, updates = _explained(STAR, r, facts, t)
    assert found.lower_bound is None
    assert {*updates.values()} <= {"O(1)", "O(1) amortised"}
    assert any("while rows of F reference them" in note for note in found.notes)


def test_static_dimensions_have_no_cost_of_their_own() -> None:
    _, updates = _explained(FLIGHTS_BY_CITY, FLIGHTS, AIRPORTS, static="airports")
    assert updates == {"flights": "O(1)"}


def test_the_groups_of_a_view_are_a_key_for_the_views_on_it() -> None:
    with ivme.Database() as database:
        database.create_table("orders", {"id": "int", "customer": "int", "price": "int"}, primary_key="id")
        database.create_table("visits", {"customer": "int"})
        database.create_view("totals", "SELECT customer, SUM(price) AS total FROM orders GROUP BY customer")
        assert database.relation("totals").keys == (("customer",),)
        text = "SELECT t.total, COUNT(*) AS n FROM visits v JOIN totals t ON v.customer = t.customer GROUP BY t.total"
        assert str(database.create_view("by_total", text).explain().update) == "O(1)"


def test_the_live_sizes_of_tables_are_looked_at_when_a_view_is_made() -> None:
    with ivme.Database() as database:
        database.create_table("R", {"a": "int"}, primary_key="a")
        database.create_table("F", {"a": "int", "b": "int"})
        database.create_table("T", {"b": "int"}, primary_key="b")
        database.insert("R", [(i,) for i in range(50)])
        database.insert("T", [(0,)])
        database.insert("F", [(i % 50, i) for i in range(500)])
        made = database.create_view("q", STAR)
        assert {name: str(bound) for name, bound in made.explain().updates.items()}["R"] == "O(1)"
