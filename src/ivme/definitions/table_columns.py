"""Columns that come to a table, go from it, and get other names.

A view keeps the meaning that it had when it was made, also when a directory is reopened and its text is read
again. So a change is refused that would give the text of a view another meaning: a column is dropped that it reads, or
added where it says SELECT *, names all columns by their places, as rules do, or no name would be unambiguous any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.value_check import checked
from ivme.errors import PlanError, QueryError, SchemaError
from ivme.query.functions import Function
from ivme.query.model import Column, Query, Table
from ivme.query.names import check_name
from ivme.query.table import Default
from ivme.query.types import Type, parse_type

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions


def add_column(definitions: Definitions, table: str, name: str, type_: str | Type, default: Default | None) -> None:
    """Adds a column after the others; see `Database.add_column`."""
    check_name(name, f"a column of table {table}")
    kind = parse_type(type_)
    with definitions.runtime.lock:
        old = _table(definitions, table)
        if old.column(name) is not None:
            raise SchemaError(f"table {old.name} has a column {name} already; choose another name")
        kept, now = _checked(default, kind, name, old), datetime.now(UTC).replace(tzinfo=None)
        defaults = (*old.defaults, *(() if kept is None else ((name, kept),)))
        new = replace(old, columns=(*old.columns, Column(name, kind)), defaults=defaults)
        value = None if kept is None else kept.at(now, kind)
        _change(definitions, old, new, [*range(len(old.columns)), None], value)
    definitions.runtime.wait_durable()


def set_default(definitions: Definitions, table: str, name: str, default: Default | None) -> None:
    """Gives a column another default, for rows that come from now on; None drops it."""
    with definitions.runtime.lock:
        old = _table(definitions, table)
        column = _column(old, name)
        kept = _checked(default, declared_type(old, column), column.name, old)
        defaults = [pair for pair in old.defaults if pair[0] != column.name]
        new = replace(old, defaults=(*defaults, *(() if kept is None else ((column.name, kept),))))
        definitions.change_columns(new, range(len(old.columns)), None)
    definitions.runtime.wait_durable()


def _checked(default: Default | None, type_: Type, name: str, table: Table) -> Default | None:
    if default is None or default.is_time:
        return default
    return Default(checked(default.value, type_, f"the default of column {name} of table {table.name}"))


def drop_column(definitions: Definitions, table: str, name: str) -> None:
    """Drops a column; see `Database.drop_column`."""
    with definitions.runtime.lock:
        old = _table(definitions, table)
        column = _column(old, name)
        place = old.columns.index(column)
        if place in old.key_positions:
            raise SchemaError(f"column {column.name} is in the primary key of table {old.name}, and cannot be dropped")
        if len(old.columns) == 1:
            raise SchemaError(f"{column.name} is the only column of table {old.name}; drop the table")
        kept = [i for i in range(len(old.columns)) if i != place]
        distinct = tuple(pair for pair in old.distinct if pair[0].lower() != column.name.lower())
        gone = column.name.lower()
        new = replace(
            old,
            columns=tuple(old.columns[i] for i in kept),
            defaults=tuple(pair for pair in old.defaults if pair[0] != column.name),
            distinct=distinct,
            unique=tuple(key for key in old.unique if gone not in map(str.lower, key)),
            not_null=tuple(each for each in old.not_null if each.lower() != gone),
            references=tuple(each for each in old.references if gone not in map(str.lower, each.columns)),
        )
        _change(definitions, old, new, kept, None)
    definitions.runtime.wait_durable()


def rename_column(definitions: Definitions, table: str, name: str, to: str) -> None:
    """Gives a column another name; see `Database.rename_column`."""
    check_name(to, f"a column of table {table}")
    with definitions.runtime.lock:
        old = _table(definitions, table)
        column = _column(old, name)
        other = old.column(to)
        if other is not None and other is not column:
            raise SchemaError(f"table {old.name} has a column {other.name} already; choose another name")
        for each in definitions.relations():
            if any(_names(key.target, column.name) for key in each.references if key.table.lower() == old.name.lower()):
                raise PlanError(
                    f"cannot rename column {column.name} of table {old.name}: table {each.name} references it"
                )

        def renamed(names: Sequence[str]) -> tuple[str, ...]:
            return tuple(to if each.lower() == column.name.lower() else each for each in names)

        new = replace(
            old,
            columns=tuple(replace(each, name=to) if each is column else each for each in old.columns),
            primary_key=None if old.primary_key is None else renamed(old.primary_key),
            distinct=tuple((renamed([each])[0], count) for each, count in old.distinct),
            defaults=tuple((renamed([each])[0], default) for each, default in old.defaults),
            unique=tuple(map(renamed, old.unique)),
            not_null=renamed(old.not_null),
            references=tuple(replace(each, columns=renamed(each.columns)) for each in old.references),
        )
        _change(definitions, old, new, range(len(old.columns)), None)
    definitions.runtime.wait_durable()


def _names(columns: Sequence[str], name: str) -> bool:
    return name.lower() in map(str.lower, columns)


def _column(table: Table, name: object) -> Column:
    found = table.column(name) if isinstance(name, str) else None
    if found is None:
        raise SchemaError(f"table {table.name} has no column {name!r}; it has: {', '.join(table.column_names)}")
    return found


def _table(definitions: Definitions, name: str) -> Table:
    definitions.check_open()
    return definitions.table(name)


def _change(definitions: Definitions, old: Table, new: Table, places: Sequence[int | None], default: object) -> None:
    for view in dict.fromkeys(map(definitions.owner, definitions.catalog.readers(old.name))):
        _check_view(definitions, view, old, new)
    definitions.change_columns(new, places, default)


def _check_view(definitions: Definitions, view: str, old: Table, new: Table) -> None:
    state = definitions.catalog.views.get(view)
    text = "" if state is None else state.typed.written.text
    if view not in definitions.views or not text:
        hidden = [] if state is None else definitions.catalog.readers(view)
        raise PlanError(
            f"cannot change the columns of table {old.name}: {', '.join(hidden) or view} needs them as they are; "
            "drop that first"
        )
    others = tuple(table for table in definitions.relations() if table.name not in (old.name, view))
    try:
        functions = definitions.functions.defined
        same = _meaning(text, (*others, new), functions) == _meaning(text, (*others, old), functions)
    except QueryError as error:
        raise _refusal(view, old, new) from error
    if not same:
        raise _refusal(view, old, new)


def _meaning(text: str, tables: tuple[Table, ...], functions: Mapping[str, Function]) -> Any:
    """What a text says: its query, or that of its blocks."""
    from ivme.query.parse import is_one_join, parse

    if is_one_join(text, tables):
        query = parse(text, tables)
    else:
        from ivme.query.sql_script import read_script

        script = read_script(text, tables, functions)
        if len(script) > 1 or script.order is not None:
            return [script.text(number, {}) for number in range(len(script))], script.order
        only = script.block(0, tables, {}, "Q")
        assert isinstance(only, Query), "a view is never a union itself"
        query = only
    return query.atoms, query.head, query.output, query.input, query.parameters, query.distinct


def _refusal(view: str, old: Table, new: Table) -> PlanError:
    gone = [name for name in old.column_names if name not in new.column_names]
    if gone:
        act = "drop" if len(new.columns) < len(old.columns) else "rename"
        return PlanError(f"cannot {act} column {gone[0]} of table {old.name}: view {view} reads it; drop that first")
    return PlanError(
        f"cannot add column {new.column_names[-1]} to table {old.name}: the text of view {view} would mean something "
        "else with it (SELECT *, a rule, or a name that would be ambiguous); drop that first, and make it again"
    )
