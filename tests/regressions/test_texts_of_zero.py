"""The text of a decimal that is zero has no sign, however the zero came about.

`CAST(ROUND(-0.4) AS STRING)` was '-0', so that groups by such texts were two where Spark has one.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

import ivme


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("CAST(ROUND(k) AS STRING)", "0"),
        ("CAST(CEIL(k) AS STRING)", "0"),
        ("k * 0 || ''", "0.0000"),
        ("CONCAT_WS('-', MOD(k, 0.4))", "0.0000"),
        ("CAST(CAST('-0.0' AS DECIMAL(4, 1)) AS STRING)", "0.0"),
        ("CAST(CAST(CAST(k AS DOUBLE) AS DECIMAL(4, 0)) AS STRING)", "0"),
        ("CAST(k AS STRING)", "-0.4000"),
    ],
)
@pytest.mark.parametrize("rows", [1, 3000])
def test_a_zero_has_no_sign_in_a_text(written: str, expected: str, rows: int) -> None:
    db = ivme.Database()
    db.create_table("t", {"id": "int", "k": "decimal(12, 4)"})
    texts = db.create_view("texts", f"SELECT {written} AS s, COUNT(*) AS n FROM t GROUP BY {written}")
    db.insert("t", [(number, Decimal("-0.4")) for number in range(rows)])
    assert [(expected, rows)] == list(texts)
    texts.verify()


def test_positive_and_negative_numbers_that_round_to_zero_are_one_group() -> None:
    db = ivme.Database()
    db.create_table("t", {"id": "int", "k": "decimal(12, 4)"})
    listed = db.create_view("listed", "SELECT LISTAGG(DISTINCT ROUND(k), ';') AS s FROM t")
    texts = db.create_view("texts", "SELECT CAST(ROUND(k) AS STRING) AS s, COUNT(*) AS n FROM t GROUP BY s")
    db.insert("t", [(1, Decimal("-0.4")), (2, Decimal("0.4")), (3, Decimal("0"))])
    assert [("0", 3)] == list(texts)
    assert [("0",)] == list(listed)
