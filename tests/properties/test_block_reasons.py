"""Reasons for rows of unions and subqueries name rows of tables, which are there, or of which there are none."""

from __future__ import annotations

import itertools
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
    "SELECT r.a, s.c FROM r JOIN s ON r.b < s.b",
    "SELECT r.a, s.c FROM r JOIN s ON r.a = s.b AND r.b >= s.c",
    "SELECT r.a, s.c FROM r ASOF JOIN s ON r.b >= s.b",
    "SELECT r.b, s.c FROM r LEFT JOIN s ON r.b < s.b",
    "SELECT a, (SELECT MAX(c) FROM s WHERE s.b = r.b) AS m FROM r",
    "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM r",
    "SELECT a FROM (SELECT a FROM r UNION ALL SELECT c FROM s) AS u JOIN s ON s.b = u.a",
]


def leaves(findings: tuple[Finding, ...]) -> Iterator[Finding]:
    """The findings that have nothing below them."""
    for finding in findings:
        yield from leaves(finding.below) if finding.below else [finding]


def named(finding: Finding) -> str:
    return finding.relation.removesuffix(" (filtered)").partition("#")[0].partition(" AS ")[0]


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
                assert "#" not in str(view.why(row))
                assert finding.tuples
                for shown in finding.tuples:
                    assert any(set(shown) <= {*stored, stored[0] + 1, None} for stored in there[named(finding)])
        absent = next(
            row for row in iter(lambda: tuple(rng.randrange(9) for _ in view.columns), None) if row not in rows
        )
        reasons = view.why_not(absent)
        assert "#" not in str(reasons)
        assert reasons.findings
        with pytest.raises(DataError, match="says why"):
            view.why(absent)


def test_a_self_join_is_told_by_aliases_columns_and_whole_rows() -> None:
    db = Database()
    db.create_table("r", {"a": "int", "b": "int", "note": "string"})
    db.insert("r", [(1, 2, "x"), (2, 3, "y")])
    view = db.create_view("v", "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a")
    assert ["  r AS x has (1, 2, 'x') at a = 1", "  r AS y has (2, 3, 'y') at b = 3"] == str(
        view.why((1, 3))
    ).splitlines()[1:]
    counted = db.create_view("n", "SELECT COUNT(*) AS n FROM r")
    assert ["  r has (1, 2, 'x'), (2, 3, 'y')"] == str(counted.why((2,))).splitlines()[1:]


@pytest.mark.parametrize(
    "text",
    ["SELECT a, SUM(b) AS t FROM r WHERE b < :k GROUP BY a", "SELECT a, COUNT(*) AS n FROM r WHERE b < :k GROUP BY a"],
)
def test_totals_over_a_range_are_told_by_the_rows_in_it(text: str) -> None:
    rng, db = random.Random(4), Database()
    db.create_table("r", {"a": "int", "b": "int"})
    rows = list(dict.fromkeys((rng.randrange(3), rng.randrange(9)) for _ in range(8)))
    db.insert("r", rows)
    view = db.create_view("v", text)
    for k in (0, 3, 20):
        for key, total in view(k=k):
            mine = [row for row in rows if row[0] == key and row[1] < k]
            found = {row for finding in view.why((key, total), k=k).findings for row in finding.tuples}
            assert found == set(mine[:3]) if len(mine) <= 3 else found <= set(mine)
            (other,) = view.why_not((key, total + 1), k=k).findings
            assert other.relation.startswith("the total")
        (lacking,) = view.why_not((77, 1), k=k).findings
        assert ("the range", (("k", k),), ()) == (lacking.relation, lacking.at, lacking.tuples)


def test_pairs_of_a_closure_are_told_by_a_path() -> None:
    rng, db = random.Random(6), Database()
    db.create_table("e", {"src": "int", "dst": "int"})
    edges = {(rng.randrange(7), rng.randrange(7)) for _ in range(8)}
    db.insert("e", sorted(edges))
    steps = "SELECT src, dst FROM e UNION SELECT a, dst FROM t JOIN e ON b = src"
    text = f"WITH RECURSIVE t(a, b) AS ({steps}) SELECT a, b FROM t"
    view = db.create_view("v", text)
    there = set(view)
    for a in range(8):
        for b in range(8):
            ask, other = (view.why, view.why_not) if (a, b) in there else (view.why_not, view.why)
            found = ask((a, b)).findings
            if (a, b) in there:
                path = found[0].tuples
                assert edges.issuperset(path)
                assert (a, b) == (path[0][0], path[-1][1])
                assert all(one[1] == following[0] for one, following in itertools.pairwise(path))
            else:
                ends = {("src", a): any(e[0] == a for e in edges), ("dst", b): any(e[1] == b for e in edges)}
                lacking = {finding.at[0] for finding in found if finding.relation == "e"}
                assert lacking == {end for end, is_there in ends.items() if not is_there}
            with pytest.raises(DataError, match="says why"):
                other((a, b))


def test_what_is_not_a_row_is_refused_by_name() -> None:
    db = Database()
    db.create_table("r", {"a": "int"})
    with pytest.raises(DataError, match="a row of view v has 1 columns: a"):
        db.create_view("v", "SELECT a FROM r").why_not(1)  # type: ignore[arg-type]
