"""Cursors, batches of requests, change feeds, and readers beside a writer."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from ivme import _kernel
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule
from tests.programs import NativeProgram
from tests.unit.kernel.programs import OneMap, Path, column


def path() -> Path:
    made = Path()
    made.apply(made.on_r, [1, 1, 2], [10, 11, 10])
    made.apply(made.on_s, [10, 10, 11], [5, 6, 5])
    return made


def read(kernel: _kernel.Kernel, reader: int, inputs: list[int], block: int) -> dict[Any, int]:
    cursor = kernel.open(reader, inputs)
    answer: dict[Any, int] = {}
    while True:
        columns, counts, _, _ = cursor.next_block(block)
        if not len(counts):
            return answer
        assert len(counts) <= block
        answer.update(zip(zip(*(c.tolist() for c in columns), strict=True), counts.tolist(), strict=True))


@pytest.mark.parametrize("block", [1, 2, 100])
def test_blocks_of_any_size_give_the_whole_answer(block: int) -> None:
    p = path()
    assert read(p.kernel, p.reader, [], block) == {(1, 5): 2, (1, 6): 1, (2, 5): 1, (2, 6): 1}
    assert read(p.kernel, p.by_a, [1], block) == {(5,): 2, (6,): 1}
    assert read(p.kernel, p.by_a, [_kernel.NULL], block) == {}


def test_many_requests_come_with_their_numbers() -> None:
    p = path()
    numbers, columns, counts, _, _ = p.kernel.request_many(p.by_a, [column(2, 77, 1)])
    rows = sorted(zip(numbers.tolist(), columns[0].tolist(), counts.tolist(), strict=True))
    assert rows == [(0, 5, 1), (0, 6, 1), (2, 5, 2), (2, 6, 1)]


def test_a_cursor_that_outlives_a_write_goes_on_with_what_was_there() -> None:
    p = path()
    cursor = p.kernel.open(p.reader, [])
    assert len(cursor.next_block(1)[1]) == 1
    p.apply(p.on_r, [9], [10])
    assert p.kernel.old_bytes > 0
    assert len(cursor.next_block()[1]) == 3
    del cursor
    assert (p.kernel.pinned_maps, p.kernel.old_bytes) == (0, 0), "what nobody reads goes"
    assert len(read(p.kernel, p.reader, [], 8)) == 6


def test_a_cursor_says_so_if_there_is_no_memory_for_what_was_there() -> None:
    p = path()
    p.kernel.limit_old_maps(0)
    cursor = p.kernel.open(p.reader, [])
    cursor.next_block(1)
    p.apply(p.on_r, [9], [10])
    with pytest.raises(_kernel.StaleCursor):
        cursor.next_block(1)


@pytest.mark.parametrize("left", range(12))
def test_memory_that_ends_while_a_map_is_copied_concerns_the_reader_only(left: int) -> None:
    p = path()
    cursor = p.kernel.open(p.reader, [])
    cursor.next_block(1)
    p.apply(p.on_s, [77], [5])  # what this needs for itself is there from now on
    p.apply(p.on_s, [77], [5], -1)
    further = p.kernel.open(p.reader, [])
    _kernel.limit_allocations(left)
    try:
        p.apply(p.on_r, [9], [10])
        written = True
    except MemoryError:
        written = False
    finally:
        _kernel.limit_allocations(-1)
    p.kernel.verify()
    assert (6 if written else 4) == len(read(p.kernel, p.reader, [], 8))
    with suppress(_kernel.StaleCursor):
        assert 4 == sum(len(further.next_block()[1]) for _ in range(2))


def test_a_cursor_survives_writes_that_leave_its_maps_alone() -> None:
    p = path()
    cursor = p.kernel.open(p.reader, [])
    p.apply(p.on_r, [9], [99])
    assert len(cursor.next_block()[1]) == 4


def test_emitted_deltas_are_the_changes_of_the_view() -> None:
    one = OneMap(1)
    steps: list[Any] = [("load", 0, 0, [0], [], [], [], []), ("add", 0, one.map, ""), ("emit", 0)]
    trigger = one.kernel.add_trigger(1, [], steps)
    ((columns, counts, slots),) = one.kernel.run(trigger, [([column(4, 5, 4)], column(1, 2, 1))])
    assert dict(zip(columns[0].tolist(), counts.tolist(), strict=True)) == {4: 2, 5: 2}
    assert slots == []
    emitted = one.kernel.run_one(trigger, (4,), -2)
    assert emitted is not None
    assert emitted[0][1].tolist() == [-2]


def test_readers_beside_a_writer_see_whole_batches_only() -> None:
    """Each batch moves every row, so that all of them have the same number or the reader saw a part."""
    one = OneMap(2)
    reader = one.kernel.add_reader(0, 2, [0, 1], [(one.map, [0, 1], [0, 1])], [], [])
    keys = np.arange(500)
    one.insert(keys, np.zeros(500))
    stop, torn, reads = threading.Event(), [], [0]

    def watch() -> None:
        while not stop.is_set():
            cursor = one.kernel.open(reader, [])
            parts = [cursor.next_block(100)[0][1] for _ in range(6)]
            reads[0] += 1
            if [100] * 5 + [0] != list(map(len, parts)) or len(set(np.concatenate(parts).tolist())) != 1:
                torn.append(parts)

    threads = [threading.Thread(target=watch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for generation in range(300):
        one.add([np.tile(keys, 2), np.repeat([generation, generation + 1], 500)], np.repeat([-1, 1], 500))
    stop.set()
    for thread in threads:
        thread.join()
    assert not torn
    assert reads[0] > 0
    one.kernel.verify()


def test_a_single_row_takes_the_same_way_as_a_batch() -> None:
    program = plan_with("view-tree", parse_rule("Q(A, SUM(X), COUNT) = R(A,X), S(A)")).program
    batch, single = NativeProgram(program), NativeProgram(program)
    tables: dict[str, list[Any]] = {"R": [(1, 5), (1, 7), (2, None), (None, 1)], "S": [(1,), (2,), (1,)]}
    for relation, rows in tables.items():
        for row in rows:
            single.apply_one(relation, row, 2)
            batch.apply(relation, {row: 2})
    assert list(batch.items({})) == list(single.items({}))
    assert batch.operations == single.operations
    with pytest.raises(TypeError):
        single.kernel.run_one(0, [1, 2], 1)  # type: ignore[arg-type]


def test_a_transaction_hides_its_parts_from_other_threads() -> None:
    one = OneMap(1)
    seen: list[int] = []
    one.kernel.begin()
    one.insert([1])
    reader = threading.Thread(target=lambda: seen.append(one.kernel.size(one.map)))
    reader.start()
    one.insert([2])
    assert one.kernel.size(one.map) == 2, "the thread of the transaction sees what it has done"
    reader.join(0.05)
    assert seen == []
    one.kernel.commit()
    reader.join()
    assert seen == [2]


def test_a_cursor_reads_what_was_there_within_its_own_transaction() -> None:
    p = path()
    p.kernel.begin()
    p.apply(p.on_r, [8], [10])
    cursor = p.kernel.open(p.reader, [])
    p.apply(p.on_r, [9], [10])
    assert len(cursor.next_block()[1]) == 6
    p.kernel.roll_back()
    assert len(read(p.kernel, p.reader, [], 8)) == 4


def test_a_cursor_reads_on_while_the_transaction_of_another_thread_is_open() -> None:
    p = path()
    cursor = p.kernel.open(p.reader, [])
    p.kernel.begin()
    p.apply(p.on_r, [9], [10])
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(cursor.next_block()[1])))
    thread.start()
    thread.join(10)
    assert found == [4]
    p.kernel.commit()


def test_a_map_that_is_cleared_is_left_to_its_cursor() -> None:
    one = OneMap(2)
    one.kernel.add_index(one.map, [0], [1])
    reader = one.kernel.add_reader(0, 2, [0, 1], [(one.map, [0, 1], [0, 1])], [], [])
    one.insert(np.arange(500), np.zeros(500))
    cursor = one.kernel.open(reader, [])
    cursor.next_block(100)
    one.kernel.clear_map(one.map)
    one.kernel.verify()
    assert one.kernel.size(one.map) == 0
    assert len(cursor.next_block()[1]) == 400
