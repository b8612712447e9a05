"""Shares: chosen as well as by trying everything, and grids in which every assignment lies in exactly one cell."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.shards.hashing import hash_column
from ivme.shards.hypercube import Occurrence, choose_patterns, choose_shares, expected_load
from ivme.shards.routing import Routing, asked_places, places
from tests.random_queries import queries

PATH = [(frozenset("AB"), 100.0), (frozenset("BC"), 100.0), (frozenset("CD"), 100.0)]


def brute_force_load(atoms: list[tuple[frozenset[str], float]], variables: list[str], cells: int) -> float:
    grids = product(range(1, cells + 1), repeat=len(variables))
    return min(
        expected_load(atoms, dict(zip(variables, shares, strict=True))) for shares in grids if prod(shares) <= cells
    )


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.frozensets(st.sampled_from("ABCD"), min_size=1), st.integers(1, 10**6)), min_size=1, max_size=4
    ),
    st.integers(1, 9),
)
def test_no_grid_has_a_smaller_load(drawn: list[tuple[frozenset[str], int]], cells: int) -> None:
    atoms = [(variables, float(rows)) for variables, rows in drawn]
    variables = sorted(set().union(*(variables for variables, _ in atoms)))
    chosen = choose_shares(atoms, variables, cells, {})
    assert prod(share for _, share in chosen) <= cells
    assert brute_force_load(atoms, variables, cells) == pytest.approx(expected_load(atoms, dict(chosen)))


def test_a_variable_of_all_atoms_is_hashed_alone() -> None:
    star = [(frozenset("XA"), 5.0), (frozenset("XB"), 500.0), (frozenset("XC"), 50.0)]
    assert (("X", 8),) == choose_shares(star, "ABCX", 8, {})


def test_a_small_table_is_copied_rather_than_a_large_one() -> None:
    sizes = [(frozenset("AB"), 1_000_000.0), (frozenset("BC"), 1_000_000.0), (frozenset("CD"), 10.0)]
    assert (("B", 8),) == choose_shares(sizes, "ABCD", 8, {})
    assert (("C", 8),) == choose_shares([(frozenset("AB"), 10.0), *PATH[1:]], "ABCD", 8, {})


def test_a_variable_with_few_values_gets_no_larger_share() -> None:
    shares = dict(choose_shares([(frozenset("AB"), 100.0), (frozenset("BC"), 100.0)], "BAC", 8, {"B": 2}))
    assert 2 == shares["B"]
    assert 8 == prod(shares.values())


def test_only_allowed_variables_are_shared() -> None:
    assert {"A"} == {variable for variable, _ in choose_shares(PATH, "A", 4, {})}
    assert () == choose_shares(PATH, "", 4, {})


def test_heavy_values_get_a_grid_over_other_variables() -> None:
    atoms = [Occurrence(frozenset("AB"), 100, {"B": 0.5}), Occurrence(frozenset("BC"), 100, {"B": 0.5})]
    light, heavy = choose_patterns(atoms, "ABC", 4, {})
    assert (frozenset(), (("B", 4),)) == (light.heavy, light.shares)
    assert (frozenset("B"), {"A": 2, "C": 2}) == (heavy.heavy, dict(heavy.shares))


@settings(max_examples=60, deadline=None)
@given(queries(max_atoms=4, max_variables=4), st.integers(1, 9), st.data())
def test_each_assignment_lies_in_exactly_one_cell(query: Any, shards: int, data: Any) -> None:
    """Over all patterns and shards, the rows of an assignment meet once."""
    variables = query.variables
    domain = 4
    skewed = data.draw(st.lists(st.sampled_from(variables), max_size=2, unique=True)) if variables else []
    occurrences = [
        Occurrence(frozenset(a.variables), data.draw(st.integers(1, 99)), {v: 0.3 for v in a.variables if v in skewed})
        for a in query.atoms
    ]
    hashes = hash_column(np_array(domain))
    heavy = tuple((v, (int(hashes[0]), int(hashes[1]))) for v in skewed)
    routing = Routing(shards, heavy, choose_patterns(occurrences, variables, shards, {}))
    assignments = np.array(list(product(range(domain), repeat=len(variables)))).reshape(domain ** len(variables), -1)
    columns = {v: hashes[assignments[:, i]] for i, v in enumerate(variables)}
    met: Counter[tuple[int, int, int]] = Counter()
    for atom in query.atoms:
        for pattern, shard, numbers in places(routing, {v: columns[v] for v in atom.variables}, len(assignments)):
            met.update((number, pattern, shard) for number in numbers.tolist())
    complete = Counter(number for (number, _, _), atoms in met.items() if atoms == len(query.atoms))
    assert dict.fromkeys(range(len(assignments)), 1) == complete


def np_array(domain: int) -> Any:
    import pyarrow as pa

    return pa.array(range(domain))


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(2, 200))
def test_a_row_comes_to_a_shard_at_most_once_in_a_pattern(shards: int, rows: int) -> None:
    atoms = [Occurrence(frozenset(v), 10, {}) for v in ("AB", "BC", "CA")]
    routing = Routing(shards, (), choose_patterns(atoms, "ABC", shards, {}))
    hashes = {v: np.random.default_rng(rows).integers(0, 2**63, rows).astype(np.uint64) for v in "AB"}
    came: set[tuple[int, int, int]] = set()
    for pattern, shard, numbers in places(routing, hashes, rows):
        for number in numbers.tolist():
            assert (pattern, shard, number) not in came
            came.add((pattern, shard, number))
    assert set(range(rows)) == {number for _, _, number in came}


def test_a_request_asks_only_the_shards_that_agree_with_it() -> None:
    atoms = [Occurrence(frozenset("AB"), 10, {}), Occurrence(frozenset("AC"), 10, {})]
    routing = Routing(8, (), choose_patterns(atoms, "ABC", 8, {}))
    assert 1 == len(asked_places(routing, {"A": hash_column(np_array(1))}))
    assert 8 == len(asked_places(routing, {}))


def test_a_routing_survives_being_written() -> None:
    atoms = [Occurrence(frozenset("AB"), 100, {"B": 0.5}), Occurrence(frozenset("BC"), 100, {"B": 0.5})]
    routing = Routing(4, (("B", (2**64 - 1, 7)),), choose_patterns(atoms, "ABC", 4, {}))
    assert routing == Routing.from_json(routing.to_json())
