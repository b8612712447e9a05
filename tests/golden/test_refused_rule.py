"""Every refused rule of `refused/rule.yml`, with the whole text of its error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ivme.errors import QueryError
from ivme.query.model import table
from ivme.query.rule import parse_rule

CASES: list[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "refused" / "rule.yml").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_refused_rule_says_what_is_wrong_and_what_to_write(case: dict[str, Any]) -> None:
    tables = [table(name, columns) for name, columns in case.get("tables", {}).items()]
    with pytest.raises(QueryError) as refused:
        parse_rule(case["rule"], tables)
    assert f"{type(refused.value).__name__}: {refused.value}" == case["error"]


def test_every_refusal_has_a_place_and_says_what_to_do_instead() -> None:
    lacking = [case["name"] for case in CASES if "Instead: " not in case["error"] or "(line " not in case["error"]]
    assert lacking == ["nothing at all"]
