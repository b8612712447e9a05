"""An independent check of a closure: its rows are computed from the table of edges with Python's own integers.

Nothing here comes from the engine: strongly connected components by Kosaraju's two searches, and a row for each as one
integer of as many bits as there are nodes, from the last component to the first. O(N n / 64).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from ivme.engine.backend import Block, Codes
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.expression.arrow_values import evaluate_table
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import VerificationError

Node = tuple[int, int]
"""A code, and 1 for NULL as the end of an edge: NULL joins with nothing, so it is not a node like others."""


def check_rows(reader: Reader, state: ViewState, graph: str) -> None:
    """Raises VerificationError at the first pair that is in the view and should not be, or the other way round."""
    query = state.typed.query
    (atom,) = query.atoms
    domain = state.finisher.domain(str(atom.terms[0]))
    edges = _edges(reader, state)
    expected = reachable(edges, undirected=graph == "undirected")
    actual = _actual(reader, state, {code for edge in edges for code in edge})
    if atom.terms[0] in query.input:
        expected.pop(NULL_CODE, None)
    if atom.terms[1] in query.input:
        expected = {start: ends - {NULL_CODE} for start, ends in expected.items()}
    for start in {**expected, **actual}:
        if expected.get(start, set()) != actual.get(start, set()):
            end = min(expected.get(start, set()) ^ actual.get(start, set()))
            pair = tuple(domain.decode_value(code) for code in (start, end))
            there = end in actual.get(start, set())
            raise VerificationError(
                f"view {state.name} has {'' if there else 'not '}the pair {pair!r}; computed from {atom.relation} it "
                f"is {'not ' if there else ''}there"
            )


def _edges(reader: Reader, state: ViewState) -> list[tuple[int, int]]:
    """The edges as codes, in the type that both ends have in common."""
    (atom,) = state.typed.query.atoms
    data, weights = reader.contents(atom.relation)
    columns = [
        state.finisher.domain(str(term)).encode(evaluate_table(column, data)).tolist()
        for term, column in zip(atom.terms, atom.columns, strict=True)
    ]
    return [(a, b) for a, b, weight in zip(*columns, weights.tolist(), strict=True) if weight]


def _actual(reader: Reader, state: ViewState, nodes: set[int]) -> dict[int, set[int]]:
    """What access requests for all these nodes answer."""
    query = state.typed.query
    start, end = map(str, query.atoms[0].terms)
    found: dict[int, set[int]] = {}
    for given, block in _answers(reader, state, np.array(sorted(nodes), dtype=np.int64)):
        columns = {**given, **dict(zip(query.output, block[0], strict=True))}
        for a, b in zip(columns[start].tolist(), columns[end].tolist(), strict=True):
            found.setdefault(a, set()).add(b)
    return found


def _answers(reader: Reader, state: ViewState, nodes: Codes) -> Iterator[tuple[dict[str, Codes], Block]]:
    """The rows of all access requests by these nodes, each with its inputs, in blocks."""
    inputs = state.typed.query.input
    if not inputs:
        yield from (({}, block) for block in reader.blocks(state, ()))
        return
    first, *others = inputs
    for node in nodes if others else nodes[:1]:
        asked = {first: np.full(len(nodes), node)} if others else {}
        asked[inputs[-1]] = nodes
        numbers, block = reader.request_many(state, asked)
        yield {variable: column[numbers] for variable, column in asked.items()}, block


def reachable(edges: Iterable[tuple[int, int]], *, undirected: bool) -> dict[int, set[int]]:
    """For each code with an edge out of it, the codes that a path of at least one edge leads to.

    >>> reachable([(1, 2), (2, 1), (2, 3)], undirected=False) == {1: {1, 2, 3}, 2: {1, 2, 3}}
    True
    """
    ahead: dict[Node, set[Node]] = {}
    for a, b in edges:
        if undirected and NULL_CODE in (a, b):
            continue
        start, end = (a, 0), (b, int(b == NULL_CODE))
        ahead.setdefault(start, set()).add(end)
        ahead.setdefault(end, set())
        if undirected:
            ahead[end].add(start)
    number = {node: i for i, node in enumerate(ahead)}
    nodes = list(ahead)
    rows: dict[Node, int] = {}
    for component in _components(ahead):
        row = 0
        for node in component:
            for end in ahead[node]:
                row |= 1 << number[end] | rows.get(end, 0)
        for node in component:
            rows[node] = row
    return {node[0]: {nodes[i][0] for i in _bits(row)} for node, row in rows.items() if row}


def _components(ahead: dict[Node, set[Node]]) -> Iterator[list[Node]]:
    """Strongly connected components, those that lead nowhere else first: Kosaraju, on the reversed graph first."""
    back: dict[Node, list[Node]] = {node: [] for node in ahead}
    for start, ends in ahead.items():
        for end in ends:
            back[end].append(start)
    order: list[Node] = []
    seen: set[Node] = set()
    for root in ahead:
        order += _finished(root, back, seen)
    seen = set()
    for root in reversed(order):
        component = _finished(root, ahead, seen)
        if component:
            yield component


def _finished(root: Node, graph: Mapping[Node, Iterable[Node]], seen: set[Node]) -> list[Node]:
    """The nodes that a depth-first search from a root finds, in the order in which it leaves them."""
    if root in seen:
        return []
    seen.add(root)
    order, stack = [], [(root, iter(graph[root]))]
    while stack:
        node, rest = stack[-1]
        for other in rest:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(graph[other])))
                break
        else:
            order.append(node)
            stack.pop()
    return order


def _bits(row: int) -> Iterator[int]:
    text = bin(row)[:1:-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)
