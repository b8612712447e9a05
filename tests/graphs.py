"""Random streams of edges, and closures by networkx, which shares no code with us."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeVar

import networkx as nx

Edge = tuple[int, int]
Node = TypeVar("Node", bound=Hashable)


def closure_of(edges: Iterable[tuple[Node, Node]], graph: str) -> set[tuple[Node, Node]]:
    """All pairs with a path of at least one edge."""
    made: nx.DiGraph[Node] = nx.DiGraph()
    for a, b in edges:
        made.add_edge(a, b)
        if graph == "undirected":
            made.add_edge(b, a)
    return set(nx.transitive_closure(made, reflexive=False).edges)


def has_cycle(edges: Iterable[Edge]) -> bool:
    return not nx.is_directed_acyclic_graph(nx.DiGraph(list(edges)))


def stream(graph: str, seed: int, nodes: int, steps: int, most: int = 6) -> Iterator[dict[Edge, int]]:
    """Net changes of a bag of edges, batch by batch.

    A batch of an acyclic stream may close a cycle: it is to be refused, and the stream goes on without it.
    """
    chance = random.Random(seed)
    held: Counter[Edge] = Counter()
    for _ in range(steps):
        batch: Counter[Edge] = Counter()
        for _ in range(chance.randint(1, most)):
            there = [edge for edge in held if held[edge] + batch[edge] > 0]
            if there and chance.random() < 0.45:
                batch[chance.choice(there)] -= 1
            else:
                a, b = chance.randrange(nodes), chance.randrange(nodes)
                batch[(min(a, b), max(a, b)) if graph == "acyclic" and chance.random() < 0.9 else (a, b)] += 1
        after = held.copy()
        after.update(batch)
        yield {edge: weight for edge, weight in batch.items() if weight}
        if graph != "acyclic" or not has_cycle(edge for edge in after if after[edge] > 0):
            held = Counter({edge: count for edge, count in after.items() if count > 0})
