"""What a sharded database has, as plain values that are written to the checkpoint and sent to shards.

A view is stored as its text and options: every process compiles it to the same program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ivme.errors import SchemaError, UnknownNameError
from ivme.plan.strategy.options import read_options
from ivme.query.model import Table
from ivme.query.names import check_name
from ivme.shards.functions import NamedFunction
from ivme.shards.routing import Routing
from ivme.store.plain import plain_table, read_table

MOST_SHARDS = 1024


@dataclass(frozen=True, slots=True)
class ViewText:
    """A view as its maker wrote it."""

    name: str
    text: str
    options: tuple[tuple[str, Any], ...]
    functions: tuple[NamedFunction, ...] = ()

    def to_json(self) -> list[Any]:
        return [self.name, self.text, _options_json(self.options), [each.to_json() for each in self.functions]]

    @staticmethod
    def from_json(found: Sequence[Any]) -> ViewText:
        functions = tuple(map(NamedFunction.from_json, found[3] if len(found) > 3 else ()))
        return ViewText(found[0], found[1], _options_from(found[2]), functions)


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view and its routing; each new routing is a new generation. `followed` is whether its changes are stored.

    `beneath` are the views that it reads, and those that they read, in the order in which they were made; `functions`
    are the users' functions that its text may call. With `feeds`, the views that it reads, as tables, reach its engines
    as changes that shards send each other within a step; without them its engines have what is beneath it themselves.
    With a `block`, it is that block of the text alone, fed by the ones before it: the last one is the view, the others
    are `part_of` it. With `members`, it is a fragment: these blocks, of which the last is `block`. All its shards have
    all rows of what is in `everywhere`. `identified_by` has the columns by which whole rows of a table are told apart
    where they are spread, if they are fewer than it has: others were added after the view was made.
    """

    name: str
    text: str
    options: tuple[tuple[str, Any], ...]
    routing: Routing
    generation: int = 0
    followed: bool = False
    beneath: tuple[ViewText, ...] = ()
    functions: tuple[NamedFunction, ...] = ()
    feeds: tuple[Table, ...] = ()
    block: int | None = None
    part_of: str = ""
    members: tuple[int, ...] = ()
    everywhere: tuple[str, ...] = ()
    identified_by: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def view(self) -> str:
        """The name of the view that users know."""
        return self.part_of or self.name

    def whole(self) -> ViewEntry:
        """The view in one engine, nothing of it spread."""
        routing = Routing(self.routing.shards, (), ())
        plain = replace(self, name=self.view, block=None, part_of="", feeds=(), members=(), everywhere=())
        return replace(plain, routing=routing)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "text": self.text,
            "options": _options_json(self.options),
            "routing": self.routing.to_json(),
            "generation": self.generation,
            "followed": self.followed,
            "beneath": [view.to_json() for view in self.beneath],
            "functions": [each.to_json() for each in self.functions],
            **({"feeds": [plain_table(each) for each in self.feeds]} if self.feeds else {}),
            **({} if self.block is None else {"block": self.block, "part_of": self.part_of}),
            **({"members": list(self.members)} if self.members else {}),
            **({"everywhere": list(self.everywhere)} if self.everywhere else {}),
            **({"identified_by": _lists(self.identified_by)} if self.identified_by else {}),
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> ViewEntry:
        return ViewEntry(
            found["name"],
            found["text"],
            _options_from(found["options"]),
            Routing.from_json(found["routing"]),
            found["generation"],
            found["followed"],
            tuple(map(ViewText.from_json, found.get("beneath", ()))),
            tuple(map(NamedFunction.from_json, found.get("functions", ()))),
            tuple(map(read_table, found.get("feeds", ()))),
            found.get("block"),
            found.get("part_of", ""),
            tuple(found.get("members", ())),
            tuple(found.get("everywhere", ())),
            _named_columns(found.get("identified_by", ())),
        )


@dataclass(frozen=True, slots=True)
class ShardCatalog:
    """The tables, views and users' functions of a database, in the order in which they were made.

    `spread_by` has the columns of tables whose rows are spread by fewer than they have: others were added later.
    """

    tables: tuple[Table, ...] = ()
    views: tuple[ViewEntry, ...] = ()
    functions: tuple[NamedFunction, ...] = ()
    spread_by: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def spread_columns(self, table: Table) -> tuple[str, ...]:
        """The columns by which the rows of a table are spread: its key, or all that it had at first."""
        return dict(self.spread_by).get(table.name) or tuple(table.primary_key or table.column_names)

    def with_more_columns(self, table: Table) -> ShardCatalog:
        """With another declaration of a table, which has more columns; its rows stay where they are, also in views."""
        old = self.table(table.name)
        by = dict(self.spread_by) | {table.name: self.spread_columns(old)}
        views = tuple(
            replace(view, identified_by=tuple(({old.name: old.column_names} | dict(view.identified_by)).items()))
            for view in self.views
        )
        return replace(self.with_table(table), views=views, spread_by=tuple(by.items()))

    def table(self, name: str) -> Table:
        """The table of that name, whatever its case."""
        found = {table.name.lower(): table for table in self.tables}
        if not isinstance(name, str) or name.lower() not in found:
            if isinstance(name, str) and name.lower() in {view.name.lower() for view in self.views}:
                raise UnknownNameError(f"{name} is a view; change the tables that it reads")
            listed = ", ".join(table.name for table in self.tables) or "none"
            raise UnknownNameError(f"there is no table {name}; there are: {listed}")
        return found[name.lower()]

    @property
    def shown(self) -> tuple[ViewEntry, ...]:
        """The views that users know: without parts of others."""
        return tuple(view for view in self.views if not view.part_of)

    def view(self, name: str) -> ViewEntry:
        """The view of that name, whatever its case."""
        found = {view.name.lower(): view for view in self.views}
        if not isinstance(name, str) or name.lower() not in found:
            listed = ", ".join(view.name for view in self.shown) or "none"
            raise UnknownNameError(f"there is no view {name}; there are: {listed}")
        return found[name.lower()]

    def with_table(self, table: Table) -> ShardCatalog:
        """With a new table, or with another declaration of one that is there."""
        if any(other.name == table.name for other in self.tables):
            return replace(self, tables=tuple(table if other.name == table.name else other for other in self.tables))
        return replace(self, tables=(*self.tables, table))

    def without_table(self, name: str) -> ShardCatalog:
        by = tuple(each for each in self.spread_by if each[0] != name)
        return replace(self, tables=tuple(table for table in self.tables if table.name != name), spread_by=by)

    def with_view(self, view: ViewEntry) -> ShardCatalog:
        """With a new view, or with another entry for one that is there."""
        if any(other.name == view.name for other in self.views):
            return replace(self, views=tuple(view if other.name == view.name else other for other in self.views))
        return replace(self, views=(*self.views, view))

    def without_view(self, name: str) -> ShardCatalog:
        """Without a view and its parts."""
        return replace(self, views=tuple(view for view in self.views if view.view != name))

    def without_lost_parts(self) -> ShardCatalog:
        """Without parts of views that do not exist: their driver failed before it had built the view."""
        there = {view.name for view in self.shown}
        return replace(self, views=tuple(view for view in self.views if view.view in there))

    def function(self, name: str) -> NamedFunction:
        """The function of that name, whatever its case."""
        found = {function.name.lower(): function for function in self.functions}
        if not isinstance(name, str) or name.lower() not in found:
            listed = ", ".join(function.name for function in self.functions) or "none"
            raise UnknownNameError(f"there is no function {name!r}; there are: {listed}")
        return found[name.lower()]

    def to_json(self) -> dict[str, Any]:
        return {
            "tables": [plain_table(t) for t in self.tables],
            "views": [view.to_json() for view in self.views],
            "functions": [each.to_json() for each in self.functions],
            **({"spread_by": _lists(self.spread_by)} if self.spread_by else {}),
        }

    @staticmethod
    def from_json(found: Mapping[str, Any]) -> ShardCatalog:
        by = _named_columns(found.get("spread_by", ()))
        tables = tuple(read_table(each) for each in found["tables"])
        functions = tuple(map(NamedFunction.from_json, found.get("functions", ())))
        return ShardCatalog(tables, tuple(map(ViewEntry.from_json, found["views"])), functions, by)


def _lists(columns: Iterable[tuple[str, tuple[str, ...]]]) -> list[list[Any]]:
    return [[name, list(each)] for name, each in columns]


def _named_columns(found: Iterable[Sequence[Any]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Columns by the tables that have them."""
    return tuple((name, tuple(columns)) for name, columns in found)


def check_new_name(name: str, catalog: ShardCatalog) -> None:
    """Refuses a name for a new table or view that another one has, or that none can have."""
    check_name(name, "a table or view")
    if "/" in name or name.startswith("."):
        raise SchemaError(f"the name of a table or view must be possible as a file name; {name!r} is not")
    for kind, known in (("table", catalog.tables), ("view", catalog.views)):
        if name.lower() in {other.name.lower() for other in known}:
            raise SchemaError(f"there is already a {kind} named {name}; drop it first or choose another name")


def read_view_options(given: Mapping[str, object]) -> tuple[tuple[str, Any], ...]:
    """The options of a view, checked, in a form that is written and read without loss."""
    options = read_options(given)
    return tuple((name, getattr(options, name)) for name in sorted(given))


def _options_json(options: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: _written(value) for name, value in options}


def _options_from(found: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _read(name, value)) for name, value in found.items())


def _written(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, tuple) and any(isinstance(each, tuple) for each in value):
        return {name: str(number) for name, number in value}
    return list(value) if isinstance(value, tuple) else value


def _read(name: str, value: Any) -> Any:
    if name == "epsilon" and isinstance(value, dict):
        return tuple((relation, Fraction(number)) for relation, number in value.items())
    if name == "changes":
        return tuple((relation, float(number)) for relation, number in value.items()) if value else ()
    if name == "epsilon" and value not in (None, "auto"):
        return Fraction(value)
    return tuple(value) if isinstance(value, list) else value
