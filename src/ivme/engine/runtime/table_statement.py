"""Updates and deletes by a condition, from what users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.runtime.table_change import DeleteWhere, Update
from ivme.errors import DataError, SchemaError, UnknownNameError, shown
from ivme.query.expression import Expression
from ivme.query.model import Table


def delete_where(table: Table, where: str, parameters: Mapping[str, Any]) -> DeleteWhere:
    """Deletes the rows for which a condition holds."""
    if where is None:
        raise SchemaError(f"delete_where needs a condition; truncate({table.name!r}) takes all rows away")
    return DeleteWhere(_condition(table, where, parameters, []))


def update(table: Table, given: Mapping[str, Any], where: str | None, parameters: Mapping[str, Any]) -> Update:
    """Sets columns by name; see `Batch.update`."""
    if not isinstance(given, Mapping) or not given:
        raise SchemaError(f"update of table {table.name} needs set={{column: value}} with at least one column")
    texts = [value for value in given.values() if isinstance(value, str)]
    condition = _condition(table, where, parameters, texts)
    values: dict[int, Expression] = {}
    for name, value in given.items():
        position = _position(table, name)
        if position in values:
            raise SchemaError(f"update of table {table.name} sets column {table.column_names[position]} twice")
        values[position] = _value(table, position, value, parameters)
    return Update(condition, values)


def _condition(
    table: Table, where: str | None, parameters: Mapping[str, Any], texts: list[str]
) -> Expression | None:
    from ivme.query.table_expression import check_values, parse_condition

    if where is not None and not isinstance(where, str):
        raise SchemaError(f"where is an SQL condition, such as 'a = :a'; it is {shown(where)}")
    check_values(parameters, *texts, *([] if where is None else [where]))
    return None if where is None else parse_condition(where, table, parameters)


def _position(table: Table, name: object) -> int:
    names = [known.lower() for known in table.column_names]
    if not isinstance(name, str) or name.lower() not in names:
        raise UnknownNameError(
            f"table {table.name} has no column {name if isinstance(name, str) else shown(name)}; "
            f"it has: {', '.join(table.column_names)}"
        )
    return names.index(name.lower())


def _value(table: Table, position: int, value: Any, parameters: Mapping[str, Any]) -> Expression:
    from ivme.query.table_expression import literal, parse_value

    column = table.columns[position]
    wanted = declared_type(table, column)
    if not isinstance(value, str):
        return parse_value(":value", table, wanted, {"value": literal(value, f"the value of {column.name}").value})
    try:
        return parse_value(value, table, wanted, parameters)
    except UnknownNameError as error:
        hint = f"a string in set= is an SQL expression; give a value as {{{column.name!r}: ':x'}} with x={value!r}"
        raise UnknownNameError(f"{error} ({hint})") from error
