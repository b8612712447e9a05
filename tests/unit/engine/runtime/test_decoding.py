"""From blocks of codes to rows."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ivme.engine.codes.domains import NULL_CODE, Domains
from ivme.engine.runtime.decoding import RowDecoder, is_global
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import table
from ivme.query.sql import parse_sql
from ivme.query.typed import typed

R = table("R", {"g": "string", "i": "int", "d": "decimal(10, 2)", "f": "float"})


def finisher(text: str, domains: Domains) -> RowDecoder:
    ready = typed(parse_sql(text, (R,)))
    return RowDecoder(ready, plan_with("view-tree", ready.query).program.enumeration, domains)


def codes(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def test_rows_are_decoded_and_come_with_their_multiplicities() -> None:
    domains = Domains()
    made = finisher("SELECT g, i FROM R", domains)
    strings = made.domain("g")
    block: Any = ([codes(strings.encode_value("x"), NULL_CODE), codes(5, 7)], codes(2, 1), [], [])
    assert list(made.rows(block, {})) == [(("x", 5), 2), ((None, 7), 1)]
    batch, counts = made.batch(block, {})
    assert (batch.to_pylist(), counts.tolist()) == ([{"g": "x", "i": 5}, {"g": None, "i": 7}], [2, 1])


def test_a_sum_without_values_is_null_and_an_average_is_finished() -> None:
    made = finisher("SELECT g, SUM(i) AS s, AVG(i) AS m, COUNT(i) AS n, COUNT(*) AS c FROM R GROUP BY g", Domains())
    block: Any = ([codes(NULL_CODE, NULL_CODE)], codes(3, 2), [codes(2, 0), codes(5, 0)], [])
    rows = [((None, 5, 2.5, 2, 3), 1), ((None, None, None, 0, 2), 1)]
    assert list(made.rows(block, {})) == rows
    assert [tuple(row.values()) for row in made.batch(block, {})[0].to_pylist()] == [row for row, _ in rows]


@pytest.mark.parametrize("whole", [0, 1, -1, 10**25, -(10**25)])
def test_wide_sums_are_put_together_from_their_words(whole: int) -> None:
    made = finisher("SELECT g, SUM(d) AS s FROM R GROUP BY g", Domains())
    low, high = whole & (2**64 - 1), whole >> 64
    words = np.array([[low - 2**64 if low >= 2**63 else low, high]], dtype=np.int64)
    block: Any = ([codes(NULL_CODE)], codes(1), [codes(1), words], [])
    assert list(made.rows(block, {})) == [((None, Decimal(whole).scaleb(-2)), 1)]


def test_columns_that_are_inputs_are_the_values_that_were_given() -> None:
    made = finisher("SELECT g, i FROM R WHERE g = :g", Domains())
    assert list(made.rows(([codes(1, 2)], codes(1, 1), [], []), {"g": "x"})) == [(("x", 1), 1), (("x", 2), 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT COUNT(*) AS n FROM R", True),
        ("SELECT COUNT(*) AS n FROM R WHERE g = :g", True),
        ("SELECT COUNT(*) AS n FROM R GROUP BY g", False),
        ("SELECT g FROM R", False),
    ],
)
def test_aggregates_over_everything_are_global(text: str, expected: bool) -> None:
    query = parse_sql(text, (R,))
    assert is_global(query.head, query.output) is expected


def test_the_row_over_nothing_has_counts_of_0_and_nulls() -> None:
    made = finisher("SELECT COUNT(*) AS n, SUM(i) AS s, COUNT(DISTINCT i) AS d, MAX(g) AS h FROM R", Domains())
    assert made.nothing() == (0, None, 0, None)
