"""The kernel's ordered map: what fails leaves no trace, nodes of their real size, and what it takes of memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme import _kernel
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.native_backend import native_columns
from ivme.engine.ordered import OrderedColumn, place_keys
from ivme.query.types import parse_type

LARGEST = 2**63 - 1


def make(room: int = 0, summed: tuple[int, ...] = ()) -> _kernel.OrderedMap:
    """Rows of two integers, the second one descending."""
    return _kernel.OrderedMap([(0, False, True, None, True), (1, True, False, None, True)], 0, summed, room)


def rows(*values: int) -> list[Any]:
    return [np.array(values, np.int64), np.arange(len(values), dtype=np.int64)]


def contents(ordered: _kernel.OrderedMap) -> list[tuple[int, int, int]]:
    ordered.check()
    _, columns, copies = ordered.rows(np.zeros(1, np.int64), np.array([ordered.copies]))
    return list(zip(columns[0].tolist(), columns[1].tolist(), copies.tolist(), strict=True))


def test_rows_come_in_their_order_from_nodes_of_their_real_size() -> None:
    rng = np.random.default_rng(3)
    ordered = make(summed=(1,))
    values, ids = rng.integers(-50, 50, 20_000), rng.integers(0, 1000, 20_000)
    ordered.load([values, ids], np.ones(20_000, np.int64))
    expected: dict[tuple[int, int], int] = {}
    for pair in zip(values.tolist(), ids.tolist(), strict=True):
        expected[pair] = expected.get(pair, 0) + 1
    order = sorted(expected, key=lambda pair: (pair[0], -pair[1]))
    assert [(*pair, expected[pair]) for pair in order] == contents(ordered)
    gone = rng.permutation(20_000)[:15_000]
    ordered.apply([values[gone], ids[gone]], np.full(15_000, -1))
    ordered.commit()
    assert 5_000 == ordered.copies
    (sums,), (known,) = ordered.totals(np.array([5_000]))
    left = np.setdiff1d(np.arange(20_000), gone)
    assert (int(ids[left].sum()), 5_000) == (int(sums[0][0]), int(known[0]))
    ordered.apply([values[left], ids[left]], np.full(5_000, -1))
    ordered.commit()
    assert (0, 0, []) == (len(ordered), ordered.copies, contents(ordered))


def test_a_count_below_zero_or_beyond_64_bits_is_refused_and_rolled_back() -> None:
    ordered = make()
    ordered.load(rows(5, 6), np.array([2, LARGEST - 2]))
    before = contents(ordered)
    with pytest.raises(ValueError, match="fewer than no copies"):
        ordered.apply(rows(5, 7), np.array([-2, -1]))
    ordered.roll_back()
    assert before == contents(ordered)
    with pytest.raises(_kernel.PayloadOverflow):
        ordered.apply(rows(5, 6), np.array([-1, 2]))
    ordered.roll_back()
    assert before == contents(ordered)


@pytest.mark.parametrize("room", [0, 4])
def test_an_allocation_that_fails_leaves_no_trace(room: int) -> None:
    ordered = make(room)
    ordered.load(rows(*range(0, 3000, 3)), np.ones(1000, np.int64))
    before = contents(ordered)
    new = [np.arange(5000, dtype=np.int64) * 7 % 3001, np.full(5000, 9)]
    failures = 0
    for budget in range(200):
        _kernel.limit_allocations(budget)
        try:
            ordered.apply_shown(new, np.ones(5000, np.int64), (0, 10, 0, 2))
        except MemoryError:
            failures += 1
        else:
            break
        finally:
            _kernel.limit_allocations(-1)
            ordered.roll_back()
            assert before == contents(ordered)
    assert 3 < failures < 199


@pytest.mark.parametrize("room", [0, 4])
def test_a_load_that_fails_leaves_a_map_without_rows(room: int) -> None:
    ordered = make(room, summed=(0,))
    given, ones = [np.arange(5000) * 7 % 3001, np.arange(5000)], np.ones(5000, np.int64)
    failures = 0
    for budget in range(200):
        _kernel.limit_allocations(budget)
        try:
            ordered.load(given, ones)
        except MemoryError:
            failures += 1
        else:
            break
        finally:
            _kernel.limit_allocations(-1)
        assert (0, []) == (ordered.copies, contents(ordered))
    assert 3 < failures < 199
    assert sorted(
        zip(*(column.tolist() for column in given), [1] * 5000, strict=True), key=lambda r: (r[0], -r[1])
    ) == (contents(ordered))
    for weights, error in (([1, 1, -2], ValueError), ([LARGEST, 1, 1], _kernel.PayloadOverflow)):
        empty = make(room)
        with pytest.raises(error):
            empty.load([np.array([1, 2, 2]), np.zeros(3, np.int64)], np.array(weights))
        assert [] == contents(empty)


def test_weights_of_one_row_add_up_when_a_map_is_loaded() -> None:
    ordered = make()
    ordered.load([np.array([4, 0, 4, 0, 4]), np.zeros(5, np.int64)], np.array([-1, 1, 3, -1, 1]))
    assert [(4, 0, 3)] == contents(ordered)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("loaded", [False, True])
def test_strings_that_begin_alike_and_others_have_one_order(descending: bool, loaded: bool) -> None:
    rng = random.Random(5)
    domains = native_domains()
    columns = [domains.domain(parse_type(name)) for name in ("string", "int")]
    order = place_keys([OrderedColumn(0, columns[0], descending)], [], columns)
    ordered = _kernel.OrderedMap(native_columns(order), 0, [], 4)
    first = [f"user {rng.randrange(10**9):09d}" for _ in range(200)]
    others = [
        "",
        "user",
        "user ",
        "user \0",
        "user \x7f",
        "use",
        "v",
        "usf",
        "a",
        "user 0000000000",
        "\U0001f600",
        None,
    ]

    def give(texts: list[Any], weight: int, act: Any) -> None:
        act(
            [columns[0].encode(pa.array(texts, pa.string())), np.zeros(len(texts), np.int64)],
            np.full(len(texts), weight),
        )
        ordered.commit()

    def check(texts: list[Any]) -> None:
        ordered.check()
        _, found, _ = ordered.rows(np.zeros(1, np.int64), np.array([ordered.copies]))
        known = sorted((text for text in texts if text is not None), reverse=descending)
        assert [None] * (None in texts) + known == columns[0].values(found[0].tolist())

    give(first, 1, ordered.load if loaded else ordered.apply)
    check(first)
    give(others, 1, ordered.apply)
    check(first + others)
    give(first[:150] + others[::2], -1, ordered.apply)
    check(first[150:] + others[1::2])


def test_a_row_takes_little_more_than_its_words() -> None:
    ordered = make()
    ordered.load([np.arange(100_000), np.zeros(100_000, np.int64)], np.ones(100_000, np.int64))
    assert ordered.memory_bytes() / 100_000 < 32


def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match="rows of another width"):
        make().apply(rows(1)[:1], np.ones(1, np.int64))
    with pytest.raises(ValueError, match="each column once"):
        _kernel.OrderedMap([(0, False, True, None, True)] * 2, 0, ())
