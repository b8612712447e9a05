"""Every refused rule of `refused/rule.yml`, with the whole text of its error.

Run with IVME_UPDATE_GOLDEN=1 to write the errors anew, and read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import ivme
from ivme.errors import QueryError
from ivme.query.model import table
from ivme.query.rule import parse_rule

_FILE = Path(__file__).parent / "refused" / "rule.yml"
CASES: list[dict[str, Any]] = yaml.safe_load(_FILE.read_text("utf-8"))


def _error(case: dict[str, Any]) -> str:
    """What is said about a rule: by the parser, or by all passes where the columns of tables have types."""
    known = case.get("tables", {})
    is_typed = any(isinstance(columns, dict) for columns in known.values())
    tables = [] if is_typed else [table(name, columns) for name, columns in known.items()]
    with pytest.raises(QueryError) as refused:
        _ = ivme.explain(case["rule"], known) if is_typed else parse_rule(case["rule"], tables)
    return f"{type(refused.value).__name__}: {refused.value}"


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_refused_rule_says_what_is_wrong_and_what_to_write(case: dict[str, Any]) -> None:
    assert _error(case) == case["error"]


def test_every_refusal_has_a_place_and_says_what_to_do_instead() -> None:
    lacking = [case["name"] for case in CASES if "Instead: " not in case["error"] or "(line " not in case["error"]]
    assert lacking == ["nothing at all"]


@pytest.mark.skipif(not os.environ.get("IVME_UPDATE_GOLDEN"), reason="writes the file anew when asked to")
def test_the_file_is_written_anew() -> None:
    header, *parts = _FILE.read_text("utf-8").split("\n- name: ")
    made = [header]
    for case, part in zip(CASES, parts, strict=True):
        lines = "\n".join(f"    {line}" if line else "" for line in _error(case).split("\n"))
        is_quoted = part.partition("\n  error: ")[2].startswith('"')
        made.append(part.rstrip("\n") if is_quoted else f"{part.partition('  error: ')[0]}  error: |-\n{lines}")
    _FILE.write_text("\n\n- name: ".join(each.strip("\n") for each in made) + "\n", "utf-8")
