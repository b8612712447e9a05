"""What updates over heavy and light parts cost: counted operations over growing N, on instances made to hurt."""

from __future__ import annotations

from math import isqrt, log
from typing import Any

import pytest

from tests.databases import make_database

SIZES = (400, 6400)
TOLERANCE = 0.1


def star(size: int) -> list[Any]:
    """Every edge touches the node 0: whoever joins two stars from there looks at N nodes."""
    return [edge for i in range(1, size // 2) for edge in ((0, i), (i, 0))]


def dense(size: int) -> list[Any]:
    """√N nodes, all of degree √N: no key is heavier than another."""
    return [(a, b) for a in range(isqrt(size)) for b in range(isqrt(size))]


def slope(text: str, strategy: str, edges: Any) -> float:
    """The exponent of the operations that it takes to toggle a row, per relation the dearest."""
    dearest = []
    for size in SIZES:
        db = make_database("native")
        for name, columns in (("R", "ab"), ("S", "bc"), ("T", "ca")):
            db.create_table(name, dict.fromkeys(columns, "int"))
            db.insert(name, edges(size))
        view = db.create_view("v", text, strategy=strategy)
        before, scans = view.stats()["operations"], db._runtime.backend.scans
        for _ in range(20):
            for name in ("R", "S", "T"):
                db.apply(name, [(0, 0)], [1])
                db.apply(name, [(0, 0)], [-1])
        dearest.append(view.stats()["operations"] - before)
        assert scans == db._runtime.backend.scans
        db.close()
    return log(dearest[1] / dearest[0]) / log(SIZES[1] / SIZES[0])


@pytest.mark.parametrize("edges", [star, dense])
@pytest.mark.parametrize("head", ["Q(. | .)", "Q(A | .)", "Q(C | A, B)", "Q(A, B, C | .)"])
def test_updates_of_triangles_grow_no_faster_than_the_square_root(head: str, edges: Any) -> None:
    assert slope(f"{head} = R(A, B), S(B, C), T(C, A)", "skew", edges) <= 0.5 + TOLERANCE


def test_first_order_deltas_grow_linearly_on_the_same_stars() -> None:
    """So the instance is one that hurts."""
    assert slope("Q(. | .) = R(A, B), S(B, C), T(C, A)", "classical", star) >= 0.9


@pytest.mark.parametrize(
    "text", ["Q(B, C | A) = R(A, B), S(B, C)", "Q(B, C, D | A) = R(A, B), S(B, C), T(B, D)"], ids=["path", "star"]
)
def test_a_request_that_finds_nothing_looks_at_the_heavy_values_and_not_at_their_partners(text: str) -> None:
    """Source 003, Theorem 3.5: delay N^(1-ε). No row is found beside √N heavy values of degree √N."""
    found = []
    for size in SIZES:
        root = isqrt(size)
        db = make_database("native")
        for name, columns in (("R", "ab"), ("S", "bc"), ("T", "bd")):
            db.create_table(name, dict.fromkeys(columns, "int"))
        view = db.create_view("v", text)
        assert ("skew", "O(N^(1-ε))") == (view.explain().strategy, str(view.explain().delay))
        db.insert("R", [(1, b) for b in range(root)])
        for name in "ST":
            db.insert(name, [(b, c) for b in range(root) for c in range(4 * root)])
        before = view.stats()["operations"]
        assert [] == list(view(A=7))
        found.append(view.stats()["operations"] - before)
        db.close()
    assert log(found[1] / found[0]) / log(SIZES[1] / SIZES[0]) <= 0.5 + TOLERANCE
