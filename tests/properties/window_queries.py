"""SELECTs with window functions, drawn at random: texts that ivme and DuckDB read alike."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

_NUMBERS = ("x", "f", "d")
_COLUMNS = (*_NUMBERS, "name", "day")
_PARTITIONS = ("", "PARTITION BY g ", "PARTITION BY g, name ", "PARTITION BY g % 2 ", "PARTITION BY name, x IS NULL ")
_KEYS = ("x", "x DESC", "name", "name DESC NULLS FIRST", "f NULLS LAST", "d DESC", "day", "x + 1", "g")
_RANGES = (
    ("x", "1"),
    ("x DESC", "2"),
    ("f", "0.5"),
    ("d DESC", "0.25"),
    ("day", "INTERVAL '2' DAY"),
    ("moment", "INTERVAL '90' MINUTE"),
)


def window_select(rng: random.Random, most: int = 3) -> str:
    """A SELECT of one to three windows, sometimes over groups or a join, with QUALIFY or a SELECT around.

    With `most` 1 rows may be repeated: which copy has which values of several windows is not determined.
    """
    kind = rng.random()
    if most == 1:
        return f"SELECT id, g, {one_window(rng)} AS w0 FROM {'r JOIN s ON r.g = s.k' if kind < 0.3 else 'r'}"
    if kind < 0.15:
        return _of_groups(rng)
    source = "r JOIN s ON r.g = s.k" if kind < 0.3 else "r"
    items = ", ".join(f"{_item(rng)} AS w{n}" for n in range(rng.randrange(1, most + 1)))
    if kind > 0.9:
        return f"SELECT *, {items} FROM r"
    text = f"SELECT id, r.g, {items} FROM {source}{rng.choice(['', ' WHERE x > 0', ' WHERE name IS NOT NULL'])}"
    if rng.random() < 0.15:
        return f"{text} QUALIFY {one_window(rng)} IS NOT NULL AND (id > 10 OR w0 IS NULL)"
    if rng.random() < 0.15:
        return f"SELECT g, COUNT(*) AS n, COUNT(w0) AS m FROM ({text}) t GROUP BY g"
    return text


def _of_groups(rng: random.Random) -> str:
    over = rng.choice(["(ORDER BY g)", "(PARTITION BY g % 2 ORDER BY g)", "()", "(PARTITION BY g % 2)"])
    call = rng.choice(["SUM(SUM(x))", "MAX(COUNT(*))", "AVG(SUM(x))", "SUM(COUNT(x))"])
    step = "SUM(x) - LAG(SUM(x)) OVER (ORDER BY g)"
    return f"SELECT g, SUM(x) AS s, {call} OVER {over} AS w0, {step} AS w1 FROM r GROUP BY g"


def _item(rng: random.Random) -> str:
    window = one_window(rng)
    kind = rng.random()
    if kind < 0.1:
        return f"CASE WHEN {window} IS NULL THEN x ELSE 0 END"
    return f"COALESCE(x, 0) + COUNT(*) OVER {_over(rng, total=False)}" if kind < 0.2 else window


def one_window(rng: random.Random) -> str:
    """A call of a window function."""
    kind = rng.random()
    if kind < 0.2:
        call = rng.choice(["RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()"])
        return f"{call} OVER {_over(rng, total=False, ordered=True)}"
    if kind < 0.3:
        return f"{rng.choice(['ROW_NUMBER()', 'NTILE(3)', 'NTILE(1)'])} OVER {_over(rng, total=True)}"
    if kind < 0.5:
        return f"{_shift(rng)} OVER {_over(rng, total=True)}"
    call = _value(rng) if kind < 0.6 else _aggregate(rng)
    if rng.random() < 0.35:
        return f"{call} OVER {_over(rng, total=True, frame=_rows(rng))}"
    if rng.random() < 0.25:
        over = f"({rng.choice(_PARTITIONS)}ORDER BY {_by_value(rng)})"
        return f"{call} OVER {over}" if "VALUE" not in call else f"FIRST_VALUE(x) OVER {_over(rng, total=True)}"
    return f"{call} OVER {_over(rng, total='VALUE' in call)}"


def _shift(rng: random.Random) -> str:
    call = f"{rng.choice(['LAG', 'LEAD'])}({rng.choice(_COLUMNS)}"
    number = rng.randrange(4)
    if number == 0:
        return call + ")"
    if number == 1:
        return f"{rng.choice(['LAG', 'LEAD'])}(x, {rng.randrange(1, 4)}, {rng.choice(['-1', 'id', '0'])})"
    return f"{call}, {rng.randrange(4)}{' IGNORE NULLS' if number == 3 else ''})".replace("0 IGNORE", "1 IGNORE")


def _value(rng: random.Random) -> str:
    column, nulls = rng.choice(_COLUMNS), rng.choice(["", "", " IGNORE NULLS"])
    return rng.choice([f"FIRST_VALUE({column}{nulls})", f"LAST_VALUE({column}{nulls})", f"NTH_VALUE({column}, 2)"])


def _aggregate(rng: random.Random) -> str:
    function = rng.choice(["COUNT", "SUM", "SUM", "AVG", "MIN", "MAX", "STDDEV_SAMP", "VAR_POP"])
    column = rng.choice(_COLUMNS if function in ("COUNT", "MIN", "MAX") else _NUMBERS)
    if function == "COUNT" and rng.random() < 0.3:
        column = "*"
    return f"{function}({column}){rng.choice(['', '', '', ' FILTER (WHERE x > 1)'])}"


def _over(rng: random.Random, *, total: bool, ordered: bool = False, frame: str = "") -> str:
    """OVER with an order of all rows, which `id` tells apart, if the value depends on it."""
    keys = rng.sample(_KEYS, rng.randrange(1, 3)) if ordered or total or rng.random() < 0.6 else []
    keys += ["id"] if total else []
    order = f"ORDER BY {', '.join(keys)}" if keys else ""
    return f"({rng.choice(_PARTITIONS)}{order}{frame})"


def _rows(rng: random.Random) -> str:
    edges = ["UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING", "2 FOLLOWING"]
    edges.append("UNBOUNDED FOLLOWING")
    first, last = sorted(rng.sample(range(len(edges)), 2))
    return f" {rng.choice(['ROWS', 'ROWS', 'GROUPS'])} BETWEEN {edges[first]} AND {edges[last]}"


def _by_value(rng: random.Random) -> str:
    key, offset = rng.choice(_RANGES)
    edges = [
        "UNBOUNDED PRECEDING",
        f"{offset} PRECEDING",
        "CURRENT ROW",
        f"{offset} FOLLOWING",
        "UNBOUNDED FOLLOWING",
    ]
    first, last = sorted(rng.sample(range(len(edges)), 2))
    return f"{key} RANGE BETWEEN {edges[first]} AND {edges[last]}"


def normal(row: tuple[object, ...]) -> tuple[object, ...]:
    """A row whose numbers are rounded: averages of decimals are decimals here, and floats in DuckDB."""
    return tuple(round(float(v), 6) if isinstance(v, float | Decimal) else v for v in row)


COLUMNS = {
    "id": "int",
    "g": "int",
    "x": "int",
    "f": "float",
    "d": "decimal(10, 2)",
    "name": "string",
    "day": "date",
    "moment": "timestamp",
}
_START = datetime(2024, 2, 27, 23)


def random_row(rng: random.Random, number: int, moments: int) -> tuple[Any, ...]:
    """A row of the table whose windows are asked for, at one of so many moments."""
    moment = _START + timedelta(minutes=30 * rng.randrange(moments))
    return (
        number,
        rng.choice([1, 2, 3, None]),
        rng.choice([-1, 1, 2, 3, None]),
        rng.choice([0.25, -1.5, 2.0, None]),
        rng.choice([Decimal("0.25"), Decimal("-3.50"), Decimal("1.00"), None]),
        rng.choice(["a", "b", "longer than eight", "longer than nine", None]),
        rng.choice([moment.date(), None]),
        rng.choice([moment, None]),
    )
