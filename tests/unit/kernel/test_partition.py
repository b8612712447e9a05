"""Partitions of the compiled kernel where sizes matter: many keys at once, little memory, foreign numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ivme import _kernel
from ivme._kernel import Kernel
from tests.unit.kernel.programs import column

UPPER = 4


class Graph:
    """Edges (A, B) that are partitioned on A by their number; a key's own tuple is a leaf as well."""

    def __init__(self) -> None:
        self.kernel = kernel = Kernel(5)
        self.edges, self.keys, self.heavy = kernel.add_map(2, []), kernel.add_map(1, []), kernel.add_map(1, [])
        kernel.add_index(self.edges, [0], [1])
        self.partition = kernel.add_partition(self.heavy, [[(self.edges, [0], [1])], [(self.keys, [0], [])]])
        kernel.set_bounds(self.partition, 2, UPPER)
        load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
        watch = ("watch", 0, self.partition, [0], 0)
        self.on_edges = kernel.add_trigger(1, [], [load, ("add", 0, self.edges, ""), watch])
        keys: Any = ("load", 0, 0, [0], [], [], [], [])
        self.on_heavy = kernel.add_trigger(1, [], [keys, ("add", 0, self.heavy, "")])

    def add(self, edges: Any, weight: int = 1) -> None:
        columns = [np.ascontiguousarray(edges[:, i]) for i in range(2)]
        self.kernel.run(self.on_edges, [(columns, np.full(len(edges), weight, np.int64))])

    def noted(self) -> tuple[list[int], list[int]]:
        rising, falling = self.kernel.take_noted(self.partition)
        return sorted(rising[0].tolist()), sorted(falling[0].tolist())


def some_edges(n: int) -> Any:
    drawn = np.random.default_rng(11).integers(0, n // 3, (n, 2))
    return np.unique(drawn, axis=0)


def reaching(edges: Any, bound: int) -> list[int]:
    found, counts = np.unique(edges[:, 0], return_counts=True)
    return list(found[counts >= bound].tolist())


def test_thousands_of_keys_rise_and_fall_in_one_batch() -> None:
    """More than one block of rows, and enough notes that the kernel gives memory back when they are gone."""
    graph, edges = Graph(), some_edges(30_000)
    graph.add(edges)
    high = reaching(edges, UPPER)
    assert len(high) > 2_000
    assert (high, []) == graph.noted()
    graph.kernel.run(graph.on_heavy, [([column(*high)], np.ones(len(high), np.int64))])
    graph.add(edges, -1)
    assert ([], high) == graph.noted()
    assert ([], []) == graph.noted()


def test_a_key_that_came_back_in_the_same_transaction_is_not_taken() -> None:
    graph, edges = Graph(), some_edges(300)
    graph.kernel.begin()
    graph.add(edges)
    graph.add(edges, -1)
    assert ([], []) == graph.noted()
    graph.kernel.commit()


def test_a_run_out_of_memory_leaves_the_notes_as_they_were() -> None:
    """Every allocation fails in turn, whether of a map, of its index, of a note or of the log."""
    edges = some_edges(300)
    failures = 0
    for budget in range(100):
        graph = Graph()
        graph.add(edges[:100])
        before = graph.kernel.digest()
        _kernel.limit_allocations(budget)
        try:
            graph.add(edges[100:])
        except MemoryError:
            failures += 1
            edges_there = edges[:100]
        else:
            edges_there = edges
        finally:
            _kernel.limit_allocations(-1)
        assert (before == graph.kernel.digest()) == (len(edges_there) == 100)
        assert (reaching(edges_there, UPPER), []) == graph.noted()
        graph.kernel.verify()
        if len(edges_there) > 100:
            break
    assert 0 < failures < 100


def test_keys_that_cannot_be_taken_for_want_of_memory_stay_noted() -> None:
    edges = some_edges(300)
    failures = 0
    for budget in range(100):
        graph = Graph()
        graph.add(edges)
        _kernel.limit_allocations(budget)
        try:
            graph.kernel.take_noted(graph.partition)
        except MemoryError:
            failures += 1
        else:
            break
        finally:
            _kernel.limit_allocations(-1)
        assert (reaching(edges, UPPER), []) == graph.noted()
    assert 0 < failures < 100


@pytest.mark.parametrize(
    ("heavy", "degrees", "message"),
    [
        (4, [[(0, [1], [0])]], "index"),
        (4, [[(1, [0], [1])]], "projection"),
        (4, [], "at least one leaf"),
        (2, [[(0, [], [0, 1])]], "at least one column"),
        (3, [[(0, [0], [1])]], "columns of the heavy keys"),
        (3, [[(0, [0, 0], [])]], "twice"),
    ],
)
def test_a_partition_that_does_not_fit_its_maps_is_refused(heavy: int, degrees: Any, message: str) -> None:
    kernel = Kernel(5)
    maps = [kernel.add_map(arity, []) for arity in (2, 3, 0, 2, 1)]
    kernel.add_index(maps[0], [0], [1])
    with pytest.raises(ValueError, match=message):
        kernel.add_partition(maps[heavy], degrees)
    for number in maps:
        kernel.drop_map(number)


@pytest.mark.parametrize(
    ("watch", "message"),
    [
        (("watch", 0, 0, [0, 1], 0), "every column of the key"),
        (("watch", 0, 0, [2], 0), "not there"),
        (("watch", 0, 0, [0], 2), "leaf"),
        (("watch", 0, 1, [0], 0), "no such partition"),
        (("watch", 1, 0, [0], 0), "register"),
    ],
)
def test_a_watch_that_does_not_fit_its_partition_is_refused(watch: Any, message: str) -> None:
    graph = Graph()
    load: Any = ("load", 0, 0, [0, 1], [], [], [], [])
    with pytest.raises((ValueError, IndexError), match=message):
        graph.kernel.add_trigger(2, [], [load, watch])
    with pytest.raises(IndexError, match="no such partition"):
        graph.kernel.take_noted(3)
