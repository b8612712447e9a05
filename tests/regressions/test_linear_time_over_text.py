"""Patterns and texts of users are read in time that is bounded by their lengths.

`'%a%a%a%b'` over 800 letters once took 70 s for a single row. Sizes here are such that trying every way again would
take longer than anybody waits; nothing is measured.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ivme.errors import SchemaError
from ivme.query.parse import is_sql
from ivme.query.sql_like import like
from ivme.query.sql_values import to_decimal
from ivme.query.types import parse_type
from tests.databases import BACKENDS, make_database
from tests.sharded_databases import local_database

LONG = "a" * 20_000
HARD = ["%a%a%a%b", "%a_a%a__a%a%b", "a%" * 200 + "b", "%" * 500 + "b", "%_a_%" * 40 + "b", "!%%a%a%a%b"]


@pytest.mark.parametrize("pattern", HARD)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rows", [1, 30])
def test_no_pattern_is_tried_in_every_way(backend: str, pattern: str, rows: int) -> None:
    db = make_database(backend)
    db.create_table("R", {"s": "string"})
    view = db.create_view("v", f"SELECT COUNT(*) AS n FROM R WHERE s LIKE '{pattern}' ESCAPE '!'")
    db.insert("R", [(LONG,)] * rows)
    assert view.scalar() == 0
    view.verify()


def test_a_pattern_may_be_a_column_and_have_shards(tmp_path: Path) -> None:
    db = local_database(tmp_path, 2)
    db.create_table("R", {"s": "string", "p": "string"})
    view = db.create_view("v", "SELECT p FROM R WHERE s LIKE p")
    db.insert("R", [(LONG, HARD[0]), (LONG + "b", HARD[0])])
    assert list(view) == [(HARD[0],)]


def reference(value: str, pattern: str) -> bool:
    """By regular expressions, which is right for texts that are short."""
    parts, characters = [], iter(pattern)
    for character in characters:
        escaped = re.escape(next(characters) if character == "\\" else character)
        parts.append(escaped if character == "\\" else {"%": ".*", "_": "."}.get(character, escaped))
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


def test_patterns_match_what_they_say() -> None:
    choose = random.Random(7)
    for _ in range(20_000):
        value = "".join(choose.choices("ab%_\n", k=choose.randrange(7)))
        pattern = "".join(choose.choices(["a", "b", "%", "_", "\\%", "\\_", "\\\\", "\n"], k=choose.randrange(6)))
        assert like(value, pattern) is reference(value, pattern), (value, pattern)


def test_comments_before_a_query_are_read_once() -> None:
    assert not is_sql("/**/" * 2_000 + "x")
    assert is_sql("/* a */ -- b\n" * 2_000 + "SELECT 1")


def test_digits_that_are_no_number_are_read_once() -> None:
    with pytest.raises(ValueError, match="is not a decimal number"):
        to_decimal("1" * 1_000_000 + "x", 10, 2)


def test_types_are_read_once() -> None:
    for text in ("int" + " " * 1_000_000 + "!", "decimal(" + "9" * 5_000 + ")"):
        with pytest.raises(SchemaError):
            parse_type(text)
