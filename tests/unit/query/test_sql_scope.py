from __future__ import annotations

import pytest

from ivme.errors import UnknownNameError, UnsupportedError
from ivme.query.model import table
from ivme.query.sql import parse_sql

TABLES = [table("Orders", ["Id", "customer", "item"]), table("customers", ["id", "city"]), table("db.log", ["at"])]


def refusal(text: str, declared: bool = True) -> tuple[str, str]:
    with pytest.raises(UnknownNameError) as raised:
        parse_sql(text, TABLES if declared else ())
    return raised.value.message, raised.value.instead


def test_names_are_case_insensitive_and_keep_their_declared_spelling() -> None:
    query = parse_sql("SELECT O.ID FROM ORDERS o WHERE O.ITEM = 3", TABLES)
    assert (query.output, query.atoms[0].relation, str(query.atoms[0].where)) == (("Id",), "Orders", "item = 3")


def test_quoted_names_are_exact() -> None:
    assert parse_sql("SELECT `Id` FROM `Orders`", TABLES).output == ("Id",)
    assert refusal("SELECT `id` FROM Orders") == ("there is no column 'id' in Orders", "did you mean Id?")
    assert refusal("SELECT Id FROM `orders`") == ("there is no table 'orders'", "did you mean Orders?")


def test_an_unknown_table_or_column_names_the_near_ones() -> None:
    assert refusal("SELECT id FROM customer") == ("there is no table 'customer'", "did you mean customers?")
    assert refusal("SELECT o.itm FROM orders o") == ("there is no column 'itm' in o", "did you mean item?")
    assert refusal("SELECT c.id FROM orders o") == (
        "no table of this part of the query is called 'c'",
        "use one of o",
    )


def test_an_ambiguous_column_is_refused() -> None:
    assert refusal("SELECT id FROM orders o, customers c") == ("the column 'id' is ambiguous", "write o.id or c.id")


def test_an_unambiguous_column_needs_no_table() -> None:
    query = parse_sql("SELECT item FROM orders JOIN customers c ON customer = c.id WHERE city = :c", TABLES)
    assert str(query) == "Q(item | city) = Orders(customer, item), customers(customer, city)"


def test_a_column_of_using_needs_no_table() -> None:
    assert parse_sql("SELECT id FROM orders JOIN customers USING (id)", TABLES).output == ("Id",)
    query = parse_sql(
        "SELECT x.at FROM db.log x JOIN db.log y USING (at) JOIN db.log z USING (at) WHERE at = 1", TABLES
    )
    assert str(query) == "Q(at | .) = db.log(at), db.log(at), db.log(at)"


def test_using_sees_only_its_own_part_of_from() -> None:
    text = "SELECT o.id FROM orders o, customers a JOIN customers b USING (id)"
    assert str(parse_sql(text, TABLES)) == "Q(o_Id | .) = Orders(o_Id), customers(a_id), customers(a_id)"


def test_on_sees_only_its_own_part_of_from() -> None:
    message, _ = refusal("SELECT o.id FROM orders o, customers a JOIN customers b ON o.id = b.id")
    assert message == "no table of this part of the query is called 'o'"


def test_a_qualified_table_is_called_by_its_last_name() -> None:
    assert parse_sql("SELECT log.at FROM db.log", TABLES).atoms[0].alias == "log"


def test_two_tables_need_two_names() -> None:
    with pytest.raises(UnsupportedError, match="two tables of FROM are called 'customers'"):
        parse_sql("SELECT city FROM customers, customers", TABLES)


def test_undeclared_tables_have_the_columns_that_are_mentioned_in_order() -> None:
    query = parse_sql("SELECT x.b, y.c FROM t x JOIN t y ON x.a = y.c WHERE y.d > 1")
    (found,) = query.tables
    assert (found.name, found.column_names, found.inferred) == ("t", ("b", "c", "a", "d"), True)


def test_an_undeclared_table_alone_owns_unqualified_columns() -> None:
    assert parse_sql("SELECT b FROM t WHERE a = 1").tables[0].column_names == ("b", "a")


def test_unqualified_columns_of_several_undeclared_tables_are_refused() -> None:
    assert refusal("SELECT x FROM t, u", declared=False) == (
        "which table has the column 'x' is not known",
        "qualify it, as in t.x, or declare the tables",
    )


def test_a_star_over_an_undeclared_table_is_refused() -> None:
    assert refusal("SELECT t.* FROM t", declared=False) == (
        "* needs the columns of t",
        "declare the table, or name columns",
    )


def test_undeclared_columns_that_differ_in_case_only_are_refused() -> None:
    message, _ = refusal("SELECT `a`, `A` FROM t", declared=False)
    assert message == "the columns of t would differ in case only: 'A'"


def test_an_alias_of_select_may_be_grouped_by_over_an_undeclared_table() -> None:
    query = parse_sql("SELECT LOWER(city) AS c, COUNT(*) FROM t GROUP BY c")
    assert (query.output, query.tables[0].column_names) == (("lower_city",), ("city",))


def test_tables_may_be_given_by_name() -> None:
    assert parse_sql("SELECT at FROM db.log", {"db.log": TABLES[2]}).tables == (TABLES[2],)
