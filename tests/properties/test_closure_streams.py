"""Closures under random streams of edges, on all three classes of graphs, against networkx."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme._kernel import Closure, Cycle
from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.engine import GRAPHS, ClosureEngine
from ivme.closure.ies import IES
from ivme.closure.pure import PureClosure, PureCycle
from ivme.closure.systems import acyclic_closure, digraph_closure, undirected_closure
from ivme.errors import DataError
from tests.graphs import Edge, closure_of, has_cycle, stream

ENGINES: dict[str, Callable[[str], ClosureEngine]] = {"native": lambda g: Closure(g, 7), "pure": PureClosure}
SYSTEMS: dict[str, Callable[[], IES]] = {
    "acyclic": acyclic_closure,
    "undirected": undirected_closure,
    "digraph": digraph_closure,
}


def columns(batch: dict[Edge, int]) -> list[Any]:
    return [np.array(column, dtype=np.int64) for column in zip(*((*e, w) for e, w in batch.items()), strict=True)]


def pairs(engine: ClosureEngine) -> set[Edge]:
    cursor, found = engine.open(), []
    while len((block := cursor.next_block(5))[0]):
        found += list(zip(block[0].tolist(), block[1].tolist(), strict=True))
    assert len(found) == len(set(found)) == engine.pairs
    return set(found)


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(12))
def test_an_engine_has_the_pairs_that_networkx_has(graph: str, engine_name: str, seed: int) -> None:
    engine, held, before = ENGINES[engine_name](graph), Counter[Edge](), set[Edge]()
    chance = random.Random(seed)
    engine.follow(True)
    for batch in stream(graph, seed, chance.choice((3, 6, 12)), 25):
        if not batch:
            continue
        after = held.copy()
        after.update(batch)
        edges = [edge for edge, count in after.items() if count]
        if graph == "acyclic" and has_cycle(edges):
            with pytest.raises((Cycle, PureCycle)) as refused:
                engine.change(*columns(batch))
            (nodes,) = refused.value.args
            assert nodes[0] == nodes[-1]
            assert set(pairwise(nodes)) <= set(edges)
            engine.roll_back()
            assert before == pairs(engine)
            continue
        engine.change(*columns(batch))
        expected = closure_of(edges, graph)
        told = {(a, b): w for a, b, w in zip(*(c.tolist() for c in engine.changed()), strict=True)}
        assert {**dict.fromkeys(expected - before, 1), **dict.fromkeys(before - expected, -1)} == told
        if chance.random() < 0.2:
            engine.roll_back()
            assert before == pairs(engine)
            engine.change(*columns(batch))
        engine.commit()
        engine.check()
        held, before = Counter({edge: count for edge, count in after.items() if count}), expected
        assert expected == pairs(engine)


@pytest.mark.parametrize("engine_name", ENGINES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_a_path_is_a_shortest_one(graph: str, engine_name: str) -> None:
    engine, held = ENGINES[engine_name](graph), Counter[Edge]()
    for batch in stream(graph, 5, 9, 20):
        after = held.copy()
        after.update(batch)
        edges = [edge for edge, count in after.items() if count]
        if not batch or (graph == "acyclic" and has_cycle(edges)):
            continue
        engine.change(*columns(batch))
        engine.commit()
        held = Counter({edge: count for edge, count in after.items() if count})
        made = nx.DiGraph(edges + ([(b, a) for a, b in edges] if graph == "undirected" else []))
        reached = closure_of(edges, graph)
        for a, b in [(a, b) for a in range(9) for b in range(9)]:
            path = engine.path(a, b)
            assert ((a, b) in reached) == bool(path) == engine.reaches(a, b)
            if path:
                steps = list(pairwise(path))
                assert (a, b) == (path[0], path[-1])
                assert all(made.has_edge(*step) for step in steps)
                assert len(steps) == 1 + min(
                    nx.shortest_path_length(made, c, b) for c in made.successors(a) if nx.has_path(made, c, b)
                )


edges_strategy = st.lists(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.sampled_from((1, 1, -1))), min_size=1, max_size=8),
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(("digraph", "undirected")), edges_strategy)
def test_the_kernel_and_its_twin_agree(graph: str, batches: list[list[tuple[int, int, int]]]) -> None:
    one, other = ENGINES["native"](graph), ENGINES["pure"](graph)
    held: Counter[Edge] = Counter()
    for changes in batches:
        batch: Counter[Edge] = Counter()
        for a, b, weight in changes:
            if weight > 0 or held[a, b] + batch[a, b] > 0:
                batch[a, b] += weight
        if not any(batch.values()):
            continue
        held.update(batch)
        for engine in (one, other):
            engine.change(*columns(batch))
            engine.commit()
        one.check()
        assert (other.nodes, other.components) == (one.nodes, one.components)
        assert pairs(other) == pairs(one)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(3))
def test_an_ies_in_duckdb_has_the_pairs_that_networkx_has(graph: str, seed: int) -> None:
    executor = DuckDbExecutor(SYSTEMS[graph]())
    held: Counter[Edge] = Counter()
    for number, batch in enumerate(stream(graph, seed, 5, 10, 3)):
        gone = [edge for edge, weight in batch.items() for _ in range(-weight)]
        come = [edge for edge, weight in batch.items() for _ in range(weight)]
        after = held.copy()
        after.update(batch)
        expected = closure_of([edge for edge, count in held.items() if count], graph)
        if graph == "acyclic" and has_cycle(edge for edge, count in after.items() if count):
            with pytest.raises(DataError, match="would close the cycle"):
                executor.insert_many("edge", come)
        else:
            if number % 2:
                executor.delete_many("edge", gone)
                executor.insert_many("edge", come)
            else:
                for edge in gone:
                    executor.delete("edge", edge)
                for edge in come:
                    executor.insert("edge", edge)
            held = Counter({edge: count for edge, count in after.items() if count})
            expected = closure_of(held, graph)
        assert sorted(expected) == executor.answer()


@pytest.mark.parametrize("seed", range(3))
def test_many_undirected_edges_at_once_make_the_forest_that_one_after_the_other_makes(seed: int) -> None:
    chance = random.Random(seed)
    one, other = DuckDbExecutor(undirected_closure()), DuckDbExecutor(undirected_closure())
    edges = sorted({tuple(sorted(chance.sample(range(7), 2))) for _ in range(9)})
    one.insert_many("edge", edges)
    for edge in edges:
        other.insert("edge", edge)
    assert (other.rows("forest"), other.rows("through")) == (one.rows("forest"), one.rows("through"))
    gone = sorted(chance.sample(edges, 4))
    one.delete_many("edge", gone)
    for edge in gone:
        other.delete("edge", edge)
    assert (other.rows("forest"), other.rows("through")) == (one.rows("forest"), one.rows("through"))
