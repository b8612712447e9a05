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
