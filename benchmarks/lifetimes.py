"""A prototype of lifetimes (Abo Khamis, Kara, Olteanu, Suciu, 2024): triangles under inserts and deletes, offline.

    python -m benchmarks.lifetimes [--max 16000]

An insert at time s and a delete at time e are one tuple with the lifetime [s, e), cut into dyadic intervals, at most
2 log N of them: nodes of a tree over time. A triangle is there in the intervals that lie within intervals of all of its
edges. Of three such nodes one is the deepest, and only that edge comes and goes with it: so triangles are stored by the
second deepest node z, from the edges that are at z, those at or above it, and the *distinct* edges of the third table
that have an interval below z. How often these come and go does not matter: their intervals hang below their edge. That
is the multivariate extension of the triangle, of width 3/2: N^½ amortised up to logarithms, where deltas cost the
degree of a hub each time that its edge comes back.

Steps are counted in plain Python: tuples that are placed, and values that are looked at. Answers, how many triangles
there are after each update, are compared with those of deltas, here and for random streams. The stream is one that
hurts: two hubs with common neighbours, and an edge between them that comes and goes.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import log

Edge = tuple[int, int]
Update = tuple[str, Edge, int]
TABLES = "RST"
"""R(a, b), S(b, c), T(c, a)."""


def stream(size: int) -> list[Update]:
    """Hubs 0 of A and of B with many neighbours in C each; then edges between A and B come and go."""
    rng = random.Random(size)
    fixed = [("S", (0, c), 1) for c in range(size // 4)] + [("T", (c, 0), 1) for c in range(size // 8, 3 * size // 8)]
    rng.shuffle(fixed)
    toggled: list[Update] = []
    while len(fixed) + len(toggled) < size:
        toggled += [("R", (0, 0), 1), ("R", (0, 0), -1)]
    return fixed + toggled


class Deltas:
    """First-order deltas: each update looks at the smaller side of its two partners."""

    def __init__(self) -> None:
        self.steps = self.triangles = 0
        self.out: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in TABLES}
        self.back: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in TABLES}

    def apply(self, name: str, edge: Edge, sign: int) -> None:
        one, other = edge
        following, before = TABLES[(TABLES.index(name) + 1) % 3], TABLES[(TABLES.index(name) + 2) % 3]
        mine, theirs = self.out[following][other], self.back[before][one]
        small, large = sorted((mine, theirs), key=len)
        self.steps += 1 + len(small)
        self.triangles += sign * sum(value in large for value in small)
        for index, key, value in ((self.out[name], one, other), (self.back[name], other, one)):
            (index[key].add if sign > 0 else index[key].discard)(value)


def lifetimes(updates: list[Update]) -> dict[str, list[tuple[Edge, int, int]]]:
    """The tuples with the times at which they came and went."""
    found: dict[str, list[tuple[Edge, int, int]]] = {name: [] for name in TABLES}
    begun: dict[tuple[str, Edge], int] = {}
    for time, (name, edge, sign) in enumerate(updates):
        if sign > 0:
            begun[name, edge] = time
        else:
            found[name].append((edge, begun.pop((name, edge)), time))
    for (name, edge), time in begun.items():
        found[name].append((edge, time, len(updates)))
    return found


def dyadic(begin: int, end: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The nodes of the tree over [low, high) that make up [begin, end)."""
    if end <= low or high <= begin:
        return
    if begin <= low and high <= end:
        yield low, high
        return
    middle = (low + high) // 2
    yield from dyadic(begin, end, low, middle)
    yield from dyadic(begin, end, middle, high)


Node = tuple[int, int]
Edges = dict[str, list[Edge]]


class Lifetimes:
    """Triangles by the second deepest node of their edges, from the lifetimes of edges."""

    def __init__(self, updates: list[Update]) -> None:
        self.steps = self.stored = 0
        self.width = 1
        while self.width < len(updates):
            self.width *= 2
        self.at: dict[Node, Edges] = defaultdict(lambda: {name: [] for name in TABLES})
        self.below: dict[Node, dict[str, dict[Edge, list[Node]]]] = defaultdict(lambda: {name: {} for name in TABLES})
        for name, tuples in lifetimes(updates).items():
            for edge, begin, end in tuples:
                for node in dyadic(begin, end, 0, self.width):
                    self._place(name, edge, node)
        self.changes: Counter[int] = Counter()
        self._out: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in TABLES}
        self._back: dict[str, dict[int, set[int]]] = {name: defaultdict(set) for name in TABLES}
        self._indexes: dict[tuple[Node, int], tuple[dict[int, set[int]], dict[int, set[int]]]] = {}
        self._visit((0, self.width))

    def _place(self, name: str, edge: Edge, node: Node) -> None:
        """Notes an edge at its node, and at all nodes above, where only the first interval of an edge is new."""
        self.at[node][name].append(edge)
        place = (0, self.width)
        while True:
            self.steps += 1
            self.below[place][name].setdefault(edge, []).append(node)
            if place == node:
                return
            middle = sum(place) // 2
            place = (place[0], middle) if node[1] <= middle else (middle, place[1])

    def _visit(self, node: Node) -> None:
        """Finds the triangles whose second deepest node is this one; edges at nodes above are in the indexes."""
        mine = self.at.get(node)
        if node not in self.below:
            return
        for place, name in enumerate(TABLES):
            for edge in mine[name] if mine is not None else ():
                for other in (1, 2):
                    self._join(node, place, edge, (place + other) % 3)
            for one, other_end in mine[name] if mine is not None else ():  # from here on at or above
                self._out[name][one].add(other_end)
                self._back[name][other_end].add(one)
        if node[1] - node[0] > 1:
            middle = sum(node) // 2
            self._visit((node[0], middle))
            self._visit((middle, node[1]))
        for name in TABLES if mine is not None else ():
            for one, other_end in mine[name] if mine is not None else ():
                self._out[name][one].discard(other_end)
                self._back[name][other_end].discard(one)

    def _join(self, node: Node, place: int, edge: Edge, deepest: int) -> None:
        """Triangles of an edge at the node with one at or above it, and one of the table `deepest` at or below it.

        Of edges at one node, that of the later table counts as the deeper one.
        """
        third = 3 - place - deepest
        below = self._indexed(node, deepest)
        follows = deepest == (place + 1) % 3  # the deepest edge begins where this one ends
        mine = below[0][edge[1]] if follows else below[1][edge[0]]
        theirs = self._back[TABLES[third]][edge[0]] if follows else self._out[TABLES[third]][edge[1]]
        small, large = sorted((mine, theirs), key=len)
        self.steps += 1 + len(small)
        for value in small:
            if value in large:
                self._found(node, place, deepest, (edge[1], value) if follows else (value, edge[0]))

    def _indexed(self, node: Node, table: int) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """The distinct edges of a table with an interval at or below a node, by both ends; made once."""
        known = self._indexes.get((node, table))
        if known is None:
            known = (defaultdict(set), defaultdict(set))
            for one, other in self.below[node][TABLES[table]]:
                self.steps += 1
                known[0][one].add(other)
                known[1][other].add(one)
            self._indexes[node, table] = known
        return known

    def _found(self, node: Node, place: int, deepest: int, edge: Edge) -> None:
        """A triangle is there in all intervals of its deepest edge below the node: told for the comparison only."""
        self.stored += 1
        for low, high in self.below[node][TABLES[deepest]][edge]:
            if (low, high) != node or deepest > place:
                self.changes[low] += 1
                self.changes[high] -= 1

    def counts(self, number: int) -> list[int]:
        """How many triangles there are after each update."""
        total, found = 0, []
        for time in range(number):
            total += self.changes[time]
            found.append(total)
        return found


def random_stream(rng: random.Random) -> list[Update]:
    """Edges of a small graph that come and go at random."""
    there: set[tuple[str, Edge]] = set()
    updates: list[Update] = []
    for _ in range(60):
        key = rng.choice(TABLES), (rng.randrange(4), rng.randrange(4))
        updates.append((*key, -1 if key in there else 1))
        there ^= {key}
    return updates


def check(updates: list[Update]) -> tuple[Lifetimes, Deltas]:
    """Both ways, which have to agree after each update."""
    deltas, counts = Deltas(), []
    for update in updates:
        deltas.apply(*update)
        counts.append(deltas.triangles)
    offline = Lifetimes(updates)
    assert counts == offline.counts(len(updates)), "the answers differ"
    return offline, deltas


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max", type=int, default=16_000)
    given = parser.parse_args()
    rng = random.Random(1)
    for _ in range(200):
        check(random_stream(rng))
    size, before = 1000, None
    while size <= given.max:
        updates = stream(size)
        offline, deltas = check(updates)
        mine, theirs = offline.steps / len(updates), deltas.steps / len(updates)
        told = f"{size:,} updates: lifetimes {mine:.1f} steps each, deltas {theirs:.1f}"
        if before is not None:
            told += f"; slopes {log(mine / before[0], 2):.2f} and {log(theirs / before[1], 2):.2f}"
        print(told, flush=True)
        before = mine, theirs
        size *= 2


if __name__ == "__main__":
    main()
