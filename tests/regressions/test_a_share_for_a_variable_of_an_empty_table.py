"""A variable without any values had a share of at most 0, so that there was no grid at all."""

from __future__ import annotations

from ivme.shards.hypercube import choose_shares


def test_a_variable_without_values_has_a_share() -> None:
    assert () == choose_shares([(frozenset("A"), 1.0)], "A", 4, {"A": 0})
