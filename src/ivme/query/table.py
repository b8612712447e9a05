"""What is known about a table: its columns, its keys, what it promises, and statistics.

A primary key is enforced. All other keys, NOT NULL and foreign keys are promises: they decide plans and bounds, and no
answer is wrong where one is broken. `structure.dependencies` reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ivme.errors import SchemaError
from ivme.query.names import check_name
from ivme.query.types import Type, parse_type


@dataclass(frozen=True, slots=True)
class Column:
    """A table's column; `type` is None where only the query's text is known."""

    name: str
    type: Type | None = None


@dataclass(frozen=True, slots=True)
class ClosureOf:
    """That a relation is the transitive closure of the edges in two columns of another; `graph` is their kind."""

    relation: str
    columns: tuple[str, str]
    graph: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """That the values of `columns` are those of a row of `table`, in its columns `target`; empty for its primary key.

    A row comes after the row that it references and goes before it. A batch may have both in any order.
    """

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...] = ()

    def __str__(self) -> str:
        target = f" ({', '.join(self.target)})" if self.target else ""
        return f"({', '.join(self.columns)}) REFERENCES {self.table}{target}"


@dataclass(frozen=True, slots=True)
class Default:
    """What a column has in rows that do not give it: a constant, or the time when they come, in UTC."""

    value: Any = None
    is_time: bool = False

    def at(self, moment: datetime, type_: Type | None) -> Any:
        """The value for rows that come at a moment."""
        if not self.is_time:
            return self.value
        return moment.date() if type_ is not None and type_.kind == "date" else moment

    def __str__(self) -> str:
        """As SQL has it."""
        if self.is_time:
            return "now()"
        if isinstance(self.value, bool):
            return str(self.value).upper()
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex()}'"
        text = str(self.value)
        return text if isinstance(self.value, int | float) else "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Table:
    """What is known about a table.

    `unique` are further keys, whose columns may be NULL in many rows, unless they are in `not_null`. `keys` are those
    of a view, where NULL counts as a value. A table that does not `keep_rows` is append-only, and views get its rows
    only while they come. `references` are foreign keys, and `defaults` what columns have in rows
    that do not give them; a column that is not listed there has NULL. `inferred` marks a table that was not
    declared: its columns are those that the query mentions. `rows` and `distinct` (distinct values by column) are
    statistics; they only break ties between plans. `closure_of` says of a closure, seen as a relation, what it is the
    closure of.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] | None = None
    append_only: bool = False
    static: bool = False
    keep_rows: bool = True
    rows: int | None = None
    distinct: tuple[tuple[str, int], ...] = ()
    inferred: bool = False
    closure_of: ClosureOf | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    not_null: tuple[str, ...] = ()
    references: tuple[ForeignKey, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    defaults: tuple[tuple[str, Default], ...] = ()

    def __post_init__(self) -> None:
        names = [column.name.lower() for column in self.columns]
        if not self.name:
            raise SchemaError("a table needs a name")
        for option in ("append_only", "static", "keep_rows"):
            if not isinstance(getattr(self, option), bool):
                told = getattr(self, option)
                raise SchemaError(f"table {self.name}: {option} must be True or False; it is {told!r}")
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(f"table {self.name} has two columns named {name!r}")
        for name in self.primary_key or ():
            self._check_column(name, names, "be its primary key")
        for name in (name for key in self.unique for name in key):
            self._check_column(name, names, "be unique")
        for name in self.not_null:
            self._check_column(name, names, "be NOT NULL")
        for name in (name for reference in self.references for name in reference.columns):
            self._check_column(name, names, "reference another table")
        if not self.keep_rows:
            self._check_passing()
        if self.append_only and self.static:
            raise SchemaError(f"table {self.name} cannot be both static and append-only: a static table never changes")

    def _check_passing(self) -> None:
        if self.static:
            raise SchemaError(f"table {self.name} cannot be static without its rows; leave static or keep_rows out")
        if self.primary_key:
            raise SchemaError(
                f"table {self.name} keeps no rows, so that a primary key cannot be enforced; declare "
                f"{', '.join(self.primary_key)} as unique and not_null in its place, which are promises"
            )
        if not self.append_only:
            raise SchemaError(f"table {self.name} keeps no rows, so that none can be deleted: it is append-only")

    def _check_column(self, name: str, names: list[str], purpose: str) -> None:
        if name.lower() not in names:
            raise SchemaError(f"table {self.name} has no column {name!r} to {purpose}")

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple([column.name for column in self.columns])

    @property
    def key_positions(self) -> tuple[int, ...]:
        """Where the columns of the primary key are; they are never NULL."""
        if not self.primary_key:
            return ()
        key = {name.lower() for name in self.primary_key}
        return tuple(i for i, column in enumerate(self.columns) if column.name.lower() in key)

    @property
    def declared_key(self) -> tuple[Column, ...]:
        """The columns of the primary key in the order in which it was declared, as keys are given."""
        found = [self.column(name) for name in self.primary_key or ()]
        return tuple(column for column in found if column is not None)

    def without_defaults(self) -> Table:
        """The table as rows that go see it: they have all columns."""
        return replace(self, defaults=()) if self.defaults else self

    def default_row(self, moment: datetime) -> list[Any]:
        """What each column has in rows that come at a moment and do not give it."""
        known = dict(self.defaults)
        return [known[each.name].at(moment, each.type) if each.name in known else None for each in self.columns]

    def column(self, name: str) -> Column | None:
        """The column of that name, whatever its case, or None."""
        wanted = name.lower()
        for column in self.columns:
            if column.name.lower() == wanted:
                return column
        return None


References = Mapping[str, str] | Mapping[tuple[str, ...], str] | Iterable[ForeignKey]
"""Foreign keys as users write them: columns to a table, or to a table with its columns, `"customers (id)"`."""


def table(
    name: str,
    schema: Mapping[str, str | type | Type] | Iterable[str],
    *,
    primary_key: str | Iterable[str] | None = None,
    append_only: bool = False,
    static: bool = False,
    keep_rows: bool = True,
    rows: int | None = None,
    distinct: Mapping[str, int] | None = None,
    references: References | None = None,
    unique: Iterable[str | Iterable[str]] = (),
    not_null: str | Iterable[str] = (),
    defaults: Iterable[tuple[str, Default]] = (),
) -> Table:
    """A declared table from plain Python values, as `Database.create_table` takes them."""
    if isinstance(schema, Mapping):
        columns = tuple(Column(column, parse_type(kind)) for column, kind in schema.items())
    else:
        columns = tuple(Column(column) for column in schema)
    return Table(
        name,
        columns,
        primary_key=None if primary_key is None else _names(primary_key),
        append_only=append_only or keep_rows is False,
        static=static,
        keep_rows=keep_rows,
        rows=rows,
        distinct=tuple((distinct or {}).items()),
        unique=tuple(map(_names, (unique,) if isinstance(unique, str) else unique)),
        not_null=_names(not_null),
        references=_references(name, references or ()),
        defaults=tuple(defaults),
    )


def _names(columns: str | Iterable[str]) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _references(name: str, given: References) -> tuple[ForeignKey, ...]:
    if isinstance(given, Mapping):
        return tuple(_foreign_key(name, columns, target) for columns, target in given.items())
    return tuple(given)


def _foreign_key(name: str, columns: object, target: object) -> ForeignKey:
    """A foreign key from `"customer": "customers"`, or `"shop, city": "shops (id, city)"`."""
    named = columns.split(",") if isinstance(columns, str) else columns
    if not isinstance(target, str) or not isinstance(named, tuple | list):
        raise SchemaError(
            f"references of table {name} must map columns to a table, as in {{'customer': 'customers'}}; "
            f"{columns!r} has {target!r}"
        )
    referenced, bracket, listed = target.partition("(")
    there = tuple(each.strip() for each in listed.rstrip(") ").split(",")) if bracket else ()
    found = ForeignKey(tuple(each.strip() for each in named), referenced.strip(), there)
    if not found.table or (there and len(there) != len(found.columns)):
        raise SchemaError(f"table {name} references {target!r}: write a table, or a table with as many columns")
    return found


def with_renamed_table(of: Table, name: str, to: str) -> Table:
    """A table as it is declared after a table, itself or one that it references, was given another name."""
    references = tuple(replace(each, table=to) if each.table == name else each for each in of.references)
    return replace(of, name=to if of.name == name else of.name, references=references)


def promises(of: Table) -> dict[str, Any]:
    """What a table promises, as `table` takes it."""
    return {
        "primary_key": of.primary_key,
        "append_only": of.append_only,
        "static": of.static,
        "keep_rows": of.keep_rows,
        "references": of.references,
        "unique": of.unique,
        "not_null": of.not_null,
    }


def plain_promises(of: Table) -> dict[str, Any]:
    """The same as values of JSON; what a table does not say of UNIQUE, NOT NULL and REFERENCES is left out."""
    references = [[[*each.columns], each.table, [*each.target]] for each in of.references]
    further = {"references": references, "unique": [*map(list, of.unique)], "not_null": [*of.not_null]}
    return {
        "primary_key": None if of.primary_key is None else list(of.primary_key),
        "append_only": of.append_only,
        "static": of.static,
        **{name: value for name, value in further.items() if value},
    }


def read_promises(given: Mapping[str, Any]) -> dict[str, Any]:
    """What `plain_promises` wrote, as `table` takes it."""
    kept = {name: given[name] for name in ("primary_key", "append_only", "static")}
    references = [ForeignKey(tuple(mine), name, tuple(theirs)) for mine, name, theirs in given.get("references", ())]
    further = {"unique": given.get("unique", ()), "not_null": given.get("not_null", ())}
    return {**kept, **further, "references": references}


def check_table(declared: Table) -> None:
    """Refuses a new table with a name that cannot be one; tables that a directory holds are taken as they are."""
    check_name(declared.name, "a table")
    for name in declared.column_names:
        check_name(name, f"a column of table {declared.name}")
