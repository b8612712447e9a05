"""The blocks that SELECTs are taken apart into, from `scripts.txt`: each query, and its blocks up to the view.

Run with IVME_UPDATE_GOLDEN=1 to write the blocks anew, and read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ivme.query.model import table
from ivme.query.sql_script import read_script

TABLES = [
    table("R", {"a": "int", "b": "int"}),
    table("S", {"b": "int", "c": "string"}),
    table("T", {"a": "int", "d": "int"}),
]
_FILE = Path(__file__).parent / "scripts.txt"
CASES = _FILE.read_text(encoding="utf-8").split("\n\n")


def _blocks(text: str) -> str:
    script = read_script(text, TABLES)
    lines = [f"  {name or 'view'}: {script.text(number, {})}" for number, (name, _) in enumerate(script.selects)]
    return "\n".join([*lines, *([f"  read: {script.order_text}"] if script.order else [])])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.split("\n")[0][:60])
def test_a_select_is_taken_apart_into_these_blocks(case: str) -> None:
    text, _, expected = case.strip("\n").partition("\n")

    assert _blocks(text) == expected


@pytest.mark.skipif(not os.environ.get("IVME_UPDATE_GOLDEN"), reason="writes the file anew when asked to")
def test_the_file_is_written_anew() -> None:
    texts = [case.strip("\n").split("\n")[0] for case in CASES]
    _FILE.write_text("\n\n".join(f"{text}\n{_blocks(text)}" for text in texts) + "\n", encoding="utf-8")
