"""Rows of requests off their pieces: see `ir.Piece`.

From the last piece to the first, tuples without a match in a piece below are left out; then each row is found after as
many steps as there are pieces. The compiled kernel does the same, and counts the same operations
(`kernel/piece_rows.cpp`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ivme.algebra.ring import Payload, count, multiply
from ivme.engine.expression.row_expression import Row
from ivme.engine.reference.indexed_map import Tally
from ivme.plan.ir.program import Piece

Delta = Mapping[Row, Payload]


@dataclass(frozen=True, slots=True)
class _Level:
    """The tuples of a piece by what they share with the piece above, and how the latter's tuples say it."""

    groups: Mapping[Row, Sequence[tuple[Row, Payload]]]
    parent: int
    key: Callable[[Row], Row]


class PieceRows:
    """The rows of some requests, whose tuples have been found; `inputs` is how many of their variables come first."""

    def __init__(
        self, pieces: Sequence[Piece], deltas: Sequence[Delta], inputs: int, outputs: Sequence[str], tally: Tally
    ) -> None:
        self._tally = tally
        self._levels: list[_Level] = []
        self._places = [_place(pieces, output) for output in outputs]
        below: list[list[_Level]] = [[] for _ in pieces]
        for number in reversed(range(len(pieces))):
            piece = pieces[number]
            above = pieces[piece.parent].schema if piece.parent >= 0 else piece.schema[:inputs]
            shared = tuple(variable for variable in piece.schema if variable in above)
            groups = self._grouped(deltas[number], _picker(piece.schema, shared), below[number])
            level = _Level(groups, piece.parent, _picker(above, shared))
            self._levels.insert(0, level)
            if piece.parent >= 0:
                below[piece.parent].append(level)

    def _grouped(
        self, delta: Delta, key: Callable[[Row], Row], below: Sequence[_Level]
    ) -> dict[Row, list[tuple[Row, Payload]]]:
        groups: dict[Row, list[tuple[Row, Payload]]] = {}
        for row, payload in delta.items():
            self._tally.operations += 1
            if count(payload) and all(level.key(row) in level.groups for level in below):
                groups.setdefault(key(row), []).append((row, payload))
        return groups

    def of(self, request: Row) -> Iterator[tuple[Row, Payload]]:
        """The rows of a request, one by one."""
        for tuples, payload in self._nested(0, [request]):
            self._tally.operations += len(self._levels)
            yield tuple(tuples[number][column] for number, column in self._places), payload

    def _nested(self, number: int, found: list[Row]) -> Iterator[tuple[list[Row], Payload]]:
        if number == len(self._levels):
            yield found, 1
            return
        level = self._levels[number]
        above = found[level.parent + 1] if number else found[0]
        for row, payload in level.groups.get(level.key(above), ()):
            for rest, product in self._nested(number + 1, [*found, row]):
                yield rest, multiply(payload, product)


def _place(pieces: Sequence[Piece], output: str) -> tuple[int, int]:
    """Where an output is: behind the request, the first piece that has it, and its column there."""
    number = next(number for number, piece in enumerate(pieces) if output in piece.schema)
    return number + 1, pieces[number].schema.index(output)


def _picker(schema: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], Row]:
    """A function from tuples over `schema` to tuples over `wanted`."""
    positions = [schema.index(variable) for variable in wanted]
    return lambda row: tuple([row[position] for position in positions])
