"""Readers of several branches find each row once, with the sum of its payloads, whichever way they are read.

The expected rows come from nested loops in Python over the entries of the maps (`tests/union_programs.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from ivme.engine import lower
from tests.databases import BACKENDS
from tests.union_programs import BranchSpec, Built, Part, UnionSpec, unions

FEW = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
REQUESTS = [1, 0, 7, 1, 2]


def check(backend: str, spec: UnionSpec) -> None:
    """Every way of reading gives the expected rows."""
    built = Built(backend, spec)
    expected = {request: spec.expected(request) for request in {*REQUESTS}}
    for request, rows in expected.items():
        for found in (built.read(request, 1), built.read(request, 3), built.read(request, 4096)):
            assert len(found) == len(rows), "each row comes once"
            assert rows == dict(found)
        assert sorted(rows.items()) == sorted(built.read(request, 2, whole=True))
        assert sorted(rows.items()) == sorted(built.request(request, 1000) or [])
        few = built.request(request, 2)
        assert len(rows) >= 2 if few is None else sorted(rows.items()) == sorted(few)
    many = built.many(REQUESTS)
    numbers = [number for number, _ in many]
    assert numbers == sorted(numbers), "rows come in the order of the requests"
    for number, request in enumerate(REQUESTS):
        assert sorted(expected[request].items()) == sorted(row for place, row in many if place == number)
    check_points(built, spec)


def check_points(built: Built, spec: UnionSpec) -> None:
    """Single rows, some of them twice and some that are not there."""
    rows = {(p, *row): payload for p in range(3) for row, payload in spec.expected(p).items()}
    keys = [*rows, *list(rows)[:2], (1, 99, 0), (9, 0, 0)]
    assert built.points(keys) == {i: rows[key] for i, key in enumerate(keys) if key in rows}


@pytest.mark.parametrize("backend", BACKENDS)
@FEW
@given(spec=unions())
def test_each_row_comes_once_with_its_sums_over_all_branches(backend: str, spec: UnionSpec) -> None:
    check(backend, spec)


def many_guarded() -> UnionSpec:
    """Two branches with many tuples to begin with and an empty component behind a guard."""
    first = Part(("X", "A"), {(1, x, x): (1, 0) for x in range(300)})
    branch = BranchSpec((first, Part(("Y", "B"), {})), True, frozenset())
    return UnionSpec((branch, branch), "", False)


def check_guards() -> None:
    """A request whose guards find nothing is over after a few steps: two values of Z for each branch."""
    built = Built("native", many_guarded())
    for read in (lambda: built.read(1, 8), lambda: built.read(1, 8, whole=True), lambda: built.many([1])):
        before = built.backend.operations
        assert [] == read()
        assert built.backend.operations - before < 20


def test_a_guard_that_finds_nothing_spares_the_search() -> None:
    check_guards()


Parts = list[tuple[list[int], list[int], int | None]]


def _planted(change: Callable[[Parts, int], Parts], disjoint: bool | None = None) -> AbstractContextManager[Any]:
    """Readers whose branches were changed on their way into the kernel; `change` also sees the number of outputs."""
    right = lower.lower_reader

    class Wrong:
        def __init__(self, kernel: Any) -> None:
            self._kernel = kernel

        def __getattr__(self, name: str) -> Any:
            return getattr(self._kernel, name)

        def add_union(self, n: int, outputs: int, asked: Any, parts: Parts, separate: bool, *ways: Any) -> int:
            if disjoint is not None and outputs and len(parts[0][0]) == 1:
                separate = disjoint
            changed = change(parts, outputs)
            made: int = self._kernel.add_union(n, outputs, asked, changed, separate, *ways)
            return made

    def planted(enumeration: Any, kernel: Any, maps: Any, slots: Any = ()) -> int:
        wrong: Any = Wrong(kernel)
        return right(enumeration, wrong, maps, slots)

    return patch.object(lower, "lower_reader", planted)


_factored = lower._factored
FAULTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "a row comes twice": lambda: _planted(lambda parts, _: parts, disjoint=True),
    "the rows of a branch are lost": lambda: _planted(lambda parts, outputs: parts[:-1] or parts if outputs else parts),
    "the sums of one branch only": lambda: _planted(lambda parts, outputs: parts if outputs else parts[:1]),
    "factors are left out": lambda: patch.object(
        lower, "_factored", lambda branch, inputs: [(known, s, ()) for known, s, _ in _factored(branch, inputs)]
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    def fails(spec: UnionSpec) -> bool:
        try:
            check("native", spec)
        except (AssertionError, ValueError):
            return True
        return False

    with FAULTS[fault]():
        search = settings(max_examples=200, deadline=None, phases=[Phase.generate], database=None)
        try:
            find(unions(), fails, settings=search)
        except NoSuchExample:
            pytest.fail(f"{fault}: 200 readers did not show it")


def test_a_guard_that_is_ignored_is_found() -> None:
    without = _planted(lambda parts, _: [(segments, [], probe) for segments, _, probe in parts])
    with without, pytest.raises(AssertionError):
        check_guards()


@FEW
@given(spec=unions(), size=st.integers(1, 5))
def test_a_cursor_goes_on_or_says_so_once_a_map_of_any_branch_has_changed(spec: UnionSpec, size: int) -> None:
    built = Built("native", spec)
    cursors = [built.backend.open("all", (1,), whole=whole) for whole in (False, True)]
    rows = len(built.read(1, 1000))
    taken = [len(cursors[0].next_block(size)[1]), 0]
    branch = spec.branches[-1]
    name = f"M{len(spec.branches) - 1}.0"
    entry = replace(branch.parts[0], entries={(5,) * (1 + len(branch.parts[0].schema)): (1, 0)})
    built.fill(name, ("P", *entry.schema), entry)
    for cursor, before in zip(cursors, taken, strict=True):
        if cursor.pinned:
            assert rows == before + len(cursor.next_block(1000)[1])
            continue
        with pytest.raises(built.backend.stale_cursor):
            cursor.next_block(size)
