"""The statements of SQL, as `parse` reads them: frozen values that hold names, syntax trees and places, and no data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from ivme.query.model import Table
from ivme.query.sql_text import SqlText
from ivme.query.types import Type

Values = tuple[tuple[exp.Expr, ...], ...]
"""The rows of VALUES, each an expression for each column."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement; `source` is the whole text with the tokens of this statement."""

    source: SqlText

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters whose values it needs, `:name` in its text."""
        return self.source.parameter_names()


@dataclass(frozen=True, slots=True)
class Select(Statement):
    """A query: the rows of the view that its text says. `start` and `end` are its place in the whole text."""

    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class File:
    """Rows in a file; without a format, its ending says which it has."""

    path: exp.Expr
    format: str | None = None
    options: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class CreateTable(Statement):
    node: exp.Table
    table: Table
    if_not_exists: bool
    replace: bool


@dataclass(frozen=True, slots=True)
class CreateTableAs(Statement):
    """A table with the columns and rows of a query, or of a file."""

    table: exp.Table
    rows: Select | File
    if_not_exists: bool
    append_only: bool
    static: bool


@dataclass(frozen=True, slots=True)
class CreateView(Statement):
    view: exp.Table
    query: Select
    options: Mapping[str, object]
    if_not_exists: bool
    replace: bool

    @property
    def parameters(self) -> tuple[str, ...]:
        """None: those of its query are the view's own."""
        return ()


@dataclass(frozen=True, slots=True)
class Drop(Statement):
    kind: Literal["table", "view"]
    relation: exp.Table
    if_exists: bool


@dataclass(frozen=True, slots=True)
class AddColumn(Statement):
    table: exp.Table
    name: str
    type: Type
    default: exp.Expr | None


@dataclass(frozen=True, slots=True)
class DropColumn(Statement):
    table: exp.Table
    name: str


@dataclass(frozen=True, slots=True)
class RenameColumn(Statement):
    table: exp.Table
    name: str
    to: str


@dataclass(frozen=True, slots=True)
class SetDefault(Statement):
    """Another DEFAULT for a column; None drops it."""

    table: exp.Table
    name: exp.Identifier
    default: exp.Expr | None


@dataclass(frozen=True, slots=True)
class RenameTable(Statement):
    table: exp.Table
    to: exp.Table


@dataclass(frozen=True, slots=True)
class OnConflict:
    """What is done with a row whose key is there already: `values` set columns of that one; without them, nothing."""

    keys: tuple[str, ...]
    values: tuple[tuple[exp.Identifier, exp.Expr], ...] | None
    where: exp.Expr | None


@dataclass(frozen=True, slots=True)
class Insert(Statement):
    """Rows that come; `how` they come: beside those that are there, in place of those of their keys, or of all."""

    table: exp.Table
    columns: tuple[exp.Identifier, ...]
    rows: Values | Select | File
    how: Literal["insert", "upsert", "replace"] = "insert"
    is_copy: bool = False
    """Whether the columns of a file go by their names."""
    conflict: OnConflict | None = None
    returning: tuple[exp.Expr, ...] = ()
    """The expressions over the rows that come; empty if none are requested."""


@dataclass(frozen=True, slots=True)
class Update(Statement):
    table: exp.Table
    values: tuple[tuple[exp.Identifier, exp.Expr], ...]
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Delete(Statement):
    table: exp.Table
    where: exp.Expr | None
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """What MERGE does with some rows: those that are in both, in the source only, or in the target only.

    `values` sets columns; without them the row is deleted.
    """

    rows: Literal["both", "source", "target"]
    condition: exp.Expr | None
    values: tuple[tuple[exp.Identifier, exp.Expr], ...] | None
    is_all: bool = False
    """Whether every column gets the value of the source's column of that name."""


@dataclass(frozen=True, slots=True)
class Merge(Statement):
    table: exp.Table
    using: exp.Expr
    on: exp.Expr
    whens: tuple[When, ...]
    returning: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction(Statement):
    act: Literal["BEGIN", "COMMIT", "ROLLBACK"]


@dataclass(frozen=True, slots=True)
class AdvanceClock(Statement):
    """ADVANCE CLOCK TO a moment: an expression without columns."""

    to: exp.Expr


@dataclass(frozen=True, slots=True)
class Show(Statement):
    kind: Literal["TABLES", "VIEWS", "CLOCK"]


@dataclass(frozen=True, slots=True)
class Describe(Statement):
    relation: exp.Table


@dataclass(frozen=True, slots=True)
class Explain(Statement):
    """What a view of a query would cost; with `why`, the proof of it; with `analyze`, measured on a copy."""

    query: Select
    analyze: bool = False
    why: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        """None: nothing is read."""
        return ()
