"""A relation occurs twice with the same variables: one occurrence carries the sums, and keys move in each alone."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.engines import Engine


@pytest.mark.parametrize("backend", ["native", "pure"])
@pytest.mark.parametrize("strategy", ["skew", None])
def test_keys_turn_heavy_and_light_in_both_occurrences(backend: str, strategy: str | None, tmp_path: Path) -> None:
    database = Engine(backend, tmp_path).database
    database.create_table("R", {"A": "int"})
    database.create_table("S", {"A": "int", "B": "int"})
    options = {} if strategy is None else {"strategy": strategy}
    view = database.create_view("v", "Q(B, COUNT, SUM(A) | .) = R(A), R(A), S(A, B)", **options)
    chosen = random.Random(7)
    rows: list[tuple[str, tuple[int, ...]]] = []
    for _ in range(40):
        if rows and chosen.random() < 0.4:
            table, row = rows.pop(chosen.randrange(len(rows)))
            database.delete(table, [row])
        else:
            key = chosen.randrange(3)
            rows.append(("R", (key,)) if chosen.random() < 0.3 else ("S", (key, chosen.randrange(8))))
            database.insert(rows[-1][0], [rows[-1][1]])
        view.verify()
