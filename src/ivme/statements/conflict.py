"""INSERT ... ON CONFLICT, as PostgreSQL and SQLite have it: a MERGE of the rows, by the primary key of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivme.engine.codes.arrow_types import declared_type
from ivme.query.column_defaults import as_assigned
from ivme.query.model import Table
from ivme.query.sql_scope import same_name
from ivme.query.sql_text import SqlText
from ivme.query.sql_types import type_node
from ivme.query.table_expression import Parameters
from ivme.query.types import Type
from ivme.query.written import in_place_of
from ivme.statements.change import Taken, changed_table, insert, named_places, positions, with_defaults
from ivme.statements.constants import constant_node, value_of, with_time
from ivme.statements.merge import merge
from ivme.statements.model import Insert, Merge, OnConflict, Values, When

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.batch import Batch

_NEW = "excluded"


def insert_on_conflict(
    definitions: Definitions, statement: Insert, values: Parameters, batch: Batch, taken: Taken
) -> int:
    """Adds the rows of an INSERT with ON CONFLICT to a batch; how many come or change."""
    table = changed_table(definitions, statement.source, statement.table)
    places = named_places(statement.source, table, statement.columns)
    conflict = statement.conflict
    assert conflict is not None
    _check(statement, conflict, table)
    if _is_upsert(conflict, table, places):
        return insert(definitions, replace(statement, how="upsert", conflict=None), values, batch, taken)
    return merge(definitions, _merge(statement, conflict, table, places, values), values, batch, taken)


def _is_upsert(conflict: OnConflict, table: Table, places: Sequence[int]) -> bool:
    """Whether each row simply takes the place of the one that has its key, in all columns."""
    if conflict.values is None or conflict.where is not None or len(places) < len(table.columns):
        return False
    taken = {
        column.name.lower()
        for column, value in conflict.values
        if isinstance(value, exp.Column) and value.table.lower() == _NEW and same_name(value.this, column.name)
    }
    others = [name for place, name in enumerate(table.column_names) if place not in table.key_positions]
    return len(taken) == len(conflict.values) and all(name.lower() in taken for name in others)


def _merge(statement: Insert, conflict: OnConflict, table: Table, places: Sequence[int], values: Parameters) -> Merge:
    """The MERGE that an INSERT with ON CONFLICT stands for."""
    source, rows = statement.source, statement.rows
    if not isinstance(rows, tuple):
        instead = "write MERGE INTO ... USING (SELECT ...) AS name"
        raise source.unsupported("ON CONFLICT is for VALUES", source.tokens[0].start, instead)
    names = [table.column_names[place] for place in places]
    keys = [table.columns[place].name for place in table.key_positions]
    missing = [key for key in keys if key not in names]
    if missing:
        message = f"the column {missing[0]} of the primary key has no value"
        raise source.unsupported(message, source.tokens[0].start, "give it one")
    target = statement.table.copy()
    on = exp.and_(*(exp.EQ(this=_column(target.name, key), expression=_column(_NEW, key)) for key in keys))
    whens = [When("source", None, tuple((_identifier(name), _column(_NEW, name)) for name in names))]
    if conflict.values is not None:
        where = None if conflict.where is None else _of_target(conflict.where, target.name)
        whens.append(When("both", where, _set(statement, conflict.values, table, values)))
    using = _rows(statement, rows, table, places, values)
    return Merge(source, target, using, on, tuple(whens), statement.returning)


def _set(
    statement: Insert, values: tuple[tuple[exp.Identifier, exp.Expr], ...], table: Table, given: Parameters
) -> tuple[tuple[exp.Identifier, exp.Expr], ...]:
    """The values of SET, each as its column takes it."""
    made = []
    for column, value in values:
        (place,) = positions(statement.source, table, [column])
        (value,) = with_defaults(table, [place], [value], given)
        assigned = as_assigned(with_time(value, given), declared_type(table, table.columns[place]))
        made.append((column, _of_target(assigned, statement.table.name)))
    return tuple(made)


def _check(statement: Insert, conflict: OnConflict, table: Table) -> None:
    """Refuses ON CONFLICT by other columns than those of the primary key."""
    keys = {table.column_names[place].lower() for place in table.key_positions}
    source, start = statement.source, statement.source.tokens[0].start
    if not keys:
        raise source.unsupported(f"table {table.name} has no primary key", start, "declare one in CREATE TABLE")
    if conflict.keys and {each.lower() for each in conflict.keys} != keys:
        message = f"ON CONFLICT uses the primary key of table {table.name}, which is ({', '.join(sorted(keys))})"
        raise source.unsupported(message, start, "name its columns, or none")


def _rows(statement: Insert, rows: Values, table: Table, places: Sequence[int], values: Parameters) -> exp.Values:
    """The rows under the name that SET knows them by: all columns, NULL where nothing is given, each of its type."""
    types = [declared_type(table, column) for column in table.columns]
    made = []
    for row in rows:
        if len(row) != len(places):
            message = f"the row has {len(row)} values for {len(places)} columns"
            raise statement.source.unsupported(message, row[0] if row else None, "give a value for each column")
        given = dict(zip(places, row, strict=True))
        nodes = [given.get(place, exp.Var(this="DEFAULT")) for place in range(len(types))]
        nodes = with_defaults(table, range(len(types)), nodes, values)
        made.append(
            exp.Tuple(
                expressions=[
                    _cell(statement.source, node, type_, values) for node, type_ in zip(nodes, types, strict=True)
                ]
            )
        )
    columns = [_identifier(name) for name in table.column_names]
    return exp.Values(expressions=made, alias=exp.TableAlias(this=_identifier(_NEW), columns=columns))


def _cell(source: SqlText, node: exp.Expr, type_: Type, values: Parameters) -> exp.Expr:
    """The value as a plain INSERT would take it, as a constant of the column's type."""
    constant = constant_node(value_of(source, node, type_, values), "value")
    return in_place_of(exp.cast(constant, type_node(type_)), node)


def _of_target(node: exp.Expr, target: str) -> exp.Expr:
    """An expression whose columns are those of the table, unless they are said to be those of the new row."""

    def qualified(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and not each.table:
            each.set("table", _identifier(target))
        return each

    return node.copy().transform(qualified)


def _identifier(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)


def _column(relation: str, name: str) -> exp.Column:
    return exp.column(_identifier(name), table=_identifier(relation))
