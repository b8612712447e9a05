"""Sums of floats depend on the rows that are there, not on what came and went: they are those of math.fsum."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from pathlib import Path

import pytest

from ivme.database import Database
from tests.databases import make_database, rows_of

WILD = [1e17, 1.0, 0.1, -0.1, 1e300, -1e300, 5e-324, 2.0**-1060, 1e-17, 3.14, -2.5e8, 1.7976931348623157e308]


def test_what_has_gone_leaves_no_trace(db: Database) -> None:
    db.create_table("R", {"x": "float"})
    view = db.create_view("v", "SELECT SUM(x) AS s, AVG(x) AS m FROM R")
    db.insert("R", [(1.0,), (1e17,)])
    db.delete("R", [(1e17,)])
    assert list(view) == [(1.0, 1.0)]


@pytest.mark.parametrize("backend", ["native", "pure"])
def test_a_sliding_window_ends_at_the_rows_that_are_left(backend: str) -> None:
    rows = 60_000 if backend == "native" else 2_000
    rng = random.Random(7)
    amounts = [round(rng.lognormvariate(3, 2), 2) for _ in range(rows)]
    db = make_database(backend)
    db.create_table("R", {"n": "int", "x": "float"})
    view = db.create_view("v", "SELECT SUM(x) AS s FROM R")
    for n, amount in enumerate(amounts):
        db.insert("R", [(n, amount)])
        if n >= 20:
            db.delete("R", [(n - 20, amounts[n - 20])])
    assert view.scalar() == math.fsum(amounts[-20:])
    for n in range(rows - 20, rows - 1):
        db.delete("R", [(n, amounts[n])])
    assert view.scalar() == amounts[-1]


def test_sums_over_joins_are_rounded_once(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    db.create_table("S", {"g": "int", "h": "int"})
    grouped = db.create_view("v", "SELECT h, SUM(x) AS s FROM R JOIN S ON R.g = S.g GROUP BY h")
    product = db.create_view("w", "SELECT R.g, h, SUM(x) AS s, AVG(x) AS m FROM R, S GROUP BY R.g, h")
    requested = db.create_view("p", "SELECT SUM(x) AS s FROM R JOIN S ON R.g = S.g WHERE h = :h")
    rng, rows = random.Random(1), []
    for step in range(60):
        row = (rng.randrange(3), rng.choice(WILD) * rng.choice([1.0, -1.0, 0.5]))
        rows.append(row)
        db.apply("R", [row], 3)
        db.apply("S", [(rng.randrange(3), rng.randrange(2))], 2**40)
        if step % 3 == 2:
            gone = rows.pop(rng.randrange(len(rows)))
            db.apply("R", [gone], -3)
        for view in (grouped, product, requested):
            view.verify()
    assert rows_of(grouped) == rows_of(
        db.create_view("again", "SELECT h, SUM(x) AS s FROM R JOIN S ON R.g = S.g GROUP BY h")
    )


def test_views_on_views_sum_what_they_see(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    sums = db.create_view("v", "SELECT g, SUM(x) AS s FROM R GROUP BY g")
    total = db.create_view("w", "SELECT SUM(s) AS t FROM v")
    feed = total.changes()
    db.insert("R", [(1, 1e17), (1, 1.0), (2, 1e-30), (2, 1e30), (3, math.inf)])
    assert total.scalar() == math.inf
    db.delete("R", [(1, 1e17), (2, 1e30), (3, math.inf)])
    assert rows_of(sums) == [(1, 1.0), (2, 1e-30)]
    assert total.scalar() == math.fsum([1.0, 1e-30])
    assert [list(change.values()) for change in feed] == [[-1, 1], [-1, 1]]
    total.verify()


def test_a_sum_of_infinities_of_both_signs_is_one_row_that_comes_and_goes(db: Database) -> None:
    db.create_table("R", {"g": "int", "x": "float"})
    view = db.create_view("v", "SELECT g, SUM(x) AS s, AVG(x) AS m FROM R GROUP BY g")
    feed = view.changes()
    db.insert("R", [(1, math.inf), (1, -math.inf)])
    db.insert("R", [(1, 5.0)])  # changes nothing that is shown
    db.delete("R", [(1, math.inf), (1, -math.inf)])
    undefined = (1, math.nan, math.nan)
    assert [{undefined: 1}, {undefined: -1, (1, 5.0, 5.0): 1}] == list(feed)
    view.verify()


@pytest.mark.parametrize("strategy", ["skew", "view-tree", "recompute"])
def test_every_strategy_has_the_same_sums(db: Database, strategy: str) -> None:
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "x": "float"})
    view = db.create_view("v", "SELECT a, SUM(x) AS s FROM R JOIN S ON R.b = S.b GROUP BY a", strategy=strategy)
    rng = random.Random(2)
    db.insert(
        "R", [(rng.randrange(4), 0) for _ in range(40)] + [(rng.randrange(40), rng.randrange(40)) for _ in range(60)]
    )
    db.insert(
        "S", [(0, rng.choice(WILD[:-1])) for _ in range(30)] + [(rng.randrange(40), rng.random()) for _ in range(40)]
    )
    view.verify()
    db.delete("R", [(int(a), 0) for a, _ in rows_of(view)[:1] if a < 4][:1], strict=False)
    view.verify()


def test_sums_of_floats_are_there_again_after_opening(tmp_path: Path) -> None:
    rng, kept = random.Random(5), []
    for turn in range(4):
        with Database(tmp_path / "db") as db:
            if not turn:
                db.create_table("R", {"g": "int", "x": "float"})
                db.create_view("v", "SELECT g, SUM(x) AS s, AVG(x) AS m FROM R GROUP BY g")
            for _ in range(30):
                row = (rng.randrange(3), rng.choice([*WILD, math.inf, -math.inf]))
                db.insert("R", [row])
                kept.append(row)
                if rng.random() < 0.5:
                    db.delete("R", [kept.pop(rng.randrange(len(kept)))])
            db.view("v").verify()
            expected = repr(rows_of(db.view("v")))
            if turn % 2:
                db.checkpoint()
        with Database(tmp_path / "db") as db:
            assert expected == repr(rows_of(db.view("v")))
            db.view("v").verify()


def test_an_average_of_decimals_is_the_exact_quotient_rounded_half_up(db: Database) -> None:
    db.create_table("R", {"x": "decimal(38, 2)"})
    view = db.create_view("v", "SELECT AVG(x) AS m FROM R")
    db.insert("R", [(Decimal(10) ** 35,), (Decimal("0.01"),), (Decimal(-(10**35)),)])
    assert view.scalar() == Decimal("0.003333")
    view.verify()
