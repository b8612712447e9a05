"""Snapshots that are written as what has changed: the steps of a shard since its last snapshot, in one file.

Many small steps into a large shard would have all its rows written for a few that changed. A *tail* has the steps
between two numbers, and is read after the snapshot or the tail before it. It holds steps that have happened and nothing
else, so that it does not matter who wrote it, and two that overlap agree.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ivme.shards.parts import CHANGE, EngineKey, PackedPart, Part

MOST_ROWS = 200_000
"""A shard with more changed rows than this writes a whole snapshot."""

MOST_TAILS = 64
"""After so many tails a whole snapshot is written: a shard that restarts reads all of them."""

_STEP = "step"
_ABOUT = EngineKey("")


@dataclass(frozen=True, slots=True)
class TailName:
    """A tail of a shard: the first and last of its steps, and the epoch at which it was written."""

    first: int
    last: int
    epoch: int
    digest: str

    @staticmethod
    def parse(name: str) -> TailName:
        first, last, epoch, digest = name.split("-")
        return TailName(int(first), int(last), int(epoch), digest)

    def path(self, shard: int) -> str:
        return f"tails/{shard}/{self.first:012d}-{self.last:012d}-{self.epoch}-{self.digest}"


@dataclass(frozen=True, slots=True)
class TailStep:
    """A step of one shard, as a tail has it."""

    number: int
    clipped: tuple[str, ...]
    parts: tuple[PackedPart, ...]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)


class StepLog:
    """The steps that a shard has taken since its last snapshot or tail, while they are few and change no catalog."""

    def __init__(self) -> None:
        self._base: int | None = None
        self._tails = 0
        self._steps: list[TailStep] = []
        self._rows = 0

    def begin(self, step: int, tails: int = 0) -> None:
        """A snapshot has everything up to a step, with so many tails."""
        self._base, self._tails, self._steps, self._rows = step, tails, [], 0

    def spoil(self) -> None:
        """The steps since the last snapshot cannot be told by rows alone."""
        self._base, self._steps, self._rows = None, [], 0

    def add(self, number: int, clipped: Iterable[str], parts: Iterable[PackedPart]) -> None:
        """Takes note of a step that has happened."""
        if self._base is None:
            return
        step = TailStep(number, tuple(clipped), tuple(part for part in parts if part.label[1] != CHANGE))
        self._steps.append(step)
        self._rows += step.rows
        if self._rows > MOST_ROWS:
            self.spoil()

    def tail(self, sources: Mapping[str, int]) -> tuple[int, list[PackedPart]] | None:
        """The first step of the next tail and its content, with how far streams are; None if a snapshot is due."""
        if self._base is None or self._tails >= MOST_TAILS:
            return None
        return self._base + 1, [_about("sources", dict(sources)), *_packed(self._steps)]

    def wrote_tail(self, step: int) -> None:
        """The next tail begins after this step."""
        self.begin(step, self._tails + 1)


def _packed(steps: Sequence[TailStep]) -> Iterator[PackedPart]:
    for step in steps:
        yield _about(_STEP, [step.number, list(step.clipped)])
        yield from step.parts


def _about(what: str, value: Any) -> PackedPart:
    return PackedPart.of(Part(_ABOUT, what, pa.table({"json": [json.dumps(value)]})))


def read_tail(parts: Iterator[PackedPart]) -> tuple[dict[str, int], list[TailStep]]:
    """How far streams are at the end of a tail, and its steps."""
    sources: dict[str, int] = _json(next(parts))
    found: list[tuple[int, list[str], list[PackedPart]]] = []
    for part in parts:
        if part.label == (_ABOUT.name, _STEP):
            found.append((*_json(part), []))
        else:
            found[-1][2].append(part)
    return sources, [TailStep(number, tuple(clipped), tuple(own)) for number, clipped, own in found]


def _json(part: PackedPart) -> Any:
    return json.loads(part.unpacked().rows.column("json")[0].as_py())


def together(steps: Iterable[TailStep]) -> Iterator[tuple[tuple[str, ...], list[PackedPart]]]:
    """Rows of steps that may be applied as one: those of steps that clip are apart."""
    waiting: list[PackedPart] = []
    for step in steps:
        if step.clipped:
            yield (), waiting
            yield step.clipped, list(step.parts)
            waiting = []
        else:
            waiting += step.parts
    yield (), waiting
