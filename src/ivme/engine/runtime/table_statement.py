"""Updates and deletes by a condition, from what users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.value_check import checked
from ivme.engine.ingest.rows import rounded_float
from ivme.engine.runtime.table_change import DeleteWhere, Update
from ivme.errors import SchemaError, UnknownNameError, shown
from ivme.query.expression import Expression, Literal
from ivme.query.inference import type_of
from ivme.query.model import Column, Table
from ivme.query.one_type import cast_to
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.query.table_expression import Parameters


def delete_where(table: Table, where: str, parameters: Mapping[str, Any]) -> DeleteWhere:
    """Deletes the rows for which a condition holds."""
    if where is None:
        raise SchemaError(f"delete_where needs a condition; truncate({table.name!r}) takes all rows away")
    values = _parameters(parameters)
    condition = _condition(table, where, values)
    values.refuse_unused()
    return DeleteWhere(condition)


def update(
    table: Table,
    given: Mapping[str, Any],
    where: str | None,
    parameters: Mapping[str, Any],
    *,
    round_floats: bool = False,
) -> Update:
    """Sets columns by name; see `Batch.update`."""
    if not isinstance(given, Mapping) or not given:
        raise SchemaError(f"update of table {table.name} needs set={{column: value}} with at least one column")
    named, values = _parameters(parameters), dict[int, Expression]()
    condition = None if where is None else _condition(table, where, named)
    for name, value in given.items():
        position = _position(table, name)
        if position in values:
            raise SchemaError(f"update of table {table.name} sets column {table.column_names[position]} twice")
        if round_floats and declared_type(table, table.columns[position]).kind == "decimal":
            value = rounded_float(value, declared_type(table, table.columns[position]))
        values[position] = _value(table, position, value, named)
    named.refuse_unused()
    return Update(condition, values)


def _parameters(given: Mapping[str, Any]) -> Parameters:
    from ivme.query.table_expression import Parameters

    return Parameters(given)


def _condition(table: Table, where: object, parameters: Parameters) -> Expression:
    from ivme.query.table_expression import parse_condition

    if not isinstance(where, str):
        raise SchemaError(f"where is an SQL condition, such as 'a = :a'; it is {shown(where)}")
    return parse_condition(where, table, parameters)


def _position(table: Table, name: object) -> int:
    names = [known.lower() for known in table.column_names]
    if not isinstance(name, str) or name.lower() not in names:
        raise UnknownNameError(
            f"table {table.name} has no column {name if isinstance(name, str) else shown(name)}; "
            f"it has: {', '.join(table.column_names)}"
        )
    return names.index(name.lower())


def _value(table: Table, position: int, value: Any, parameters: Parameters) -> Expression:
    """A string is an expression; a value of another type is one that an insert would take."""
    from ivme.query.table_expression import parse_value

    column = table.columns[position]
    wanted = declared_type(table, column)
    if not isinstance(value, str):
        return _constant(table, column, wanted, value)
    try:
        return parse_value(value, table, wanted, parameters)
    except UnknownNameError as error:
        hint = f"a string in set= is an SQL expression; give a value as {{{column.name!r}: ':x'}} with x={value!r}"
        raise UnknownNameError(f"{error} ({hint})") from error


def _constant(table: Table, column: Column, wanted: Type, value: Any) -> Expression:
    kept = Literal(checked(value, wanted, f"table {table.name}, column {column.name}"))
    return cast_to(kept, type_of(kept, table), wanted)
