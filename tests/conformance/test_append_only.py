"""Cyclic joins over tables that only grow: counted operations of inserts, on instances that hurt, against the exponent.

`python -m benchmarks.append_only` has larger sizes, and more joins.
"""

from __future__ import annotations

from math import log

import pytest

from benchmarks.append_only import INSTANCES, JOINS, check, inserted
from ivme.query.rule import parse_rule


@pytest.mark.parametrize("kind", INSTANCES)
@pytest.mark.parametrize("name", ["triangle", "diamond", "Loomis-Whitney 4"])
def test_inserts_grow_no_faster_than_the_exponent_says(name: str, kind: str) -> None:
    text, sizes = JOINS[name], (100, 900)
    check(text, INSTANCES[kind](parse_rule(text), 40))
    means = []
    for size in sizes:
        db, mean = inserted(text, INSTANCES[kind](parse_rule(text), size))
        means.append(mean)
    promised = db.view("joined").explain().update.exponent.at(0)
    slope = log(means[1] / means[0]) / log(sizes[1] / sizes[0])
    assert slope <= float(promised) + 0.15, (means, promised)
