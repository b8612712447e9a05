"""Rebalancing without stalls: exact at every step, and no update costs more than a constant times N^max(ε, 1-ε)."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.gradual import ROWS_AN_UPDATE, SWEPT_AN_UPDATE, GradualRebalancer
from ivme.errors import DataError, PlanError
from tests.databases import BACKENDS, in_one_batch, make_database
from tests.example_counts import examples

TRIANGLE = "Q(. | .) = R(A, B), S(B, C), T(C, A)"
EDGES = "Q(. | .) = E(A, B), E(B, C), E(C, A)"

CONSTANT = 400
"""The operations of the dearest update, over M^max(ε, 1-ε): the row itself and 8 that leave one side for the other,
each at 3 places of the self-join, with up to 4 rules each, whose joins visit and check up to 3/2·M^ε entries."""


def triangles(r: Counter[Any], s: Counter[Any], t: Counter[Any]) -> int:
    """By nested loops."""
    return sum(m * n * t[c, a] for ((a, b), m), ((b2, c), n) in product(r.items(), s.items()) if b == b2 and t[c, a])


def rebalancer_of(db: Any) -> GradualRebalancer:
    found = db._runtime.catalog.views["q"].group.rebalancer
    assert isinstance(found, GradualRebalancer)
    return found


def check_sides(db: Any) -> None:
    """Keys are within the bounds of their side, but for those that are moving or that a sweep has still to find."""
    rebalancer = rebalancer_of(db)
    backend = db._runtime.backend
    if any(position >= 0 for position in rebalancer._positions):
        return
    for number, partition in enumerate(rebalancer.partitions):
        rising, falling = (
            list(zip(*(c.tolist() for c in keys), strict=True))
            for keys in backend.census(partition.name, rebalancer.threshold(number))
        )
        heavy = set(zip(*(c.tolist() for c in backend.scan(partition.heavy)[0]), strict=True))
        assert heavy.isdisjoint(rising)
        assert heavy.issuperset(falling)


@pytest.mark.parametrize("backend", BACKENDS)
@given(
    st.sampled_from([0, 0.3, 0.5, 1]),
    st.lists(
        st.tuples(st.sampled_from("RST"), st.tuples(st.integers(0, 3), st.integers(0, 3)), st.booleans()), max_size=60
    ),
)
@settings(max_examples=examples(25), deadline=None)
def test_a_count_is_exact_while_keys_are_moving(backend: str, epsilon: float, stream: list[Any]) -> None:
    db = make_database(backend)
    held: dict[str, Counter[Any]] = {}
    for name in "RST":
        db.create_table(name, {"x": "int", "y": "int"})
        held[name] = Counter()
    view = db.create_view("q", TRIANGLE, strategy="skew", rebalance="deamortised", epsilon=epsilon)
    for name, row, insert in stream:
        if insert:
            db.insert(name, [row])
            held[name][row] += 1
        elif held[name][row]:
            db.delete(name, [row])
            held[name][row] -= 1
        assert sum(m for _, m in view.items()) == triangles(*held.values())
        check_sides(db)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_key_that_turns_back_while_it_moves_ends_up_where_it_belongs(backend: str) -> None:
    db = make_database(backend)
    db.create_table("E", {"x": "int", "y": "int"})
    view = db.create_view("q", EDGES, strategy="skew", rebalance="deamortised", epsilon=0.5)
    db.insert("E", [(i, j) for i in range(12) for j in range(12) if (i + j) % 3])
    star = [(100 + i, 0) for i in range(60)]
    for row in star:
        db.insert("E", [row])
    assert rebalancer_of(db).balance.minor > 0
    for row in star:
        db.delete("E", [row])
    view.verify()
    for _ in range(200):
        db.insert("E", [(500, 501)])
        db.delete("E", [(500, 501)])
    assert rebalancer_of(db).waiting == 0
    view.verify()


def test_no_update_takes_more_than_a_constant_times_the_root_of_n() -> None:
    """Growing to four sizes and shrinking again, so that M doubles and halves and hubs change sides on the way."""
    db = make_database("native")
    db.create_table("E", {"x": "int", "y": "int"})
    db.create_view("q", EDGES, strategy="skew", rebalance="deamortised", epsilon=0.5)
    rebalancer = rebalancer_of(db)
    backend = db._runtime.backend
    rows = [(i % 7 if i % 3 else i, (i * 31) % 997 if i % 2 else i % 5) for i in range(2500)]
    rows = list(dict.fromkeys(rows))
    for weight, order in ((1, rows), (-1, rows[::-1])):
        for row in order:
            before = backend.operations
            db.apply("E", [row], [weight])
            spent = backend.operations - before
            assert spent <= CONSTANT * max(8, rebalancer.balance.base**0.5), (row, weight, spent)
    assert rebalancer.balance.major > 10
    assert rebalancer.balance.minor > 3
    assert SWEPT_AN_UPDATE < CONSTANT
    assert ROWS_AN_UPDATE * 2 + 1 == 17


def test_a_failing_batch_puts_the_waiting_keys_back() -> None:
    db = make_database("native")
    db.create_table("E", {"x": "int", "y": "int"})
    view = db.create_view("q", EDGES, strategy="skew", rebalance="deamortised", epsilon=0.5)
    db.insert("E", [(i, 0) for i in range(40)] + [(0, i) for i in range(40)])
    rebalancer, backend = rebalancer_of(db), db._runtime.backend
    assert isinstance(backend, NativeBackend)
    before = (rebalancer.balance, dict(rebalancer._waiting), backend.kernel.digest())
    rows = [(i, 1) for i in range(200)]
    with pytest.raises(DataError, match="not there"):
        in_one_batch(db, ("insert", "E", rows), ("delete", "E", [(7, 7)]))
    assert (rebalancer.balance, rebalancer._waiting, backend.kernel.digest()) == before
    view.verify()


@pytest.mark.parametrize("query", ["Q(B, C | .) = R(A, B), S(A, C)", "Q(. | .) = R(A), S(A, B), T(B)"])
def test_where_relations_are_split_together_it_is_refused(query: str) -> None:
    db = make_database("native")
    for name, width in {"R": 2, "S": 2, "T": 1}.items():
        db.create_table(name, {f"c{i}": "int" for i in range(1 if "R(A)," in query and name == "R" else width)})
    with pytest.raises(PlanError, match="one by one"):
        db.create_view("q", query, strategy="skew", rebalance="deamortised")
