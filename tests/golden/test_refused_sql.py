"""Every refusal of the SQL front end, word for word, from `refused/sql.txt`.

Run with IVME_UPDATE_GOLDEN=1 to write the refusals anew; what is accepted by then leaves the file.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ivme.compile import compile_query
from ivme.errors import IvmeError
from ivme.query.model import table

TABLES = [
    table("orders", {"id": "int", "customer": "int", "item": "string", "price": "decimal(10, 2)", "day": "date"}),
    table("customers", {"id": "int", "city": "string", "active": "bool"}),
    table("edge", {"src": "int", "dst": "int"}),
]
_FILE = Path(__file__).parent / "refused" / "sql.txt"
_HEAD, *CASES = _FILE.read_text(encoding="utf-8").split("\n====\n")


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.split("\n----\n")[0].split())[:60])
def test_a_refused_query_says_what_is_wrong_and_what_to_write(case: str) -> None:
    text, expected = case.split("\n----\n")

    with pytest.raises(IvmeError) as raised:
        compile_query(text, TABLES)

    assert expected.rstrip("\n") == f"{type(raised.value).__name__}: {raised.value}"


@pytest.mark.skipif(not os.environ.get("IVME_UPDATE_GOLDEN"), reason="writes the file anew when asked to")
def test_the_file_is_written_anew() -> None:
    _FILE.write_text("\n====\n".join([_HEAD, *filter(None, map(_refused, CASES))]), encoding="utf-8")


def _refused(case: str) -> str | None:
    text = case.split("\n----\n")[0]
    try:
        compile_query(text, TABLES)
    except IvmeError as error:
        return f"{text}\n----\n{type(error).__name__}: {error}\n"
    return None
