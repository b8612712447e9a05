"""All that is refused in one text."""

from __future__ import annotations

import pytest

from ivme.compile import compile_query
from ivme.errors import QueryError
from ivme.query.model import table

TABLES = [table("r", {"a": "int", "b": "int", "c": "string"}), table("s", {"b": "int", "d": "string"})]


def refused(text: str) -> list[tuple[str, int | None, int | None]]:
    with pytest.raises(QueryError) as raised:
        compile_query(text, TABLES)
    return [(each.message, each.line, each.column) for each in (raised.value, *raised.value.others)]


def test_every_part_of_a_query_is_told_with_its_place() -> None:
    found = refused(
        "SELECT r.a, FOO(r.b) AS f, UUID() AS u\n"
        "FROM r JOIN s ON s.b = r.b AND BAR(s.d) = 3\n"
        "WHERE RAND() > 0.5 AND r.c LIKE 'a%' AND nosuch = 3\n"
        "QUALIFY MODE(r.a) OVER (ORDER BY r.a) = 1"
    )

    assert {place[1:] for place in found} == {(1, 13), (1, 28), (2, 32), (3, 7), (3, 42), (4, 9)}
    assert len(found) == 6


def test_misspelled_columns_are_told_together() -> None:
    assert [message for message, *_ in refused("SELECT r.aa, r.bb FROM r WHERE r.cc = 'x'")] == [
        "there is no column 'cc' in r",
        "there is no column 'aa' in r",
        "there is no column 'bb' in r",
    ]


def test_parts_of_subqueries_and_set_operations_are_told_too() -> None:
    found = refused(
        "WITH x AS (SELECT a, FOO(b) AS f FROM r) SELECT f FROM x WHERE BAR(a) = 1 UNION SELECT BAZ(b) FROM s "
        "WHERE b IN (SELECT QUX(a) FROM r)"
    )

    assert sorted(message.split()[2] for message, *_ in found) == ["BAR", "BAZ", "FOO", "QUX"]


def test_what_only_follows_from_another_refusal_is_not_told() -> None:
    found = refused("SELECT x.f FROM (SELECT FOO(c) AS f FROM r) x WHERE x.f = 'y' AND x.f LIKE 'z%'")

    assert [message for message, *_ in found] == ["the function FOO is not supported"]


def test_the_same_advice_is_given_once() -> None:
    with pytest.raises(QueryError) as raised:
        compile_query("SELECT FOO(a) AS f, BAR(a) AS g FROM r", TABLES)

    assert str(raised.value).count("Instead:") == 1
    assert "\nAlso: the function BAR is not supported (line 1, column 21)\n" in str(raised.value)


def test_a_query_with_one_fault_has_no_others() -> None:
    with pytest.raises(QueryError) as raised:
        compile_query("SELECT FOO(a) AS f FROM r", TABLES)

    assert raised.value.others == ()


def test_the_clock_and_blocks_are_not_told_to_users() -> None:
    """They are tables, but not theirs: neither is missing, and neither is what they could have meant."""
    tables = [table("o", {"p": "int", "at": "timestamp"})]

    def told(text: str) -> str:
        with pytest.raises(QueryError) as raised:
            compile_query(text, tables)
        assert not raised.value.others
        return str(raised.value)

    assert "FOO is not supported" in told("SELECT FOO(p) AS x FROM o WHERE at > NOW() - INTERVAL '7' DAY")
    assert "there is no column 'att' in o (" in told("SELECT p FROM o WHERE att > NOW()")
    missing = told("SELECT p FROM nope WHERE p IN (SELECT p FROM o WHERE at > NOW()) ORDER BY p LIMIT 3")
    assert "Instead: use one of o" in missing
    assert "#" not in missing


@pytest.mark.parametrize("text", ["SELECT * FROM r JOIN s ON s.b = r.b", "SELECT r.*, s.* FROM r JOIN s ON s.b = r.b"])
def test_columns_of_one_name_in_a_star_are_to_be_named_first(text: str) -> None:
    with pytest.raises(QueryError, match=r"name the columns in place of \*, and rename one with AS"):
        compile_query(text, TABLES)
