"""Heavy/light partitions on both backends, side by side, against counts by brute force.

A partition on the key (A, B) with two leaves. The first has the parts R_1(A, B, C) and R_2(B, A, C); both are given
every change of R, so that a key has twice its tuples. The second has three kinds of part: S(A, B, C, D) by its
projection to A, B, C, then T(B, A) by itself and U(A, B) as the projection of U(A, B, C) to its key.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.plan.ir import program as ir
from ivme.query.rule import parse_rule
from tests.databases import BACKENDS
from tests.example_counts import examples

ONE = Fraction(1)
KEY = ("A", "B")
SCHEMAS = {"R": "ABC", "S": "ABCD", "T": "BA", "U": "ABC", "Heavy": "AB"}
LEAVES = {"R": 0, "S": 1, "T": 1, "U": 1}
MAPS = {
    "R_1": ("ABC", ir.Index((0, 1), (2,))),
    "R_2": ("BAC", ir.Index((1, 0), (2,))),
    "S": ("ABCD", ir.Index((0, 1), (2,))),
    "T": ("BA", ir.Index((1, 0), ())),
    "U": ("ABC", ir.Index((0, 1), ())),
    "H": ("AB", None),
}
INDEXES = {name: index for name, (_, index) in MAPS.items() if index is not None}
PARTITION = ir.Partition(
    "P",
    "H",
    KEY,
    ONE / 2,
    tuple(ir.Degree(tuple((name, INDEXES[name]) for name in names)) for names in (("R_1", "R_2"), ("S", "T", "U"))),
)

Key = tuple[int, int]
Contents = dict[str, Counter[Any]]
Update = tuple[str, dict[Any, int]]


def source(relation: str) -> ir.Source:
    schema = tuple(SCHEMAS[relation])
    atom = parse_rule(f"Q({', '.join(schema)}) = {relation}({', '.join(schema)})").atoms[0]
    return ir.Source(atom, tuple(f"_{i}" for i, _ in enumerate(schema, 1)), schema)


def steps(relation: str) -> list[ir.Step]:
    """Adds a relation's changes to its maps, then watches the key."""
    changes: list[ir.Step] = [ir.Load("d", source(relation))]
    for name, (schema, _) in MAPS.items():
        if name[0] == relation[0]:
            changes += [ir.Project(f"for {name}", "d", tuple(schema)), ir.Add(f"for {name}", name)]
    return changes + ([ir.Watch("d", "P", KEY, LEAVES[relation])] if relation in LEAVES else [])


def make_backend(kind: str) -> Any:
    backend: Any = NativeBackend(7) if kind == "native" else PureBackend()
    for name, (schema, index) in MAPS.items():
        declared = () if index is None or name == "T" else (index,)
        backend.install([ir.Map(name, tuple(schema), "leaf", ONE, indexes=declared)], [], {})
    backend.set_partition(PARTITION)
    for relation in SCHEMAS:
        backend.set_trigger(relation, steps(relation), [])
    return backend


@pytest.fixture(params=BACKENDS)
def backend(request: Any) -> Any:
    return make_backend(request.param)


def apply(backend: Any, relation: str, changes: dict[Any, int]) -> None:
    columns = [np.array([row[i] for row in changes], np.int64) for i in range(len(SCHEMAS[relation]))]
    backend.run(relation, {relation: (columns, np.array(list(changes.values()), np.int64))})


def insert(backend: Any, relation: str, *rows: Any) -> None:
    apply(backend, relation, dict.fromkeys(rows, 1))


def keys(noted: Any) -> tuple[list[Key], list[Key]]:
    """Rising and falling keys in order, each once."""
    rising, falling = (sorted(zip(*(c.tolist() for c in columns), strict=True)) for columns in noted)
    assert all(len(set(side)) == len(side) for side in (rising, falling))
    return rising, falling


def degrees(database: Contents, key: Key) -> tuple[int, int]:
    """The degrees of a key in the two leaves, counted row by row."""
    a, b = key
    of_r = sum(row[:2] == key for row in database["R"])
    of_s = len({row[:3] for row in database["S"] if row[:2] == key})
    return 2 * of_r, of_s + ((b, a) in database["T"]) + any(row[:2] == key for row in database["U"])


def change(database: Contents, relation: str, changes: dict[Any, int]) -> None:
    database[relation].update(changes)
    database[relation] = Counter({row: weight for row, weight in database[relation].items() if weight})


def expected_census(database: Contents, threshold: int) -> tuple[list[Key], list[Key]]:
    domain = [(a, b) for a in range(3) for b in range(3)]
    reaching = {key for key in domain if max(degrees(database, key)) >= threshold}
    heavy = set(database["Heavy"])
    return sorted(reaching - heavy), sorted(heavy - reaching)


@st.composite
def updates(draw: Any) -> Update:
    relation = draw(st.sampled_from(list(SCHEMAS)))
    row = st.tuples(*[st.integers(0, 2)] * len(SCHEMAS[relation]))
    return relation, draw(st.dictionaries(row, st.sampled_from([1, 1, 1, -1]), max_size=6))


class Watching:
    """What must be noted: a model that judges each key by the rows of the database."""

    def __init__(self, lower: int, upper: int) -> None:
        self.lower, self.upper = lower, upper
        self.database: Contents = {relation: Counter() for relation in SCHEMAS}
        self.noted: tuple[set[Key], set[Key]] = (set(), set())

    def apply(self, relation: str, changes: dict[Any, int]) -> None:
        change(self.database, relation, changes)
        if relation not in LEAVES:
            return
        for row in changes:
            key = (row[1], row[0]) if relation == "T" else (row[0], row[1])
            found = degrees(self.database, key)
            if key not in self.database["Heavy"] and found[LEAVES[relation]] >= self.upper:
                self.noted[0].add(key)
            if key in self.database["Heavy"] and max(found) < self.lower:
                self.noted[1].add(key)

    def take(self) -> tuple[list[Key], list[Key]]:
        heavy = set(self.database["Heavy"])
        rising = {key for key in self.noted[0] - heavy if max(degrees(self.database, key)) >= self.upper}
        falling = {key for key in self.noted[1] & heavy if max(degrees(self.database, key)) < self.lower}
        self.noted = (set(), set())
        return sorted(rising), sorted(falling)


@pytest.mark.parametrize("bounds", [(1, 1), (1, 2), (2, 3), (3, 3)])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_the_keys_noted_are_those_whose_degree_left_the_bounds(bounds: tuple[int, int], data: Any) -> None:
    backends, model = [make_backend(kind) for kind in BACKENDS], Watching(*bounds)
    for backend in backends:
        backend.set_bounds("P", *bounds)
    for relation, changes in data.draw(st.lists(updates(), max_size=12)):
        model.apply(relation, changes)
        for backend in backends:
            apply(backend, relation, changes)
        if data.draw(st.booleans()):
            expected = model.take()
            assert [expected] * 2 == [keys(backend.noted("P")) for backend in backends]
        assert backends[0].operations == backends[1].operations
    assert [0, 0] == [backend.scans for backend in backends]
    expected = model.take()
    assert [expected] * 2 == [keys(backend.noted("P")) for backend in backends]
    backends[0].kernel.verify()


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(updates(), max_size=12))
def test_a_census_finds_every_key_on_the_wrong_side(batches: list[Update]) -> None:
    backends = [make_backend(kind) for kind in BACKENDS]
    database: Contents = {relation: Counter() for relation in SCHEMAS}
    for relation, changes in batches:
        change(database, relation, changes)
        for backend in backends:
            apply(backend, relation, changes)
    groups = 2 * len({row[:2] for row in database["R"]}) + len({row[:2] for row in database["S"]})
    groups += len(database["T"]) + len({row[:2] for row in database["U"]}) + len(database["Heavy"])
    for threshold in (1, 2, 3, 4):
        for backend in backends:
            before = backend.operations
            assert expected_census(database, threshold) == keys(backend.census("P", threshold))
            assert groups == backend.operations - before
    assert [4, 4] == [backend.scans for backend in backends]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(updates(), max_size=6), st.lists(updates(), max_size=6), st.booleans())
def test_a_rollback_brings_back_the_notes_as_they_were(first: list[Update], then: list[Update], takes: bool) -> None:
    for backend in map(make_backend, BACKENDS):
        model = Watching(1, 2)
        backend.set_bounds("P", 1, 2)
        for update in first:
            apply(backend, *update)
            model.apply(*update)
        backend.begin()
        for update in then:
            apply(backend, *update)
        if takes:
            backend.noted("P")
        backend.roll_back()
        assert model.take() == keys(backend.noted("P"))


@settings(max_examples=40, deadline=None)
@given(st.lists(updates(), max_size=8))
def test_a_single_row_notes_what_a_batch_of_one_does(batches: list[Update]) -> None:
    native, pure = make_backend("native"), make_backend("pure")
    for backend in (native, pure):
        backend.set_bounds("P", 2, 2)
    for relation, changes in batches:
        for row, weight in changes.items():
            native.run_one(native.number(relation), row, weight)
            apply(pure, relation, {row: weight})
            assert native.operations == pure.operations
    assert keys(pure.noted("P")) == keys(native.noted("P"))


def test_nothing_is_noted_without_bounds(backend: Any) -> None:
    insert(backend, "Heavy", (1, 1))
    insert(backend, "R", (0, 0, 0), (0, 0, 1), (0, 0, 2))
    insert(backend, "R", (1, 1, 0))
    apply(backend, "R", {(1, 1, 0): -1})
    assert ([], []) == keys(backend.noted("P"))


def test_noted_keys_outlive_a_commit_and_are_taken_once(backend: Any) -> None:
    backend.set_bounds("P", 1, 2)
    backend.begin()
    insert(backend, "R", (0, 1, 0))
    insert(backend, "R", (0, 1, 2))
    backend.commit()
    assert ([(0, 1)], []) == keys(backend.noted("P"))
    assert ([], []) == keys(backend.noted("P"))


def test_a_batch_that_fails_notes_nothing(backend: Any) -> None:
    """The watch is done when the last step finds a row that is there already. Without an upper bound any note shows."""
    backend.set_bounds("P", 1, 1)
    failing = [*steps("R"), ir.Rename("e", "d", ("A", "B", "C")), ir.Add("e", "U", "unique")]
    backend.set_trigger("R", failing, [])
    insert(backend, "U", (0, 0, 0))
    backend.noted("P")
    with pytest.raises(backend.broken_check):
        insert(backend, "R", (1, 1, 1), (0, 0, 0))
    backend.set_bounds("P", 1, 0)
    assert ([], []) == keys(backend.noted("P"))


def test_a_heavy_key_stays_while_one_leaf_has_enough(backend: Any) -> None:
    backend.set_bounds("P", 2, 4)
    insert(backend, "Heavy", (0, 0))
    insert(backend, "S", (0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 0))
    insert(backend, "R", (0, 0, 0))
    apply(backend, "R", {(0, 0, 0): -1})
    assert ([], []) == keys(backend.noted("P"))
    apply(backend, "S", {(0, 0, 0, 1): -1})
    assert ([], []) == keys(backend.noted("P")), "the projection still has (0, 0, 0)"
    apply(backend, "S", {(0, 0, 1, 0): -1})
    assert ([], [(0, 0)]) == keys(backend.noted("P"))


def test_a_scan_step_is_counted(backend: Any) -> None:
    backend.set_trigger("all", [ir.Scan("d", "T", ("B", "A")), ir.Emit("d", "T")], [])
    backend.run("all", {})
    backend.scan("T")
    assert 1 == backend.scans


def test_a_partition_needs_its_indexes(backend: Any) -> None:
    missing = ir.Degree((("S", ir.Index((2, 3), (0, 1))),))
    with pytest.raises(ValueError, match="index"):
        backend.set_partition(ir.Partition("other", "H", ("C", "D"), ONE, (missing,)))


def test_a_partition_is_dropped_after_its_triggers_and_before_its_maps() -> None:
    backend = make_backend("native")
    with pytest.raises(ValueError, match="still watches"):
        backend.drop_partition("P")
    for relation in SCHEMAS:
        backend.drop_trigger(relation)
    with pytest.raises(ValueError, match="a partition"):
        backend.kernel.drop_map(backend._maps["H"])
    backend.begin()
    with pytest.raises(ValueError, match="within a transaction"):
        backend.drop_partition("P")
    backend.roll_back()
    backend.drop_partition("P")
    backend.drop_partition("P")
    backend.kernel.drop_map(backend._maps["H"])
