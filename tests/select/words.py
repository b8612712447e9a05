"""Random choices that leave a trace: every rule of the grammar that was drawn is known by its name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import ClassVar, TypeVar

from ivme.query.types import Type

T = TypeVar("T")

KINDS = ("int", "string", "decimal", "date", "bool", "float", "timestamp", "ints", "strings", "place")
"""What columns and expressions are of; each has one SQL type to cast to."""

TYPES = {
    **dict(zip(KINDS, ("BIGINT", "STRING", "DECIMAL(9, 2)", "DATE", "BOOLEAN", "DOUBLE", "TIMESTAMP"), strict=False)),
    "ints": "BIGINT[]",
    "strings": "VARCHAR[]",
    "place": "STRUCT(x BIGINT, y VARCHAR)",
}

LISTED = (*KINDS[:5], "ints", "strings")
"""The kinds of constant columns."""

_NESTED = {"array<int>": "ints", "array<string>": "strings", "struct<x int, y string>": "place"}


def kind_of(type_: Type) -> str:
    """The kind of a column's type."""
    return _NESTED.get(str(type_), type_.kind)


PARAMETER = "/* parameter */"
"""What stands behind a literal that ivme gets as a parameter; for DuckDB it is a comment."""


@dataclass(frozen=True, slots=True)
class Atom:
    """What an expression may read: a column, a group key or a whole aggregate.

    `qualified` is how a subquery names it from inside; empty where it cannot.
    """

    text: str
    kind: str
    qualified: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """What can be read at one place of a query: its own atoms, and those of the queries around it."""

    atoms: tuple[Atom, ...]
    outer: tuple[Atom, ...] = ()

    @property
    def seen(self) -> tuple[Atom, ...]:
        """What a subquery at this place can read of its surroundings."""
        return tuple(Atom(a.qualified, a.kind, a.qualified) for a in (*self.atoms, *self.outer) if a.qualified)


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a query's result."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query's text and the columns of its result. A `compound` one is put in parentheses where it is an operand."""

    text: str
    columns: tuple[Output, ...]
    compound: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(column.kind for column in self.columns)


class Words(ABC):
    """Draws from a seed, names what it makes, and remembers the rules that it used."""

    known: ClassVar[set[str]] = set()
    """The rules that were ever within reach: those never drawn are among them."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.rules: set[str] = set()
        self.budget = random.choice([0, 1, 2, 3, 5, 8])
        self._names = 0
        self._keep = random.choice([0.2, 0.4, 0.7, 1.0])
        self._kept: dict[str, bool] = {}

    def pick(self, symbol: str, **weights: float) -> str:
        """One of the alternatives of a symbol, by weight; those of weight 0 are out of reach.

        Each query does without a random part of the rules, so that others stand alone in it, too: a query that has
        a bit of everything is refused for the first thing in it that is not supported. The first alternative, the plain
        one, is always there.
        """
        reach = {name.replace("_", " ").strip(): weight for name, weight in weights.items() if weight > 0}
        Words.known.update(f"{symbol}: {name}" for name in reach)
        first = next(iter(reach))
        names = [name for name in reach if name == first or self._is_kept(f"{symbol}: {name}")]
        drawn = self.random.choices(names, [reach[name] for name in names])[0]
        self.rules.add(f"{symbol}: {drawn}")
        return drawn

    def _is_kept(self, rule: str) -> bool:
        if rule not in self._kept:
            self._kept[rule] = self.chance(self._keep)
        return self._kept[rule]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def one_of(self, found: Sequence[T]) -> T:
        return self.random.choice(found)

    def some_of(self, found: Sequence[T], most: int) -> list[T]:
        """At least one of them, in a random order."""
        return self.random.sample(found, self.random.randint(1, min(most, len(found))))

    def fresh(self, letter: str) -> str:
        """A name that nothing else in this query has."""
        self._names += 1
        return f"{letter}{self._names}"

    @contextmanager
    def apart(self) -> Iterator[None]:
        """A query that reads nothing of its surroundings: now and then it takes the names that are in use there."""
        before = self._names
        if self.pick("names inside", new=1, taken_again=1) == "taken again":
            self._names = 0
        yield
        self._names = max(self._names, before)

    def spend(self) -> bool:
        """Whether the query may grow by another subquery or join."""
        self.budget -= 1
        return self.budget >= 0

    @abstractmethod
    def query(self, depth: int, outer: tuple[Atom, ...], kinds: tuple[str, ...] | None = None) -> Query:
        """A query that may stand in FROM or in a condition."""

    @abstractmethod
    def one_value(self, kind: str, depth: int, outer: tuple[Atom, ...]) -> str:
        """A query of one column that has at most one row."""
