"""The kernel's closures on graphs large enough for bitsets, splits and levels, and when memory runs out."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from ivme._kernel import NULL, Closure, StaleCursor, limit_allocations
from ivme.closure.check import reachable

Edge = tuple[int, int]


def apply(closure: Closure, batch: Counter[Edge]) -> None:
    rows = [(a, b, weight) for (a, b), weight in batch.items() if weight]
    closure.change(*(np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)))


def pairs_of(closure: Closure) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    cursor = closure.open()
    while len((block := cursor.next_block(1000))[0]):
        for a, b in zip(block[0].tolist(), block[1].tolist(), strict=True):
            found.setdefault(a, set()).add(b)
    return found


@pytest.mark.parametrize("kind", ["digraph", "undirected"])
@pytest.mark.parametrize(("nodes", "density"), [(100, 0.7), (100, 1.3), (200, 1.0), (30, 4.0)])
def test_large_graphs_near_the_threshold_where_components_come_and_go(kind: str, nodes: int, density: float) -> None:
    chance = random.Random(nodes + int(10 * density))
    closure, held = Closure(kind, 3), Counter[Edge]()
    closure.follow(True)
    told: Counter[Edge] = Counter()
    for step in range(15):
        batch: Counter[Edge] = Counter()
        room = int(nodes * density) - held.total()
        for _ in range(max(room, 0) if step == 0 else chance.randint(1, 12)):
            batch[chance.randrange(nodes), chance.randrange(nodes)] += 1
        for edge in chance.sample(sorted(held), min(len(held), chance.randint(0, 12))):
            batch[edge] -= held[edge]
        apply(closure, batch)
        for a, b, weight in zip(*(column.tolist() for column in closure.changed()), strict=True):
            told[a, b] += weight
        closure.commit()
        closure.check()
        held.update(batch)
        held = Counter({edge: count for edge, count in held.items() if count})
        expected = reachable(held, undirected=kind == "undirected")
        assert expected == pairs_of(closure)
    assert {(a, b): 1 for a, ends in expected.items() for b in ends} == {pair: w for pair, w in told.items() if w}


@pytest.mark.parametrize("kind", ["digraph", "undirected"])
def test_when_memory_runs_out_a_change_is_rolled_back(kind: str) -> None:
    chance = random.Random(8)
    start = Counter((chance.randrange(60), chance.randrange(60)) for _ in range(80))
    batch = Counter((chance.randrange(90), chance.randrange(90)) for _ in range(300))
    for edge in chance.sample(sorted(start), 20):
        batch[edge] -= start[edge]
    failed = 0
    for budget in range(30):
        closure = Closure(kind, 3)
        apply(closure, start)
        closure.commit()
        before = pairs_of(closure)
        limit_allocations(budget)
        try:
            apply(closure, batch)
            done = True
        except MemoryError:
            done = False
        finally:
            limit_allocations(-1)
        if not done:
            failed += 1
            closure.roll_back()
            closure.check()
            assert before == pairs_of(closure)
            apply(closure, batch)
        closure.commit()
        closure.check()
        after = start.copy()
        after.update(batch)
        assert reachable([e for e in after if after[e]], undirected=kind == "undirected") == pairs_of(closure)
    assert 0 < failed < 30


def test_a_multiplicity_that_does_not_fit_is_an_error_and_rolled_back() -> None:
    closure = Closure("digraph", 1)
    apply(closure, Counter({(1, 2): 2**63 - 1}))
    closure.commit()
    with pytest.raises(OverflowError):
        apply(closure, Counter({(1, 2): 1, (2, 3): 1}))
    closure.roll_back()
    assert {1: {2}} == pairs_of(closure)


def test_null_is_one_node_as_a_start_and_another_as_an_end() -> None:
    closure = Closure("digraph", 1)
    apply(closure, Counter({(1, NULL): 1, (NULL, 1): 1}))
    closure.commit()
    assert {1: {NULL}, NULL: {1, NULL}} == pairs_of(closure)
    assert (True, False) == (closure.reaches(NULL, NULL), closure.reaches(1, 1))


def test_a_cursor_notices_a_change() -> None:
    closure = Closure("undirected", 1)
    apply(closure, Counter({(1, 2): 1}))
    closure.commit()
    cursor = closure.open()
    apply(closure, Counter({(1, 2): -1}))
    closure.commit()
    with pytest.raises(StaleCursor):
        cursor.next_block()
    assert (0, 0, {}) == (closure.nodes, closure.edges, pairs_of(closure))


def test_columns_of_different_lengths_and_unknown_kinds_are_refused() -> None:
    one, two = np.array([1]), np.array([1, 2])
    with pytest.raises(ValueError, match="differ in length"):
        Closure("digraph", 1).change(one, two, one)
    with pytest.raises(ValueError, match="differ in length"):
        Closure("digraph", 1).reaches_many(one, two)
    with pytest.raises(ValueError, match="a closure is of"):
        Closure("tree", 1)


def test_an_edge_between_connected_nodes_costs_the_same_however_large_the_closure() -> None:
    """Operations, not time: a chord of a large cycle changes no row."""
    spent = []
    for nodes in (100, 1000):
        closure = Closure("digraph", 1)
        apply(closure, Counter({(i, (i + 1) % nodes): 1 for i in range(nodes)}))
        closure.commit()
        before = closure.operations
        apply(closure, Counter({(5, 50): 1}))
        closure.commit()
        spent.append(closure.operations - before)
    assert spent[0] == spent[1]


def test_undirected_changes_cost_polylogarithmically_many_operations() -> None:
    """A path whose edges go one by one while others replace them: operations a change grow as log^2 at most."""
    spent = []
    for nodes in (256, 4096):
        closure, chance = Closure("undirected", 1), random.Random(2)
        edges = Counter({(i, i + 1): 1 for i in range(nodes)})
        edges.update({(chance.randrange(nodes), chance.randrange(nodes)): 1 for _ in range(nodes)})
        apply(closure, Counter(dict.fromkeys(edges, 1)))
        closure.commit()
        before = closure.operations
        for i in range(0, nodes, 2):
            apply(closure, Counter({(i, i + 1): -1}))
            closure.commit()
        spent.append((closure.operations - before) / (nodes / 2))
    assert spent[1] < spent[0] * (12 / 8) ** 2 * 2
