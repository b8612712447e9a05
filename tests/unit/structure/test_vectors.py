"""Widths and classes of four bodies under all access patterns, found by brute force elsewhere."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from ivme.plan.order.search import best_order
from ivme.structure.classify import classify
from ivme.structure.fracture import fracture
from tests.brute_force import cqap

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "widths.json").read_text())


@pytest.mark.slow
def test_all_vectors_have_the_widths_and_classes_they_should() -> None:
    assert len(VECTORS) == 432
    for vector in VECTORS:
        query = cqap(vector["query"])
        choice = best_order(fracture(query).whole)
        found = classify(query)
        actual = {
            "query": vector["query"],
            "dynamic_width": str(choice.widths.dynamic),
            "static_width": str(choice.widths.static),
            "hierarchical_fracture": found.hierarchical_fracture,
            "cqap0": found.cqap0,
        }
        assert choice.exact
        assert vector == actual


def test_cqap1_is_dynamic_width_one_among_hierarchical_fractures() -> None:
    """Proposition 5.30, on the vectors."""
    for vector in VECTORS:
        if vector["hierarchical_fracture"]:
            assert (Fraction(vector["dynamic_width"]) == 1) == classify(cqap(vector["query"])).cqap1, vector["query"]
