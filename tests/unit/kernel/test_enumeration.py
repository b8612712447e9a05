"""Enumeration by blocks: the rows of nested loops, in one order whatever the pages, whatever the sizes of groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme import _kernel
from tests.unit.kernel.programs import column

Pairs = list[tuple[int, int]]


class Chain:
    """Q(A, B, C) = R(A, B), S(B, C), with a check of B in T and a factor U(A, C) that need not be there."""

    def __init__(self, r: Pairs, s: Pairs, t: list[int], u: Pairs) -> None:
        self.kernel = kernel = _kernel.Kernel(7)
        self.tables: list[Counter[Any]] = [Counter(r), Counter(s), Counter((b,) for b in t), Counter(u)]
        self.maps = [kernel.add_map(arity, []) for arity in (2, 2, 1, 2)]
        kernel.add_index(self.maps[0], [0], [1])
        kernel.add_index(self.maps[1], [0], [1])
        for number, rows in zip(self.maps, self.tables, strict=True):
            arity = 1 if number == self.maps[2] else 2
            load: Any = ("load", 0, 0, list(range(arity)), [], [], [], [])
            trigger = kernel.add_trigger(1, [], [load, ("add", 0, number, "")])
            columns = [column(*(row[i] for row in rows)) for i in range(arity)]
            kernel.run(trigger, [(columns, column(*rows.values()))])
        self.reader = self._reader([(self.maps[0], [0, 1], [0, 1])], 0)
        self.by_a = self._reader([(self.maps[0], [0, 1], [1])], 1)

    def _reader(self, first: list[Any], inputs: int) -> int:
        r, s, t, u = self.maps
        loops = [*first, (t, [1], []), (s, [1, 2], [2])]
        factors = [(r, [0, 1]), (s, [1, 2]), (t, [1]), (u, [0, 2])]
        return self.kernel.add_reader(inputs, 3, [0, 1, 2], loops, factors, [])

    def expected(self) -> dict[Any, int]:
        """By nested loops."""
        r, s, t, u = self.tables
        return {
            (a, b, c): r[a, b] * s[b, c] * t[b,] * u[a, c]
            for a, b in r
            for key, c in s
            if key == b and (b,) in t and (a, c) in u
        }

    def read(self, reader: int, inputs: list[int], pages: list[int]) -> list[Any]:
        cursor = self.kernel.open(reader, inputs)
        rows: list[Any] = []
        for page in [*pages, *[10_000] * 1000]:
            columns, counts, _, _ = cursor.next_block(page)
            if not len(counts):
                return rows
            assert len(counts) <= page
            rows += zip(zip(*(c.tolist() for c in columns), strict=True), counts.tolist(), strict=True)
        raise AssertionError("the enumeration does not end")


KEY = st.integers(0, 4)
PAIRS = st.lists(st.tuples(KEY, KEY), max_size=20)


@settings(deadline=None)
@given(PAIRS, PAIRS, st.lists(KEY, max_size=5), PAIRS, st.lists(st.integers(1, 5), max_size=10))
def test_pages_of_any_sizes_give_the_rows_of_nested_loops_in_one_order(
    r: Pairs, s: Pairs, t: list[int], u: Pairs, pages: list[int]
) -> None:
    chain = Chain(r, s, t, u)
    whole = chain.read(chain.reader, [], [])
    assert chain.expected() == dict(whole)
    assert len(whole) == len(dict(whole))
    before = chain.kernel.operations
    assert whole == chain.read(chain.reader, [], [])
    at_once = chain.kernel.operations - before
    assert whole == chain.read(chain.reader, [], pages)
    assert at_once == chain.kernel.operations - before - at_once


@settings(deadline=None)
@given(PAIRS, PAIRS, st.lists(KEY, max_size=5), PAIRS, st.lists(KEY | st.just(_kernel.NULL), max_size=8))
def test_many_requests_are_the_single_ones_in_order(
    r: Pairs, s: Pairs, t: list[int], u: Pairs, asked: list[int]
) -> None:
    chain = Chain(r, s, t, u)
    numbers, columns, counts, _, _ = chain.kernel.request_many(chain.by_a, [column(*asked)])
    rows = zip(zip(*(c.tolist() for c in columns), strict=True), counts.tolist(), strict=True)
    expected = [(i, row) for i, a in enumerate(asked) for row in chain.read(chain.by_a, [a], [])]
    assert expected == list(zip(numbers.tolist(), rows, strict=True))


def test_groups_that_are_larger_than_a_block_are_read_to_their_end() -> None:
    """One B with 5,000 partners, one with 1, many without any, between pages that end within groups."""
    r = [(a, a % 40) for a in range(300)]
    s = [(7, c) for c in range(5000)] + [(8, 1)]
    u = [(a, c) for a in (7, 47, 287) for c in range(0, 5000, 3)] + [(8, 1)]
    chain = Chain(r, s, list(range(40)), u)
    whole = chain.read(chain.reader, [], [])
    assert chain.expected() == dict(whole)
    assert 3 * 1667 + 1 == len(whole)
    assert whole == chain.read(chain.reader, [], [1, 1, 1000, 3, 700] * 4)
    kept = [row for row in whole if row[0][0] == 47]
    assert kept == chain.read(chain.by_a, [47], [100] * 30)


def test_null_is_a_value_like_others_to_the_kernel() -> None:
    null = _kernel.NULL
    chain = Chain([(null, 1)], [(1, 2)], [1], [(null, 2)])
    assert [((null, 1, 2), 1)] == chain.read(chain.by_a, [null], [])
    numbers, columns, _, _, _ = chain.kernel.request_many(chain.by_a, [column(null, 5, null)])
    assert [0, 2] == numbers.tolist()
    assert [null, null] == columns[0].tolist()


def test_a_request_is_answered_in_lists_up_to_its_limit() -> None:
    chain = Chain([(1, 1)], [(1, c) for c in range(70)], [1], [(1, c) for c in range(70)])
    assert chain.kernel.request(chain.by_a, [1], 64) is None
    answer = chain.kernel.request(chain.by_a, [1], 71)
    assert answer is not None
    assert np.array(answer[0])[2].tolist() == [row[2] for row, _ in chain.read(chain.by_a, [1], [])]
