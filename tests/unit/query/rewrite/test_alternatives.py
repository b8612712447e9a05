"""Tables that meet in one of several equalities are a union of joins, and not a join of all rows with all rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivme.compile import compile_query
from ivme.database import Database
from ivme.plan.explain.explanation import Explanation

TABLES = {"o": {"id": "int", "buyer": "int", "seller": "int"}, "c": {"id": "int", "city": "string"}}
EITHER = [
    "FROM o JOIN c ON o.buyer = c.id OR o.seller = c.id",
    "FROM o, c WHERE c.id IN (o.buyer, o.seller)",
    "FROM o JOIN c ON (o.buyer = c.id AND c.city = 'Bern' OR o.seller = c.id) AND o.id > 0",
    "FROM o LEFT JOIN c ON o.buyer = c.id OR o.seller = c.id",
    "FROM o JOIN (SELECT id, city FROM c WHERE city <> 'Rome') AS c ON o.buyer = c.id OR o.seller + 1 = c.id",
]
NOT_JOINED = [
    "FROM o JOIN c ON o.buyer = c.id OR o.id > 5",
    "FROM o JOIN c ON o.buyer = c.id OR c.city = 'Bern'",
]


def _joins_all(explanation: Explanation) -> Iterator[str]:
    """The blocks in which two tables are listed without an equality between them."""
    for block in explanation.blocks:
        if (
            "o, c" in block.text.replace(" AS ", " ").replace("o o", "o").replace("c c", "c")
            and " = " not in block.text
        ):
            yield block.text


@pytest.mark.parametrize("text", EITHER)
def test_no_block_has_all_pairs(text: str) -> None:
    found = compile_query(f"SELECT o.id, c.city {text}", TABLES)
    assert not [*_joins_all(found)]
    assert any(block.explanation.strategy == "union" for block in found.blocks)


@pytest.mark.parametrize("text", NOT_JOINED)
def test_a_condition_that_an_alternative_leaves_to_one_table_is_tested_on_all_pairs(text: str) -> None:
    found = compile_query(f"SELECT o.id, c.city {text}", TABLES)
    assert [*_joins_all(found)]
    assert ("O(N^2)", "O(N)") == (str(found.preprocessing), str(found.update))


def test_with_keys_a_count_takes_a_few_look_ups() -> None:
    database = Database()
    for name, schema in TABLES.items():
        database.create_table(name, schema, primary_key="id")
    view = database.create_view("v", "SELECT COUNT(*) AS n FROM o JOIN c ON o.buyer = c.id OR o.id = c.id")
    assert ("O(1)", "O(N)", "O(N)") == tuple(
        str(bound) for bound in (view.explain().update, view.explain().preprocessing, view.explain().space)
    )


def test_a_pair_that_both_equalities_join_comes_once() -> None:
    database = Database()
    for name, schema in TABLES.items():
        database.create_table(name, schema)
    view = database.create_view("v", "SELECT o.id, c.city FROM o JOIN c ON o.buyer = c.id OR o.seller = c.id")
    database.insert("c", [(1, "Bern"), (2, "Oslo"), (None, "Rome")])
    database.insert("o", [(10, 1, 1), (11, 1, 2), (12, None, 2), (13, 3, None), (11, 1, 2)])
    expected = [(10, "Bern"), (11, "Bern"), (11, "Bern"), (11, "Oslo"), (11, "Oslo"), (12, "Oslo")]
    assert expected == sorted(view)
    database.delete("c", [(1, "Bern")])
    database.insert("c", [(3, "Bern")])
    assert [(11, "Oslo"), (11, "Oslo"), (12, "Oslo"), (13, "Bern")] == sorted(view)
    view.verify()


def test_parameters_and_groups_are_over_the_union() -> None:
    database = Database()
    for name, schema in TABLES.items():
        database.create_table(name, schema)
    text = (
        "SELECT c.city, COUNT(*) AS n FROM o JOIN c ON c.id IN (o.buyer, o.seller) WHERE c.city = :city GROUP BY c.city"
    )
    view = database.create_view("v", text)
    database.insert("c", [(1, "Bern"), (2, "Oslo")])
    database.insert("o", [(10, 1, 2), (11, 1, 1), (12, 2, 3)])
    assert [("Bern", 2)] == list(view(city="Bern"))
    assert [("Oslo", 2)] == list(view(city="Oslo"))
    assert [] == list(view(city="Rome"))


def test_several_conditions_that_each_join_are_taken_one_after_the_other() -> None:
    text = """SELECT COUNT(*) AS n FROM o AS a, o AS b, c
              WHERE (a.buyer = b.seller OR a.seller = b.buyer) AND (b.id = c.id OR a.id = c.id)"""
    database = Database()
    for name, schema in TABLES.items():
        database.create_table(name, schema)
    view = database.create_view("v", text)
    database.insert("o", [(1, 1, 2), (2, 2, 1), (3, 3, 3)])
    database.insert("c", [(1, "Bern"), (3, "Oslo"), (3, "Rome")])
    assert 4 == view.scalar()
    view.verify()
