"""Reasons for rows of unions and subqueries name rows of tables, which are there, or of which there are none."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from ivme.database import Database
from ivme.engine.read.reasons import Finding
from ivme.errors import DataError

QUERIES = [
    "SELECT a FROM r UNION SELECT b FROM s",
    "SELECT a, b FROM r UNION ALL SELECT b + 1, c FROM s WHERE c > 1",
    "SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
    "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.b = r.b)",
    "SELECT a FROM r EXCEPT SELECT b FROM s",
    "SELECT a FROM r INTERSECT SELECT c FROM s",
    "SELECT q.a, q.n FROM (SELECT a, COUNT(*) AS n FROM r GROUP BY a) AS q WHERE q.n > 1",
    "SELECT r.a, s.c FROM r LEFT JOIN s ON r.b = s.b",
    "SELECT x.a, y.a AS other FROM r AS x JOIN r AS y ON x.b = y.b",
    "SELECT a FROM (SELECT a FROM r UNION ALL SELECT c FROM s) AS u JOIN s ON s.b = u.a",
]


def leaves(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """The findings that have nothing below them."""
    for finding in findings:
        yield from leaves(finding.below) if finding.below else [finding]


def named(finding: Finding) -> str:
    return finding.relation.removesuffix(" (filtered)").partition("#")[0]


@pytest.mark.parametrize("text", QUERIES)
def test_reasons_name_rows_of_tables(text: str) -> None:
    rng = random.Random(text)
    db = Database()
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_table("s", {"b": "int", "c": "int"})
    view = db.create_view("v", text)
    for _ in range(12):
        db.insert(rng.choice("rs"), [(rng.randrange(4), rng.randrange(4))])
        there = {name: list(db.table(name)) for name in "rs"}
        rows = set(view)
        for row in rows:
            found = list(leaves(view.why(row).findings))
            assert found
            for finding in found:
                assert named(finding) in there, str(view.why(row))
                assert finding.tuples
                for shown in finding.tuples:
                    assert any(set(shown) <= {*stored, stored[0] + 1, None} for stored in there[named(finding)])
        absent = next(
            row for row in iter(lambda: tuple(rng.randrange(9) for _ in view.columns), None) if row not in rows
        )
        reasons = view.why_not(absent)
        assert "v#" not in str(reasons)
        assert reasons.findings
        with pytest.raises(DataError, match="says why"):
            view.why(absent)
