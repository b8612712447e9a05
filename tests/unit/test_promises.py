"""UNIQUE, NOT NULL and REFERENCES: declared, kept in the directory, shown, and checked when somebody asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ivme
from ivme.errors import DataError, UnsupportedError
from ivme.query.ddl import parse_create_tables
from ivme.query.model import ForeignKey
from ivme.serve.description import describe_table
from ivme.shards.catalog import ShardCatalog
from ivme.tables import read_tables

CUSTOMERS: dict[str, str] = {"id": "int", "mail": "string", "city": "string"}
ORDERS: dict[str, str] = {"id": "int", "customer": "int"}


def _filled(database: ivme.Database) -> ivme.Database:
    database.create_table("customers", CUSTOMERS, primary_key="id", unique=["mail"], not_null=["city"])
    database.create_table("orders", ORDERS, primary_key="id", references={"customer": "customers"})
    return database


def test_promises_are_there_when_a_directory_is_opened_again(tmp_path: Path) -> None:
    with _filled(ivme.Database(tmp_path / "state")) as database:
        before = [database.relation(name) for name in ("customers", "orders")]
        database.checkpoint()
    with ivme.Database(tmp_path / "state") as database:
        assert before == [database.relation(name) for name in ("customers", "orders")]
        assert database.relation("orders").references == (ForeignKey(("customer",), "customers"),)


def test_promises_are_described() -> None:
    with _filled(ivme.Database()) as database:
        assert describe_table(database, "orders")["references"] == {"customer": "customers"}
        assert describe_table(database, "customers")["unique"] == (("mail",),)
        assert describe_table(database, "customers")["not_null"] == ("city",)


def test_the_catalog_of_shards_has_them() -> None:
    with _filled(ivme.Database()) as database:
        catalog = ShardCatalog((database.relation("customers"), database.relation("orders")), ())
    assert ShardCatalog.from_json(catalog.to_json()) == catalog


@pytest.mark.parametrize(
    ("table", "row", "problem"),
    [
        ("customers", (2, "a@x", "Oslo"), "declared UNIQUE"),
        ("customers", (2, "b@x", None), "declared NOT NULL"),
        ("orders", (1, 7), "there is no such row"),
    ],
)
def test_a_broken_promise_is_found_when_somebody_asks(table: str, row: tuple[Any, ...], problem: str) -> None:
    with _filled(ivme.Database()) as database:
        database.insert("customers", [(1, "a@x", "Oslo")])
        database.insert("orders", [(9, 1), (8, None)])
        database.check_promises()
        database.insert(table, [row])
        with pytest.raises(DataError, match=problem):
            database.check_promises()
        with pytest.raises(DataError, match=problem):
            database.check_promises(table)


def test_many_rows_may_have_null_in_a_unique_column() -> None:
    with _filled(ivme.Database()) as database:
        database.insert("customers", [(1, None, "Oslo"), (2, None, "Rome")])
        database.check_promises()


def test_a_column_that_is_dropped_takes_its_promises_with_it() -> None:
    with _filled(ivme.Database()) as database:
        database.drop_column("customers", "mail")
        database.drop_column("orders", "customer")
        assert not database.relation("customers").unique
        assert not database.relation("orders").references


def test_create_table_statements_say_them() -> None:
    text = """CREATE TABLE orders (
        id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customers, ticket INT UNIQUE,
        shop INT, city INT, UNIQUE (shop, city),
        CONSTRAINT place FOREIGN KEY (shop, city) REFERENCES shops (id, city))"""
    (made,) = parse_create_tables(text)
    assert made.unique == (("ticket",), ("shop", "city"))
    assert made.not_null == ("customer",)
    assert made.references == (
        ForeignKey(("customer",), "customers"),
        ForeignKey(("shop", "city"), "shops", ("id", "city")),
    )


@pytest.mark.parametrize(
    "constraint",
    ["REFERENCES customers ON DELETE CASCADE", "CHECK (customer > 0)", "REFERENCES customers (a, b)", "NULL"],
)
def test_other_constraints_are_refused(constraint: str) -> None:
    with pytest.raises(UnsupportedError):
        parse_create_tables(f"CREATE TABLE orders (id INT PRIMARY KEY, customer INT {constraint})")


def test_the_long_form_of_tables_says_them() -> None:
    described = {
        "columns": CUSTOMERS,
        "unique": ["mail", ["id", "city"]],
        "not_null": "city",
        "references": {"id": "x"},
    }
    (made,) = read_tables({"customers": described})
    assert (made.unique, made.not_null) == ((("mail",), ("id", "city")), ("city",))
    assert made.references == (ForeignKey(("id",), "x"),)


def test_a_reference_to_a_table_that_does_not_come_is_found_when_promises_are_checked() -> None:
    database = ivme.Database()
    database.sql("CREATE TABLE orders (id INT PRIMARY KEY, customer INT REFERENCES custmers)")
    database.insert("orders", [(1, 1)])
    with pytest.raises(ivme.IvmeError, match="there is no table or view custmers"):
        database.check_promises()
