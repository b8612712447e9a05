"""Views over heavy and light parts beside others, on filled tables, in ring mode, and after batches that fail."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.engine.runtime.rebalance import SMALLEST_PIECE
from ivme.errors import DataError
from ivme.view import View
from tests.counting import COUNTING
from tests.databases import in_one_batch, make_database, state_of
from tests.example_counts import some_of
from tests.skew_checks import balance_of, check_parts, stored

COUNT = "Q(. | .) = R(A, B), S(B, C), T(C, A)"


@pytest.fixture
def tables(db: Database) -> Database:
    for name, columns in (("R", "ab"), ("S", "bc"), ("T", "ca")):
        db.create_table(name, dict.fromkeys(columns, "int"))
    return db


def fill(db: Database, seed: int, rows: int = 40, domain: int = 5) -> dict[str, list[Any]]:
    random = Random(seed)
    made = {
        name: [(random.randrange(domain), random.randrange(domain)) for _ in range(rows)] for name in ("R", "S", "T")
    }
    with db.batch() as batch:
        for name, mine in made.items():
            batch.insert(name, mine)
    return made


def test_the_count_of_source_001_is_19_and_13_after_the_delete(db: Database) -> None:
    for name, columns in (("R", "ab"), ("S", "bc"), ("T", "ca")):
        db.create_table(name, dict.fromkeys(columns, "string"))
    view = db.create_view("q", "SELECT COUNT(*) AS n FROM R JOIN S ON R.b = S.b JOIN T ON S.c = T.c AND T.a = R.a")
    assert view.explain().strategy == "skew"
    db.apply("R", [("a1", "b1"), ("a2", "b1")], [2, 3])
    db.apply("S", [("b1", "c1"), ("b1", "c2")], [2, 1])
    db.apply("T", [("c1", "a1"), ("c2", "a1"), ("c2", "a2")], [1, 3, 3])
    assert view.scalar() == 19
    db.apply("R", [("a2", "b1")], [-2])
    assert view.scalar() == 13


def test_views_of_other_epsilons_and_strategies_agree_over_the_same_tables(tables: Database) -> None:
    text = "Q(B | A) = R(A, B), S(B, C), T(C, A)"
    views = [
        tables.create_view(f"e{i}", text, strategy="skew", epsilon=epsilon)
        for i, epsilon in enumerate([0, Fraction(1, 3), Fraction(1, 2), 1])
    ]
    made = fill(tables, 1)
    views += [tables.create_view(f"s{i}", text, strategy=name) for i, name in enumerate(("skew", *COUNTING))]
    for _ in range(2):
        for a in range(6):
            answers = [sorted(view.items(A=a)) for view in views]
            assert [answers[0]] * len(views) == answers
        with tables.batch() as batch:
            for name, mine in made.items():
                batch.delete(name, mine[:30])
        made = fill(tables, 2, rows=10)
    bases = {balance_of(view).base for view in views[:4]}
    assert len(bases) == 1


@pytest.mark.parametrize("hub", some_of([0, 100], 100))
@pytest.mark.parametrize("db", some_of(("native", "pure", "durable", "sharded"), "native"), indirect=True)
def test_a_batch_is_netted_and_cut_where_a_value_comes_too_often(db: Database, hub: int) -> None:
    """The batch is larger than M/4, then smaller; a hub comes often enough to be cut, or not at all."""
    db.create_table("E", {"a": "int", "b": "int"})
    text = "Q(COUNT) = E(A, B), E(B, C), E(C, A)"
    view, alone = (db.create_view(name, text, strategy=name) for name in ("skew", "classical"))
    random = Random(hub)
    expected: Counter[Any] = Counter()
    for size in (300, 90):
        rows = [(random.randrange(300), random.randrange(300)) for _ in range(size)]
        rows += [(0, random.randrange(300)) for _ in range(hub)] + [(1, 2), (2, 3), (3, 1)] * 200
        gone = random.sample(rows, size // 2)
        db.apply("E", rows + gone, [1] * len(rows) + [-1] * len(gone))
        expected += Counter(rows)
        expected -= Counter(gone)
        assert view.scalar() == alone.scalar() > 0
        check_parts(view, {"E": dict(expected)})


@cache
def empty_triangles() -> View:
    database = make_database("native")
    database.create_table("E", {"a": "int", "b": "int"})
    return database.create_view("q", "Q(COUNT) = E(A, B), E(B, C), E(C, A)", strategy="skew")


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 2000), st.sampled_from([Fraction(0), Fraction(1, 2)]))
def test_pieces_cover_a_batch_and_change_no_degree_by_more_than_the_threshold(
    hubs: list[int], base: int, epsilon: Fraction
) -> None:
    rebalancer = empty_triangles().state.group.rebalancer
    assert rebalancer is not None
    rebalancer.balance = replace(rebalancer.balance, base=base, epsilons=(epsilon,))
    rebalancer._set_bounds()
    column = np.array([*(np.repeat(hubs, 30)), *range(10, 400)], dtype=np.int64)
    often = max(SMALLEST_PIECE, rebalancer.threshold(0))
    end = 0
    for piece in rebalancer.pieces([column, column[::-1].copy()], len(column)):
        assert piece.start == end
        end = min(piece.stop, len(column))
        assert max(Counter(column[piece].tolist()).values()) <= often
        assert piece.stop - piece.start <= max(often, base // 4)
    assert end == len(column)


def test_a_view_on_a_skew_view_follows_it(tables: Database) -> None:
    tables.create_view("hops", "SELECT R.a, S.c FROM R JOIN S ON R.b = S.b", strategy="skew", epsilon=0.5)
    closed = tables.create_view("closed", "SELECT COUNT(*) AS n FROM hops h JOIN T ON h.c = T.c AND h.a = T.a")
    alone = tables.create_view("alone", COUNT.replace("Q(. | .)", "Q(COUNT)"), strategy="classical")
    made = fill(tables, 3)
    assert alone.scalar() == closed.scalar() > 0
    tables.delete("R", made["R"][:20])
    assert alone.scalar() == closed.scalar()
    closed.verify()


def test_negative_multiplicities_are_counted_in_ring_mode(tables: Database) -> None:
    view = tables.create_view("q", COUNT.replace("Q(. | .)", "Q(COUNT)"), strategy="skew", semantics="ring")
    random = Random(4)
    total: dict[str, dict[Any, int]] = {"R": {}, "S": {}, "T": {}}
    for _ in range(60):
        name, row = random.choice("RST"), (random.randrange(3), random.randrange(3))
        weight = random.choice([-2, -1, 1, 2])
        tables.apply(name, [row], [weight])
        total[name][row] = total[name].get(row, 0) + weight
        expected = sum(
            r * s * t
            for (a, b), r in total["R"].items()
            for (b2, c), s in total["S"].items()
            for (c2, a2), t in total["T"].items()
            if (a, b, c) == (a2, b2, c2)
        )
        assert expected == view.scalar()
        check_parts(view, {name: {row: n for row, n in rows.items() if n} for name, rows in total.items()})


@pytest.mark.parametrize("text", [COUNT, "Q(A, B | .) = R(A, B), S(B, C), T(C, A)", "Q(A, C | .) = R(A, B), S(B, C)"])
def test_a_batch_that_fails_restores_the_base_and_the_heavy_keys(tables: Database, text: str) -> None:
    view = tables.create_view("q", text, strategy="skew", epsilon=Fraction(1, 4))
    fill(tables, 5, rows=12)
    rebalancer = view.state.group.rebalancer
    assert rebalancer is not None

    def state() -> Any:
        heavy = [stored(view, partition.heavy) for partition in rebalancer.partitions]
        return state_of(tables), rebalancer.balance, heavy, sorted(view.items())

    before = state()
    many = [(i, j) for i in range(20) for j in range(20)]  # doubles M and makes keys heavy
    with pytest.raises(DataError):
        in_one_batch(tables, ("insert", "R", many), ("delete", "T", [(77, 77)]))
    assert before == state()
    tables.insert("R", [(1, 9)])
    view.verify()


def test_a_cursor_over_branches_and_a_snapshot_go_on_with_the_state_that_they_began_on(tables: Database) -> None:
    view = tables.create_view("q", "Q(A, C | .) = R(A, B), S(B, C)", strategy="skew")
    fill(tables, 6)
    expected = sorted(view)
    snapshot, rows = view.snapshot(), iter(view)
    first = next(rows)
    tables.insert("R", [(50, 50)])
    tables.delete("R", [tables.contents("R")[0].to_pylist()[0]])
    assert expected == sorted([first, *rows])
    assert expected == sorted(tuple(row.values()) for row in snapshot.to_pylist())


def test_distinct_rows_come_once(tables: Database) -> None:
    view = tables.create_view("q", "SELECT DISTINCT R.a, S.c FROM R JOIN S ON R.b = S.b", strategy="skew")
    made = fill(tables, 7)
    expected = {(a, c) for a, b in made["R"] for b2, c in made["S"] if b == b2}
    assert sorted(expected) == sorted(view)


def test_predicates_and_permuted_columns_are_split_like_others(tables: Database) -> None:
    joined = "T JOIN S ON T.c = S.c JOIN R ON R.a = T.a AND R.b = S.b"
    text = f"SELECT S.c, COUNT(*) AS n FROM {joined} WHERE R.a > 1 GROUP BY S.c"
    view = tables.create_view("q", text, strategy="skew", epsilon=Fraction(1, 3))
    made = fill(tables, 8)
    view.verify()
    tables.delete("S", made["S"][:25])
    view.verify()


def test_the_first_insert_into_an_empty_database_is_a_major_rebalancing(tables: Database) -> None:
    """Source 000, section 4: M = 1 for the empty database, so that ⌊M/4⌋ <= 0 < M; one tuple doubles it."""
    view = tables.create_view("q", COUNT, strategy="skew")
    assert (balance_of(view).base, balance_of(view).major) == (1, 0)
    tables.insert("R", [(1, 1)])
    assert (balance_of(view).base, balance_of(view).major) == (2, 1)


def test_a_key_rises_at_three_halves_of_the_threshold_and_falls_below_one_half(tables: Database) -> None:
    """With N = 50 loaded at once M = 101 and ε = 1/2: light below 3/2·√101 = 15.07, heavy from 5.02 on."""
    tables.insert("S", [(i, i) for i in range(50)])
    view = tables.create_view("q", COUNT, strategy="skew", epsilon=Fraction(1, 2))
    heavy = {p.key: p.heavy for p in view.state.group.rebalancer.partitions}[("A",)]  # type: ignore[union-attr]
    for i in range(15):
        tables.insert("R", [(7, i)])
    assert (balance_of(view).base, stored(view, heavy)) == (101, {})
    tables.insert("R", [(7, 15)])
    assert stored(view, heavy) == {(7,): 1}
    for i in range(10):
        tables.delete("R", [(7, i)])
    assert stored(view, heavy) == {(7,): 1}
    tables.delete("R", [(7, 10)])
    assert (stored(view, heavy), balance_of(view).minor, balance_of(view).major) == ({}, 2, 0)
