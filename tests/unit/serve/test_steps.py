"""Rows of JSON, as requests bring them."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.query.model import table
from ivme.serve.problem import Problem
from ivme.serve.steps import read_rows

ORDERS = table("orders", {"id": "int", "at": "date"})


@pytest.mark.parametrize("row", [[1, "tomorrow"], {"id": 1, "AT": "tomorrow"}])
def test_a_value_that_cannot_be_read_is_told_with_its_row_and_column(row: Any) -> None:
    with pytest.raises(Problem) as raised:
        read_rows([[0, "2026-01-01"], row], ORDERS)
    assert raised.value.message == (
        "table orders, row 1, column at: a value has the type date, and 'tomorrow' is not a value of it; "
        "one is 2024-02-29"
    )


def test_a_row_that_is_none_is_told_without_a_column() -> None:
    for row in ("text", [1, "2026-01-01", 3]):
        with pytest.raises(Problem, match=r"table orders, row 0: "):
            read_rows([row], ORDERS)
