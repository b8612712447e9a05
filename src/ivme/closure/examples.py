"""Small systems of source 004, section 6, as examples of writing one's own.

Neither query can be written in relational calculus; both are maintained by programs that are nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping

from ivme.closure.ies import IES, make_ies, relation

_EVEN = "INSERT INTO even SELECT 1"

_FLIP = """
CREATE TEMP TABLE was_even AS SELECT one FROM even;
DELETE FROM even;
INSERT INTO even SELECT 1 WHERE NOT EXISTS (SELECT * FROM was_even);
"""


def parity(columns: Mapping[str, str]) -> IES:
    """Whether the table r has an even number of rows: `even` is {1} or {}, and changes with every row."""
    return make_ies("parity", {"r": columns}, relation("even", {"one": "int"}), {}, _FLIP, _FLIP, on_start=_EVEN)


def _matching(mine: str, other: str, value: str, partner: str) -> tuple[str, str]:
    """The programs of one of two tables: `matched` pairs rows of both, each at most once, as many as can be."""
    verdict = """
    DELETE FROM equal;
    INSERT INTO equal SELECT 1
    WHERE NOT EXISTS (SELECT * FROM {mine}_now n WHERE NOT EXISTS (SELECT * FROM matched m WHERE m.{value} = n.x))
    AND NOT EXISTS (SELECT * FROM {other} o WHERE NOT EXISTS (SELECT * FROM matched m WHERE m.{partner} = o.x));
    """
    insert = """
    CREATE TEMP TABLE {mine}_now AS SELECT x FROM {mine} UNION SELECT :x AS x;
    CREATE TEMP TABLE free AS
    SELECT MIN(o.x) AS x FROM {other} o WHERE NOT EXISTS (SELECT * FROM matched m WHERE m.{partner} = o.x);
    CREATE TEMP TABLE pair AS SELECT :x AS {value}, x AS {partner} FROM free WHERE x IS NOT NULL;
    INSERT INTO matched SELECT r_row, s_row FROM pair;
    """
    delete = """
    CREATE TEMP TABLE {mine}_now AS SELECT x FROM {mine} WHERE x <> :x;
    CREATE TEMP TABLE freed AS SELECT {partner} AS x FROM matched WHERE {value} = :x;
    DELETE FROM matched WHERE {value} = :x;
    CREATE TEMP TABLE free AS
    SELECT MIN(n.x) AS x FROM {mine}_now n WHERE NOT EXISTS (SELECT * FROM matched m WHERE m.{value} = n.x);
    CREATE TEMP TABLE pair AS
    SELECT f.x AS {value}, g.x AS {partner} FROM free f CROSS JOIN freed g WHERE f.x IS NOT NULL;
    INSERT INTO matched SELECT r_row, s_row FROM pair;
    """
    names = {"mine": mine, "other": other, "value": value, "partner": partner}
    return (insert + verdict).format(**names), (delete + verdict).format(**names)


def equal_cardinality(type_: str) -> IES:
    """Whether the tables r and s have equally many rows: the auxiliary table pairs their rows off."""
    r_insert, r_delete = _matching("r", "s", "r_row", "s_row")
    s_insert, s_delete = _matching("s", "r", "s_row", "r_row")
    return make_ies(
        "equal_cardinality",
        {"r": {"x": type_}, "s": {"x": type_}},
        relation("equal", {"one": "int"}),
        {"matched": {"r_row": type_, "s_row": type_}},
        {"r": r_insert, "s": s_insert},
        {"r": r_delete, "s": s_delete},
        on_start="INSERT INTO equal SELECT 1",
    )
