"""A case: tables, views and a stream of steps, all plain data, so that it can be shrunk and printed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any, Generic, Protocol, TypeVar

from tests.fuzz.expressions import Expr
from tests.fuzz.queries import QueryMaker
from tests.fuzz.steps import Step
from tests.fuzz.streams import StreamMaker
from tests.fuzz.values import POOLS, Column, column
from tests.fuzz.views import ViewSpec

_COLUMNS = [*["i", "j", "k", "s"] * 3, *["w"] * 2, *POOLS]
_ENGINES = ("native", "pure", "native on disk", "pure on disk")


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table and what it promises."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    append_only: bool = False
    static: bool = False


class AnyView(Protocol):
    """What a stream, a script and the shrinking of steps need to know of a view."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> tuple[tuple[str, Any], ...]: ...

    @property
    def relations(self) -> frozenset[str]: ...

    @property
    def parameters(self) -> tuple[Any, ...]: ...

    def text(self) -> str: ...

    def duck_text(self) -> str: ...


V = TypeVar("V", bound=AnyView)


@dataclass(frozen=True, slots=True)
class CaseOf(Generic[V]):
    """One run of a fuzzer: the same steps on each of the engines. `few` limits the single-row path."""

    seed: int
    tables: tuple[TableSpec, ...]
    views: tuple[V, ...]
    steps: tuple[Step, ...]
    engines: tuple[str, ...]
    few: int

    def view(self, name: str) -> V:
        return next(view for view in self.views if view.name == name)


class Case(CaseOf[ViewSpec]):
    """A case of this fuzzer; `tests.select` has another."""

    __slots__ = ()


AnyCase = CaseOf[Any]


def make_case(seed: int) -> Case:
    """The case of a seed; the same each time."""
    random = Random(seed)
    tables = tuple(_table(random, f"r{number}") for number in range(random.choice([1, 2, 2, 3])))
    relations: dict[str, tuple[Column, ...]] = {table.name: table.columns for table in tables}
    views: list[ViewSpec] = []
    for number in range(random.choice([1, 2, 3, 4])):
        made = QueryMaker(random, _weighted(random, relations, views), f"v{number}").view()
        views.append(made)
        if not made.parameters and any(each.exact for each in made.columns):
            relations[made.name] = made.columns
    steps = StreamMaker(random, tables, views).steps()
    return Case(seed, tables, tuple(views), steps, _engines(random), random.choice([0, 2, 16, 16]))


def _weighted(
    random: Random, relations: dict[str, tuple[Column, ...]], views: list[ViewSpec]
) -> dict[str, tuple[Column, ...]]:
    """All relations, or mostly views, so that towers of views come about."""
    made = {view.name: view.columns for view in views if view.name in relations}
    if made and random.random() < 0.35:
        return made | {"r0": relations["r0"]}
    return relations if random.random() < 0.7 else {n: c for n, c in relations.items() if n not in made}


def _table(random: Random, name: str) -> TableSpec:
    names = list(dict.fromkeys(random.choice(_COLUMNS) for _ in range(random.choice([1, 2, 2, 3, 3, 4]))))
    made = TableSpec(name, tuple(map(column, names)))
    promise = random.random()
    if promise < 0.15:
        return replace(made, primary_key=tuple(names[: random.choice([1, 1, 2])]))
    return replace(made, append_only=0.15 <= promise < 0.25, static=0.25 <= promise < 0.32)


def _engines(random: Random) -> tuple[str, ...]:
    return random.choice([("native", "pure"), ("native", "pure"), ("native on disk",), ("pure on disk", "native")])


def expressions(case: Case) -> list[Expr]:
    return [expression for view in case.views for expression in view.expressions()]
