"""A run that fails leaves no trace: the digest of all maps and indexes is what it was."""

from __future__ import annotations

import signal
import threading
from typing import Any

import duckdb
import numpy as np
import pytest

from ivme import _kernel
from tests.unit.kernel.programs import OneMap, Path, column

LARGEST = 2**63 - 1


def test_a_count_that_overflows_is_found_and_rolled_back() -> None:
    one = OneMap(1)
    one.add([column(1, 2)], column(LARGEST, 5))
    before = one.kernel.digest()
    with pytest.raises(_kernel.PayloadOverflow):
        one.add([column(7, 2, 1)], column(1, 1, 1))
    assert before == one.kernel.digest()
    assert one.contents() == {(1,): (LARGEST,), (2,): (5,)}
    one.kernel.verify()


def test_errors_are_our_own_beside_another_extension_of_the_same_kind() -> None:
    """DuckDB is bound by nanobind too, and translates whatever exceptions it is shown."""
    duckdb.connect().close()
    one = OneMap(1)
    _kernel.limit_allocations(0)
    try:
        with pytest.raises(MemoryError):
            one.insert(np.arange(1000))
    finally:
        _kernel.limit_allocations(-1)
    assert issubclass(_kernel.PayloadOverflow, OverflowError)


def test_partial_counts_may_leave_64_bits_where_the_sum_of_all_does_not() -> None:
    one = OneMap(1)
    one.add([column(1)], column(LARGEST))
    one.add([column(1, 1, 1, 1, 1)], column(LARGEST, LARGEST, -LARGEST, -LARGEST, -5))
    assert one.contents() == {(1,): (LARGEST - 5,)}
    before = one.kernel.digest()
    for weights in ([LARGEST, LARGEST], [-LARGEST] * 4, [2**62] * 4):
        with pytest.raises(_kernel.PayloadOverflow):
            one.add([column(*[2] * len(weights))], column(*weights))
        assert before == one.kernel.digest()


@pytest.mark.parametrize("slot", ["i128", "d192"])
def test_partial_sums_may_wrap_where_the_sum_of_all_is_within_its_words(slot: str) -> None:
    one = OneMap(1, [slot], ["int"])
    values, weights = [LARGEST] * 6 + [-1], [LARGEST] * 3 + [-LARGEST] * 3 + [2]
    one.add([column(*[1] * 7), column(*values)], column(*weights))
    assert one.kernel.get(one.map, [1]) == (2, -2)
    one.add([column(1), column(LARGEST)], column(LARGEST - 2))
    assert one.kernel.get(one.map, [1]) == (LARGEST, LARGEST * (LARGEST - 2) - 2)


@pytest.mark.parametrize(("slot", "limit", "most"), [("i128", "int", 2**63 - 1), ("d192", "decimal", 10**38 - 1)])
def test_sums_beyond_their_limit_are_known_at_the_end_of_a_transaction(slot: str, limit: str, most: int) -> None:
    one = OneMap(1, [slot], ["wide"])
    one.kernel.limit(one.map, [limit])
    for total, misfits in (
        (most, set()),
        (-most, set()),
        (most + 1, {(one.map, (1,))}),
        (-most - 1, {(one.map, (1,))}),
    ):
        low, high = total & (2**64 - 1), total >> 64
        one.kernel.begin()
        for weight in (3, -2):
            one.add([column(1), column(low - (low >> 63 << 64)), column(high)], column(weight))
        assert misfits == set(one.kernel.misfits())
        one.kernel.commit()
        assert one.kernel.misfits() == []
        assert {(one.map, codes) for codes in one.kernel.limit(one.map, [limit])} == misfits
        one.add([column(1), column(low - (low >> 63 << 64)), column(high)], column(-1))


def test_a_wide_sum_holds_what_64_bits_cannot() -> None:
    one = OneMap(1, ["i128"], ["int"])
    for _ in range(8):
        one.add([column(1), column(2**62)], column(1))
    assert one.kernel.get(one.map, [1]) == (8, 2**65)
    one.add([column(1), column(2**62)], column(-9))
    assert one.kernel.get(one.map, [1]) == (-1, -(2**62))


def test_a_product_that_overflows_in_a_join_rolls_back_the_maps_before_it() -> None:
    path = Path()
    path.apply(path.on_s, [1], [1], 2**40)
    before = path.kernel.digest()
    with pytest.raises(_kernel.PayloadOverflow):
        path.apply(path.on_r, [5, 1], [2, 1], 2**40)
    assert before == path.kernel.digest()
    assert path.kernel.size(path.r) == 0


def test_float_sums_come_back_bit_by_bit() -> None:
    one = OneMap(1, ["f64", "i64"], ["float", "int"])
    tenth, third = _float(0.1), _float(1 / 3)
    one.add([column(1), column(tenth), column(1)], column(1))
    before = one.kernel.digest()
    with pytest.raises(_kernel.PayloadOverflow):
        one.add([column(1, 1), column(third, third), column(1, 1)], column(1, LARGEST - 1))
    assert before == one.kernel.digest()
    assert one.kernel.get(one.map, [1]) == (1, 0.1, 1)


def _float(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def test_an_emptied_group_leaves_no_rounding_behind() -> None:
    one = OneMap(1, ["f64"], ["float"])
    one.add([column(1), column(_float(0.1))], column(3))
    one.add([column(1), column(_float(0.3))], column(-3))
    assert one.contents() == {}
    one.add([column(1), column(_float(0.5))], column(1))
    assert one.kernel.get(one.map, [1]) == (1, 0.5)


def test_a_strict_map_refuses_counts_below_zero_and_names_the_entry() -> None:
    one = OneMap(2, check="present")
    one.insert([1, 2], [3, 4])
    before = one.kernel.digest()
    with pytest.raises(_kernel.BrokenCheck) as refused:
        one.delete([1, 9], [3, 9])
    assert refused.value.args[1] == (9, 9)
    assert before == one.kernel.digest()
    one.add([[9, 9], [9, 9]], [-1, 1])  # judged on the net weight
    assert before == one.kernel.digest()


def filled() -> Path:
    rng = np.random.default_rng(3)
    path = Path()
    path.apply(path.on_r, rng.integers(0, 30, 200), rng.integers(0, 30, 200))
    path.apply(path.on_s, rng.integers(0, 30, 200), rng.integers(0, 30, 200))
    return path


@pytest.mark.parametrize("weight", [1, -1])
def test_every_allocation_may_fail_and_the_database_goes_on(weight: int) -> None:
    rng = np.random.default_rng(4)
    rows: list[Any] = [rng.integers(0, 60, 500), rng.integers(0, 60, 500)]
    budget, failures = 0, 0
    while True:
        path = filled()
        before = path.kernel.digest()
        _kernel.limit_allocations(budget)
        try:
            path.apply(path.on_r, rows[0], rows[1], weight)
            break
        except MemoryError:
            failures += 1
        finally:
            _kernel.limit_allocations(-1)
        assert before == path.kernel.digest()
        path.kernel.verify()
        path.apply(path.on_r, rows[0], rows[1], weight)
        path.kernel.verify()
        budget += 1
    assert failures > 10


def test_a_transaction_of_several_runs_is_all_or_nothing() -> None:
    path = filled()
    before = path.kernel.digest()
    path.kernel.begin()
    path.apply(path.on_r, range(50), range(50))
    path.apply(path.on_s, range(50), range(50), -1)
    path.kernel.roll_back()
    assert before == path.kernel.digest()
    path.kernel.verify()
    path.kernel.begin()
    path.apply(path.on_r, range(50), range(50))
    with pytest.raises(_kernel.PayloadOverflow):
        path.apply(path.on_s, [1], [1], LARGEST)
    assert before == path.kernel.digest()
    path.kernel.begin()
    path.apply(path.on_r, range(50), range(50))
    path.kernel.commit()
    assert before != path.kernel.digest()


def test_rolling_back_restores_groups_that_grew_shrank_and_went_away() -> None:
    rng = np.random.default_rng(8)
    path = filled()
    before = path.kernel.digest()
    path.kernel.begin()
    for _ in range(60):
        n = int(rng.integers(1, 200))
        relation = path.on_r if rng.integers(2) else path.on_s
        path.apply(relation, rng.integers(0, 8, n), rng.integers(0, 40, n), int(rng.choice([-3, -1, 1, 2])))
    _kernel.limit_allocations(0)
    try:
        path.kernel.roll_back()
    finally:
        _kernel.limit_allocations(-1)
    assert before == path.kernel.digest()
    path.kernel.verify()


def test_an_interrupt_stops_a_long_run_and_rolls_it_back() -> None:
    path = Path()
    path.apply(path.on_s, np.zeros(3000), np.arange(3000))
    before = path.kernel.digest()
    timer = threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            path.apply(path.on_r, np.arange(50_000), np.zeros(50_000))
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert before == path.kernel.digest()
    path.kernel.verify()
