"""The closure of a bag of edges in plain Python: for machines without the compiled kernel, and as its peer in tests.

It keeps, for each node, the set of nodes that it leads to, and shares no idea with the kernel beyond that: an edge
that comes is composed with what leads to it and what it leads to (source 004, section 2), which holds for all graphs;
when edges go, the nodes that led to one of them search again. An undirected graph is one with both directions of each
edge. Quadratic where the kernel is not; use it for small graphs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes

Node = int | None
"""A code; None is NULL as the end of an edge, which is not NULL as its start, since NULL joins with nothing."""


class PureCycle(Exception):  # noqa: N818
    """An edge would close a cycle; the argument is the codes of its nodes, the first again at the end."""


class PureStaleClosure(Exception):  # noqa: N818
    """The closure changed while it was read."""


class PureClosure:
    """See `ivme.closure.engine.ClosureEngine`."""

    def __init__(self, graph: str) -> None:
        self._graph = graph
        self._counts: Counter[tuple[Node, Node]] = Counter()
        self._next: dict[Node, set[Node]] = {}
        self._rows: dict[Node, set[Node]] = {}
        self._counts_before: dict[tuple[Node, Node], int] = {}
        self._rows_before: dict[Node, set[Node]] = {}
        self.version = 0
        self.operations = 0

    # Changes

    def change(self, start: Codes, end: Codes, weights: Codes, /) -> None:
        self.version += 1
        net: Counter[tuple[Node, Node]] = Counter()
        for a, b, weight in zip(start.tolist(), end.tolist(), weights.tolist(), strict=True):
            if self._graph == "undirected":
                if NULL_CODE not in (a, b):
                    net[min(a, b), max(a, b)] += weight
            else:
                net[a, _end(b)] += weight
        gone, come = [], []
        for edge, weight in net.items():
            before = self._counts_before[edge] = self._counts[edge]
            self._counts[edge] += weight
            if self._counts[edge] < 0:
                raise ValueError("an edge is deleted more times than it was inserted")
            if before > 0 and before + weight == 0:
                gone += self._directed(edge)
            elif before == 0 and weight > 0:
                come += self._directed(edge)
        self._remove(gone)
        for a, b in come:
            self._insert(a, b)

    def _directed(self, edge: tuple[Node, Node]) -> list[tuple[Node, Node]]:
        return [edge] if self._graph != "undirected" or edge[0] == edge[1] else [edge, edge[::-1]]

    def _insert(self, a: Node, b: Node) -> None:
        self._next.setdefault(a, set()).add(b)
        if b in self._row(a):
            return
        if self._graph == "acyclic" and (a == b or a in self._row(b)):
            raise PureCycle([_code(node) for node in [*self._walk(b, a), b]] if a != b else [a, a])
        added = {b, *self._row(b)}
        for node in [a, *(node for node, row in self._rows.items() if a in row)]:
            self.operations += 1
            self._write(node, self._row(node) | added)

    def _remove(self, gone: list[tuple[Node, Node]]) -> None:
        for a, b in gone:
            self._next[a].discard(b)
        starts = {a for a, _ in gone}
        for node in [node for node, row in self._rows.items() if node in starts or not starts.isdisjoint(row)]:
            self._write(node, set(self._search(node)))

    def _write(self, node: Node, row: set[Node]) -> None:
        self._rows_before.setdefault(node, self._row(node))
        self._rows[node] = row

    def _row(self, node: Node) -> set[Node]:
        return self._rows.get(node, set())

    def commit(self) -> None:
        for edge in self._counts_before:
            if not self._counts[edge]:
                self._counts.pop(edge, None)
        for node in self._rows_before:
            if not self._row(node):
                self._next.pop(node, None)
                self._rows.pop(node, None)
        self._counts_before, self._rows_before = {}, {}

    def roll_back(self) -> None:
        self.version += 1
        for edge, before in self._counts_before.items():
            self._counts[edge] = before
            for a, b in self._directed(edge):
                targets = self._next.setdefault(a, set())
                (targets.add if before else targets.discard)(b)
        self._rows |= self._rows_before
        self.commit()

    def follow(self, on: bool, /) -> None:
        """The rows before a transaction are saved in any case."""

    def changed(self) -> tuple[Codes, Codes, Codes]:
        found = []
        for node, before in self._rows_before.items():
            now = self._rows[node]
            found += [(_code(node), _code(end), 1) for end in now - before]
            found += [(_code(node), _code(end), -1) for end in before - now]
        columns = np.array(found, dtype=np.int64).reshape(-1, 3)
        return columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy()

    # Reading

    def codes(self) -> Codes:
        return _codes({_code(node) for edge in self._counts for node in edge})

    def reaches(self, start: int, end: int, /) -> bool:
        return _end(end) in self._row(start)

    def reaches_many(self, start: Codes, end: Codes, /) -> Codes:
        pairs = enumerate(zip(start.tolist(), end.tolist(), strict=True))
        return _codes(number for number, (a, b) in pairs if self.reaches(a, b))

    def targets(self, start: int, most: int, /) -> list[int] | None:
        row = self._row(start)
        return None if len(row) > most else [_code(node) for node in row]

    def targets_many(self, start: Codes, /) -> tuple[Codes, Codes]:
        pairs = [(number, _code(b)) for number, a in enumerate(start.tolist()) for b in self._row(a)]
        return _codes(number for number, _ in pairs), _codes(code for _, code in pairs)

    def path(self, start: int, end: int, /) -> list[int]:
        return [_code(node) for node in self._walk(start, _end(end))]

    def _walk(self, start: Node, end: Node) -> list[Node]:
        """The nodes of a shortest path of at least one edge; none if there is no path."""
        before = self._search(start, end)
        if end not in before:
            return []
        nodes = [end, before[end]]
        while nodes[-1] != start:
            nodes.append(before[nodes[-1]])
        return nodes[::-1]

    def _search(self, start: Node, end: Node | str = "") -> dict[Node, Node]:
        """Breadth first: each node that is found with the one before it, up to `end` if that is given."""
        before: dict[Node, Node] = {}
        queue = deque([start])
        while queue and end not in before:
            node = queue.popleft()
            for other in self._next.get(node, ()):
                self.operations += 1
                if other not in before:
                    before[other] = node
                    queue.append(other)
        return before

    def open(self) -> PureCursor:
        return PureCursor(self, ((a, b) for a, row in self._rows.items() for b in row))

    def open_from(self, start: int, /) -> PureCursor:
        return PureCursor(self, ((start, b) for b in self._row(start)))

    def check(self) -> None:
        for node in {*self._rows, *self._next}:
            assert set(self._search(node)) == self._row(node), f"the row of {node} is not what a search finds"

    # Sizes

    def memory_bytes(self) -> int:
        """A rough estimate: a member of a set takes about 60 bytes."""
        return 60 * (self.pairs + 4 * len(self._counts))

    @property
    def nodes(self) -> int:
        return len({node for edge in self._counts for node in edge})

    @property
    def edges(self) -> int:
        return len(self._counts)

    @property
    def components(self) -> int:
        """Strongly connected ones: nodes that lead to each other count as one."""
        nodes = {node for edge in self._counts for node in edge}
        together = {frozenset(b for b in self._row(node) if node in self._row(b)) | {node} for node in nodes}
        return len(together)

    @property
    def pairs(self) -> int:
        return sum(map(len, self._rows.values()))


class PureCursor:
    """An enumeration of pairs; it notices when the closure changes."""

    def __init__(self, closure: PureClosure, pairs: Iterator[tuple[Node, Node]]) -> None:
        self._closure, self._version, self._pairs = closure, closure.version, pairs

    def next_block(self, max_rows: int = 8192) -> tuple[Codes, Codes]:
        if self._version != self._closure.version:
            raise PureStaleClosure("the cursor outlived the state it was opened on")
        block = list(islice(self._pairs, max_rows))
        return _codes(_code(a) for a, _ in block), _codes(_code(b) for _, b in block)


def _end(code: int) -> Node:
    return None if code == NULL_CODE else code


def _code(node: Node) -> int:
    return NULL_CODE if node is None else node


def _codes(codes: Iterable[int]) -> Codes:
    return np.array(list(codes), dtype=np.int64)
