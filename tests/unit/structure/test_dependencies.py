"""Which variables of a query determine which others."""

from __future__ import annotations

import pytest

from ivme.errors import SchemaError
from ivme.query.model import ForeignKey, Query, Table, table
from ivme.query.parse import parse
from ivme.query.typed import typed
from ivme.structure.dependencies import dependencies_of

ORDERS = table("orders", {"id": "int", "customer": "int", "price": "int"}, primary_key="id")
CUSTOMERS = table("customers", {"id": "int", "city": "string", "mail": "string"}, primary_key="id")


def _found(text: str, *tables: Table) -> list[str]:
    query = parse(text, tables)
    assert isinstance(query, Query)
    return [str(each) for each in dependencies_of(typed(query).query).all]


def test_a_primary_key_determines_all_columns_of_its_atom() -> None:
    text = "SELECT c.city, o.id FROM orders o JOIN customers c ON o.customer = c.id"
    assert _found(text, ORDERS, CUSTOMERS) == ["orders: id -> customer", "customers: customer -> city"]


def test_a_key_of_which_a_column_is_not_read_determines_nothing() -> None:
    lines = table("lines", {"order": "int", "number": "int", "part": "int"}, primary_key=("order", "number"))
    assert _found("SELECT order, part FROM lines", lines) == []
    assert _found("SELECT order, part FROM lines WHERE number = 1", lines) == ["lines: order -> part"]


def test_a_constant_follows_from_nothing() -> None:
    text = "SELECT city, mail FROM customers WHERE city = 'Oslo'"
    assert _found(text, table("customers", {"city": "string", "mail": "string"})) == ["customers: ∅ -> city"]


def test_an_input_is_not_a_constant() -> None:
    text = "SELECT id FROM customers WHERE city = :city"
    assert _found(text, table("customers", {"id": "int", "city": "string"})) == []


def test_a_computed_column_follows_from_what_it_is_computed_from() -> None:
    plain = table("t", {"a": "int", "b": "int"})
    (found,) = _found("SELECT a, b, a + b AS c FROM t", plain)
    assert found.startswith("t: a, b -> ")


def test_equal_columns_of_an_atom_determine_each_other_and_stand_for_each_other_in_keys() -> None:
    pairs = table("pairs", {"a": "int", "b": "int", "c": "int"}, primary_key="a")
    assert any("-> c" in each for each in _found("SELECT b, c FROM pairs WHERE a = b", pairs))


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("SELECT c.mail, c.city FROM customers c", False),
        ("SELECT c.mail, c.city FROM customers c WHERE c.mail IS NOT NULL", True),
        ("SELECT c.mail, c.city FROM customers c WHERE c.mail > 'a'", True),
        ("SELECT c.mail, c.city FROM customers c JOIN letters l ON l.mail = c.mail", True),
    ],
)
def test_a_unique_column_that_may_be_null_determines_the_others_only_where_it_is_not(text: str, holds: bool) -> None:
    customers = table("customers", {"mail": "string", "city": "string"}, unique=["mail"])
    letters = table("letters", {"mail": "string"})
    assert any("mail -> city" in each for each in _found(text, customers, letters)) == holds


def test_a_unique_column_that_is_declared_not_null_is_a_key() -> None:
    customers = table("customers", {"mail": "string", "city": "string"}, unique=["mail"], not_null=["mail"])
    assert _found("SELECT mail, city FROM customers", customers) == ["customers: mail -> city"]


def test_the_closure_uses_the_dependencies_of_some_atoms_only() -> None:
    query = parse("SELECT c.city, o.id FROM orders o JOIN customers c ON o.customer = c.id", (ORDERS, CUSTOMERS))
    assert isinstance(query, Query)
    found = dependencies_of(query)
    assert found.closure({"id"}) == {"id", "customer", "city"}
    assert found.closure({"id"}, ["orders"]) == {"id", "customer"}


def test_a_projection_shows_the_dependencies_whose_key_it_has() -> None:
    query = parse("SELECT id, city, mail FROM customers", (CUSTOMERS,))
    assert isinstance(query, Query)
    found = dependencies_of(query)
    assert found.of("customers", frozenset({"id", "mail"})) == ((frozenset({"id"}), frozenset({"mail"})),)
    assert found.of("customers", frozenset({"city", "mail"})) == ()


def test_references_are_read_in_several_forms() -> None:
    columns = {"a": "int", "b": "int", "c": "int"}
    made = table("t", columns, references={"a": "customers", "b, c": "shops (city, id)"})
    assert made.references == (ForeignKey(("a",), "customers"), ForeignKey(("b", "c"), "shops", ("city", "id")))
    assert str(made.references[1]) == "(b, c) REFERENCES shops (city, id)"


@pytest.mark.parametrize(
    "promise",
    [{"unique": ["x"]}, {"not_null": ["x"]}, {"references": {"x": "t"}}, {"references": {"a": 3}}, {"unique": [["x"]]}],
)
def test_a_promise_about_a_column_that_is_not_there_is_refused(promise: dict[str, object]) -> None:
    with pytest.raises(SchemaError):
        table("t", {"a": "int"}, **promise)  # type: ignore[arg-type]
