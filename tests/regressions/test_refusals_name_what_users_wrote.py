"""Refusals that once named tables of our own making."""

from __future__ import annotations

import pytest

import ivme
from ivme.errors import IvmeError, UnsupportedError

TABLES = {"a": {"x": "int", "t": "int"}, "b": {"x": "int", "t": "int", "p": "int"}, "c": {"w": "int"}}
REFUSED = {
    "SELECT a.x, b.p FROM a ASOF JOIN b ON a.x = b.x AND a.t >= b.t WHERE NOT EXISTS (SELECT 1 FROM c WHERE w = :p)": (
        "the parameter :p is not supported beside ASOF JOIN"
    ),
    """SELECT a.x FROM a FULL JOIN b USING (t) WHERE a.x IN (
       SELECT c.w FROM c WHERE c.w = b.p AND c.w IN (SELECT d.w FROM c AS d WHERE d.w = b.p))""": (
        "a subquery inside a subquery cannot be tied to the outermost query"
    ),
    "SELECT w FROM c WHERE w >= ALL (SELECT c.w FROM a GROUP BY a.x)": (
        "a column of the query around is not allowed here"
    ),
    """SELECT w FROM c WHERE w >= ALL (
       SELECT MAX(a.x) FROM a WHERE a.t IN (SELECT b.t FROM b WHERE b.p = c.w) GROUP BY a.x)""": (
        "a subquery inside a subquery cannot be tied to the outermost query"
    ),
    """SELECT w FROM c WHERE EXISTS (
       SELECT 1 FROM a LEFT JOIN b ON a.x = b.p + c.w, LATERAL (SELECT COUNT(*) AS n FROM c AS d WHERE d.w = b.p) l
       WHERE n = 0 AND a.x = c.w)""": "LATERAL after an outer join that reads the query around it",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_a_refusal_says_what_is_unsupported(sql: str) -> None:
    with pytest.raises(UnsupportedError, match=REFUSED[sql]) as raised:
        ivme.explain(sql, TABLES)
    assert "#" not in str(raised.value)


@pytest.mark.parametrize("terms", [200, 700, 3000])
def test_a_sum_of_many_terms_is_refused_by_name(terms: int) -> None:
    with pytest.raises(IvmeError, match=r"nests deeper than|nested too deeply"):
        ivme.explain(f"SELECT {' + '.join(['a'] * terms)} AS s FROM r", tables={"r": {"a": "int"}})
