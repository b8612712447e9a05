"""Names: which table an occurrence reads, and which column of which occurrence a name means.

Identifiers are case-insensitive unless quoted. With declared tables every name must exist; without any, tables
are inferred: their columns are those that the query mentions, in the order of first mention.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.query.expression import ColumnRef, Expression
from ivme.query.model import Column, Table
from ivme.query.names import OWN_TABLES
from ivme.query.sql_deep_access import field_access
from ivme.query.sql_text import SqlText
from ivme.query.types import Type

_FILES = (".csv", ".tsv", ".parquet", ".pq", ".json", ".jsonl", ".ndjson")


def _loading(name: str) -> str | None:
    """How to load the file that stands in the place of a table; None if the name is not that of a file.

    >>> _loading("trips.csv")
    "load the file first: CREATE TABLE loaded AS SELECT * FROM 'trips.csv', then SELECT ... FROM loaded"
    """
    if not name.lower().endswith(_FILES):
        return None
    return f"load the file first: CREATE TABLE loaded AS SELECT * FROM '{name}', then SELECT ... FROM loaded"


@dataclass(frozen=True, slots=True)
class Key:
    """A column, plain or computed, of one occurrence of a table: what equalities are between."""

    occurrence: int
    expression: Expression


@dataclass(frozen=True, slots=True)
class Closure:
    """A recognised WITH RECURSIVE: the closure of the edges `columns` of `relation`, its columns called `names`.

    `bag` if it was written with UNION ALL, which means a row for each path.
    """

    relation: str
    columns: tuple[str, str]
    names: tuple[exp.Identifier, exp.Identifier]
    bag: bool = False


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A table, or a closure, in the FROM clause, under the name that columns are qualified with."""

    alias: str
    relation: str
    closure: Closure | None = None


def same_name(identifier: exp.Identifier, name: str) -> bool:
    """Whether an identifier means a name: exactly if quoted, else whatever the case."""
    return identifier.name == name if identifier.quoted else identifier.name.lower() == name.lower()


_STAR = re.compile(r"(?:SELECT|DISTINCT|,|\.)\s*\*", re.IGNORECASE)
"""All columns, in a list of them."""

_MADE = re.compile(r"^#|#\d+$")
"""Names of blocks and of columns that ivme made: v#1, #order2."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Advice that names the known names most like a name that is not; none that ivme made for itself.

    >>> nearest("custmers", ["customers", "v#1", "ivme_clock"]), nearest("x", ["orders", "v#1", "ivme_clock"])
    ('did you mean customers?', 'use one of orders')
    """
    folded = {candidate.lower(): candidate for candidate in known if _is_given(candidate)}
    near = [folded[match] for match in difflib.get_close_matches(name.lower(), folded, n=3)]
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"use one of {', '.join(folded.values())}" if folded else ""


def meant(identifier: exp.Identifier, known: Iterable[str]) -> str:
    """Advice about the name of a column that is not: an alias in WHERE, a text without quotes, or a known name."""
    return _alias_in_where(identifier) or _as_a_text(identifier, nearest(identifier.name, known))


def _alias_in_where(identifier: exp.Identifier) -> str:
    """What to write for the alias of a column of SELECT in its WHERE, which is evaluated before; nothing for others."""
    where = identifier.find_ancestor(exp.Where, exp.Select)
    select = where.parent if isinstance(where, exp.Where) else None
    if not isinstance(select, exp.Select):
        return ""
    for item in select.selects:
        if isinstance(item, exp.Alias) and item.alias.lower() == identifier.name.lower():
            if item.find(exp.Window):
                return f"write QUALIFY in place of WHERE: {item.alias} is computed after WHERE"
            if item.find(exp.AggFunc):
                return f"write HAVING in place of WHERE: {item.alias} is computed after WHERE"
            return f"WHERE does not know {item.alias}, which SELECT computes after it: write the expression there"
    return ""


def _as_a_text(identifier: exp.Identifier, instead: str) -> str:
    """The advice, and that a word which is compared with something may be a text without its quotes."""
    column = identifier.parent
    if not isinstance(column, exp.Column) or column.args.get("table") or not instead.startswith("use one of"):
        return instead
    if not isinstance(column.parent, exp.EQ | exp.NEQ | exp.In):
        return instead
    return f"{instead}; if it is a text, write '{identifier.name}'"


def rename_one(source: SqlText) -> str:
    """What to do about two columns of one name: those of a star have no place for another one."""
    return (
        "name the columns in place of *, and rename one with AS" if _STAR.search(source.text) else "rename one with AS"
    )


def _is_given(name: str) -> bool:
    """Whether a user gave this name, and not ivme: to the clock, to blocks and to their columns."""
    return name not in OWN_TABLES and _MADE.search(name) is None


class KnownTables:
    """The tables that a query may read: the declared ones, or those that its text implies."""

    def __init__(self, source: SqlText, tables: Mapping[str, Table] | Iterable[Table]) -> None:
        declared = tables.values() if isinstance(tables, Mapping) else tables
        self.source = source
        self.declared = {table.name: table for table in declared}
        self.inferred: dict[str, dict[str, int]] = {}

    def relation(self, node: exp.Table) -> str:
        """The name of the table that a node of the FROM clause means."""
        parts = [part for part in (node.args.get("catalog"), node.args.get("db"), node.this) if part]
        name = ".".join(part.name for part in parts)
        quoted = all(part.args.get("quoted") for part in parts)
        known = self.declared or self.inferred
        for candidate in known:
            if candidate == name or (not quoted and candidate.lower() == name.lower()):
                return candidate
        if self.declared:
            raise self.source.unknown(f"there is no table {name!r}", node, _loading(name) or nearest(name, known))
        self.inferred[name] = {}
        return name

    def is_inferred(self, relation: str) -> bool:
        return relation not in self.declared

    def columns(self, relation: str) -> list[str]:
        """The columns known so far; those of an inferred table in the order of first mention in the text."""
        if self.is_inferred(relation):
            return sorted(self.inferred[relation], key=lambda name: self.inferred[relation][name])
        return list(self.declared[relation].column_names)

    def column(self, relation: str, identifier: exp.Identifier) -> str | None:
        """The column's own spelling, or None if a declared table has none; an inferred table gains it."""
        found = next((name for name in self.columns(relation) if same_name(identifier, name)), None)
        return self._mention(relation, identifier, found) if self.is_inferred(relation) else found

    def _mention(self, relation: str, identifier: exp.Identifier, found: str | None) -> str:
        columns, position = self.inferred[relation], self.source.at(identifier) or 0
        if found is None and identifier.name.lower() in map(str.lower, columns):
            message = f"the columns of {relation} would differ in case only: {identifier.name!r}"
            raise self.source.unknown(message, identifier, "spell the column the same everywhere")
        name = identifier.name if found is None else found
        columns[name] = min(position, columns.get(name, position))
        return name

    def type_of(self, relation: str, column: str) -> Type | None:
        table = self.declared.get(relation)
        known = None if table is None else table.column(column)
        return None if known is None else known.type

    def table(self, relation: str) -> Table:
        if self.is_inferred(relation):
            return Table(relation, tuple(map(Column, self.columns(relation))), inferred=True)
        return self.declared[relation]


@dataclass(slots=True)
class Scope:
    """What the FROM clause makes visible.

    `segments[i]` numbers the comma-separated part of FROM that occurrence i belongs to: an ON sees only its own
    part. `merged` holds, by segment and lower-cased name, the columns that USING made one; `layout` is the order of
    the columns of `SELECT *`.
    """

    source: SqlText
    catalog: KnownTables
    occurrences: list[Occurrence] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    merged: dict[tuple[int, str], list[Key]] = field(default_factory=dict)
    layout: list[Key] = field(default_factory=list)

    def lookup(self, occurrence: int, identifier: exp.Identifier) -> Key | None:
        """The column of an occurrence that has that name, or None."""
        closure = self.occurrences[occurrence].closure
        if closure is not None:
            for name, column in zip(closure.names, closure.columns, strict=True):
                if same_name(identifier, name.name):
                    return Key(occurrence, ColumnRef(column))
            return None
        found = self.catalog.column(self.occurrences[occurrence].relation, identifier)
        return None if found is None else Key(occurrence, ColumnRef(found))

    def occurrence_named(self, identifier: exp.Identifier, visible: Iterable[int]) -> int:
        """The visible occurrence that a qualifier names."""
        for occurrence in visible:
            if same_name(identifier, self.occurrences[occurrence].alias):
                return occurrence
        names = [self.occurrences[occurrence].alias for occurrence in visible]
        self._refuse_field(identifier, visible)
        raise self.source.unknown(
            f"no table of this part of the query is called {identifier.name!r}",
            identifier,
            nearest(identifier.name, names),
        )

    def _refuse_field(self, identifier: exp.Identifier, visible: Iterable[int]) -> None:
        """Refuses `x.a` where x is a column."""
        for occurrence in visible:
            column = self.table(occurrence).column(identifier.name)
            if column is not None and isinstance(identifier.parent, exp.Column):
                raise field_access(self.source, identifier.parent, column.name)

    def resolve(self, node: exp.Column, visible: tuple[int, ...]) -> Key:
        """What a column's name means among the visible occurrences; ambiguity is an error."""
        if any(value for name, value in node.args.items() if name not in ("this", "table")):
            self._refuse_field(node.args["table"], visible)
            raise self.source.unknown("a column is qualified by one name", node, "give the table an alias, and use it")
        identifier, qualifier = node.this, node.args.get("table")
        if not isinstance(identifier, exp.Identifier):
            raise self.source.unsupported("* is not a column", node, "name the column")
        if qualifier is not None:
            occurrence = self.occurrence_named(qualifier, visible)
            found = self.lookup(occurrence, identifier)
            if found is None:
                raise self._missing(identifier, [occurrence])
            return found
        return self._unqualified(identifier, visible)

    def _unqualified(self, identifier: exp.Identifier, visible: tuple[int, ...]) -> Key:
        groups = [keys for (_, name), keys in self.merged.items() if name == identifier.name.lower()]
        merged = [seen for keys in groups if (seen := [key for key in keys if key.occurrence in visible])]
        taken = {key.occurrence for keys in merged for key in keys}
        others = [occurrence for occurrence in visible if occurrence not in taken]
        guesses = [occurrence for occurrence in others if self._is_open(occurrence)]
        if guesses and len(visible) > 1:
            raise self.source.unknown(
                f"which table has the column {identifier.name!r} is not known",
                identifier,
                f"qualify it, as in {self.occurrences[guesses[0]].alias}.{identifier.name}, or declare the tables",
            )
        found = [keys[0] for keys in merged] + [
            key for other in others if (key := self.lookup(other, identifier)) is not None
        ]
        if not found:
            raise self._missing(identifier, visible)
        if len(found) > 1:
            choices = [f"{self.occurrences[key.occurrence].alias}.{identifier.name}" for key in found]
            raise self.source.unknown(
                f"the column {identifier.name!r} is ambiguous", identifier, f"write {' or '.join(choices)}"
            )
        return found[0]

    def _is_open(self, occurrence: int) -> bool:
        """Whether the table is inferred, so that it may have any column."""
        found = self.occurrences[occurrence]
        return found.closure is None and self.catalog.is_inferred(found.relation)

    def _missing(self, identifier: exp.Identifier, searched: Iterable[int]) -> Exception:
        columns = [name for occurrence in searched for name in self.column_names(occurrence)]
        aliases = [self.occurrences[occurrence].alias for occurrence in searched]
        tables = ", ".join([alias for alias in aliases if _is_given(alias)] or aliases)
        return self.source.unknown(
            f"there is no column {identifier.name!r} in {tables}", identifier, meant(identifier, columns)
        )

    def column_names(self, occurrence: int) -> list[str]:
        """The names under which an occurrence's columns are visible."""
        found = self.occurrences[occurrence]
        if found.closure is not None:
            return [name.name for name in found.closure.names]
        return self.catalog.columns(found.relation)

    def star(self, node: exp.Expr, occurrences: Iterable[int]) -> None:
        """Refuses a star over tables with undeclared columns."""
        for occurrence in occurrences:
            if self._is_open(occurrence):
                alias = self.occurrences[occurrence].alias
                raise self.source.unknown(f"* needs the columns of {alias}", node, "declare the table, or name columns")

    def table(self, occurrence: int) -> Table:
        """The table that an occurrence reads, as far as it is known."""
        return self.catalog.table(self.occurrences[occurrence].relation)

    def keys_of(self, occurrence: int) -> list[Key]:
        """All columns of an occurrence, in order."""
        found = self.occurrences[occurrence]
        names = found.closure.columns if found.closure is not None else self.catalog.columns(found.relation)
        return [Key(occurrence, ColumnRef(name)) for name in names]

    def visible_name(self, key: Key) -> str:
        """The name of a plain column as the query sees it: a closure renames its edges' columns."""
        closure = self.occurrences[key.occurrence].closure
        if closure is not None and isinstance(key.expression, ColumnRef):
            return closure.names[closure.columns.index(key.expression.name)].name
        return str(key.expression)
