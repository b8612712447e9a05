"""Every refusal of the SQL front end, word for word, from `refused/sql.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import IvmeError
from ivme.query.model import table
from ivme.query.sql import parse_sql

TABLES = [
    table("orders", {"id": "int", "customer": "int", "item": "string", "price": "decimal(10, 2)", "day": "date"}),
    table("customers", {"id": "int", "city": "string", "active": "bool"}),
    table("edge", {"src": "int", "dst": "int"}),
]
_, *CASES = (Path(__file__).parent / "refused" / "sql.txt").read_text(encoding="utf-8").split("\n====\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.split("\n----\n")[0].split())[:60])
def test_a_refused_query_says_what_is_wrong_and_what_to_write(case: str) -> None:
    text, expected = case.split("\n----\n")

    with pytest.raises(IvmeError) as raised:
        parse_sql(text, TABLES)

    assert expected.rstrip("\n") == f"{type(raised.value).__name__}: {raised.value}"
