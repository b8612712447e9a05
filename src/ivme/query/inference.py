"""The types of expressions, of variables and of a view's columns, from the declared columns.

An expression's type is the one that holds every value `expression.evaluate` gives for it: integers have 64 bits,
division of integers gives floats, and decimals follow Spark's rules for precision and scale, which give up digits
after the point where 38 are not enough. A variable stands for columns of one type (`one_type` sees to that), so that
equal values have equal codes.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import reduce
from typing import Any

from ivme.errors import ExpressionError, SchemaError
from ivme.query import sql_values
from ivme.query.aggregates import is_joint, is_keyed
from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of
from ivme.query.model import Aggregate, Atom, Query, Table
from ivme.query.types import Type, parse_type

INT, FLOAT, BOOL, STRING = Type("int"), Type("float"), Type("bool"), Type("string")
_DATE, _TIMESTAMP, _BINARY = Type("date"), Type("timestamp"), Type("binary")

_SECONDS = Type("decimal", 8, 6)
_INT_DIGITS = 20
"""The digits that Spark gives to 64-bit integers among decimals."""

_MAX_DIGITS = 38
_LEAST_SCALE = 6
"""The digits after the point that Spark keeps when a decimal would need more than 38 digits."""


_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    float: FLOAT,
    str: STRING,
    bytes: _BINARY,
    datetime.datetime: _TIMESTAMP,
    datetime.date: _DATE,
}
"""The types of constants; a bool is an int to Python, and a datetime a date."""


def type_of(expression: Expression, table: Table) -> Type | None:
    """The type of an expression over a table's columns; None for NULL and where a column's type is not declared.

    Raises `SchemaError` where the parts have no type in common; linear in the expression.

    >>> from ivme.query.model import table
    >>> items = table("items", {"price": "decimal(12, 2)", "discount": "decimal(4, 2)", "n": "int"})
    >>> rebate = Call("subtract", (Literal(1), ColumnRef("discount")))
    >>> str(type_of(Call("multiply", (ColumnRef("price"), rebate)), items))
    'decimal(18,4)'
    >>> str(type_of(Call("divide", (ColumnRef("n"), Literal(2))), items))
    'float'
    """
    if isinstance(expression, ColumnRef):
        column = table.column(expression.name)
        return None if column is None else column.type
    if isinstance(expression, Literal):
        return literal_type(expression.value)
    fixed = expression.definition.type
    if fixed is not None:
        return fixed
    if expression.function.endswith("cast_decimal"):
        return _cast_decimal(expression)
    if expression.function == "cast_nested":
        return _cast_nested(expression)
    if expression.function == "extract_second":
        return _SECONDS
    return _computed(expression, table)


def literal_type(value: Any) -> Type | None:
    """The type of a constant; a decimal has the digits that it is written with, an array the type of its elements."""
    if isinstance(value, Decimal):
        return _decimal_literal(value)
    if isinstance(value, tuple):
        return _array_literal(value)
    known = _LITERALS.get(type(value))
    return known or next((type_ for python, type_ in _LITERALS.items() if isinstance(value, python)), None)


def _array_literal(elements: tuple[Any, ...]) -> Type | None:
    """None if its elements have no common type, or if there are none that are not NULL."""
    types = {literal_type(each) for each in elements if each is not None}
    if (
        all(type_ is not None and type_.kind == "decimal" for type_ in types)
        and len({t and t.scale for t in types}) == 1
    ):
        types = {max(types, key=lambda type_: type_.precision or 0 if type_ else 0)}
    element = types.pop() if len(types) == 1 else None
    return None if element is None else Type("array", element=element)


def _decimal_literal(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise SchemaError(f"{value} is not a decimal")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > _MAX_DIGITS:
        raise SchemaError(f"the decimal {value} has more than {_MAX_DIGITS} digits")
    return Type("decimal", precision, scale)


def in_type(value: Any, type_: Type | None, expression: Expression) -> Any:
    """An expression's value in its type: a branch's int among decimals, a quotient to its digits."""
    if value is None or type_ is None:
        return None
    if type_.kind == "float":
        return float(value)
    if type_.kind == "timestamp":
        return sql_values.to_timestamp(value)
    if type_.kind == "decimal":
        assert type_.precision is not None
        assert type_.scale is not None
        try:
            return sql_values.to_decimal(value, type_.precision, type_.scale)
        except OverflowError as error:
            raise ExpressionError.of(str(expression), str(error)) from error
    return value


def _cast_decimal(call: Call) -> Type:
    precision, scale = call.arguments[1:]
    if not (isinstance(precision, Literal) and isinstance(scale, Literal)):
        raise SchemaError(f"{call} needs a constant precision and scale")
    return Type("decimal", precision.value, scale.value)


def _cast_nested(call: Call) -> Type:
    type_ = call.arguments[1]
    assert isinstance(type_, Literal)
    return parse_type(type_.value)


def _computed(call: Call, table: Table) -> Type | None:
    """The type of a function whose type depends on its arguments."""
    types = [type_of(argument, table) for argument in valued_arguments(call)]
    if call.definition.gives == "branches":
        if any(type_ is not None and type_.kind == "decimal" for type_ in types):
            types = [_among_decimals(*pair) for pair in zip(types, valued_arguments(call), strict=True)]
        return reduce(lambda left, right: _branches(left, right, call), types)
    if call.definition.gives == "first":
        return types[0]
    for type_ in types:
        if type_ is not None and not type_.is_numeric:
            raise SchemaError(f"{call} computes with a value of type {type_}; CAST it")
    if len(types) == 1:
        return None if types[0] is None else _unary(call, types[0])
    left, right = types[0] or types[1], types[1] or types[0]
    if left is None or right is None:
        return None
    return _binary(call, left, right)


_OF_FIRST = ("round", "bround", "floor_to", "ceil_to", "nullif")


def valued_arguments(call: Call) -> tuple[Expression, ...]:
    """The arguments that the type of the result comes from: of a CASE its values and not its conditions."""
    if call.function == "case":
        return (*call.arguments[1::2], *(call.arguments[-1:] if len(call.arguments) % 2 else ()))
    return call.arguments[:1] if call.function in _OF_FIRST else call.arguments


def _unary(call: Call, type_: Type) -> Type:
    if call.function in ("floor", "ceil"):
        if type_.kind != "decimal":
            return INT
        precision, scale = _digits(type_)
        return Type("decimal", max(min(precision - scale + 1, _MAX_DIGITS), 1), 0)
    if call.function in ("floor_to", "ceil_to"):
        return _to_digits(call, type_)
    if call.function in ("round", "bround") and type_.kind == "decimal":
        return _rounded(call, type_)
    return type_


def _to_digits(call: Call, type_: Type) -> Type:
    """The decimal that CEIL and FLOOR with digits give: of an int as of decimal(20, 0), of a float as of (30, 15)."""
    precision, scale = (30, 15) if type_.kind == "float" else _digits(type_)
    digits = call.arguments[1]
    assert isinstance(digits, Literal), "the parser takes constants only"
    if digits.value < 0:
        return Type("decimal", min(max(precision - scale + 1, 1 - digits.value), _MAX_DIGITS), 0)
    kept = min(scale, digits.value)
    return Type("decimal", min(precision - scale + 1 + kept, _MAX_DIGITS), kept)


def _rounded(call: Call, type_: Type) -> Type:
    precision, scale = _digits(type_)
    digits = call.arguments[1] if len(call.arguments) == 2 else Literal(0)
    if isinstance(digits, Literal) and isinstance(digits.value, int):
        if digits.value >= scale:
            return type_
        kept = max(digits.value, 0)
        return Type("decimal", min(max(precision - scale + 1, 1 - digits.value) + kept, _MAX_DIGITS), kept)
    return _adjusted(precision + 1, scale)


def _binary(call: Call, left: Type, right: Type) -> Type:
    if "float" in (left.kind, right.kind):
        return FLOAT
    if left.kind == right.kind == "int":
        return FLOAT if call.function == "divide" else INT
    (precision, scale), (other_precision, other_scale) = (
        _digits(type_, argument) for type_, argument in zip((left, right), call.arguments, strict=True)
    )
    whole, other_whole, widest = precision - scale, other_precision - other_scale, max(scale, other_scale)
    match call.function:
        case "multiply":
            return _adjusted(precision + other_precision + 1, scale + other_scale)
        case "divide":
            quotient_scale = max(_LEAST_SCALE, scale + other_precision + 1)
            return _adjusted(whole + other_scale + quotient_scale, quotient_scale)
        case "modulo" | "pmod":
            return _adjusted(max(min(whole, other_whole) + widest, 1), widest)
    return _adjusted(max(whole, other_whole) + widest + 1, widest)


def _digits(type_: Type, argument: Expression | None = None) -> tuple[int, int]:
    """Precision and scale of a number among decimals; an integer constant has only the digits that it needs."""
    if type_.kind == "decimal":
        assert type_.precision is not None
        assert type_.scale is not None
        return type_.precision, type_.scale
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return len(str(abs(argument.value))), 0
    return _INT_DIGITS, 0


def _among_decimals(type_: Type | None, argument: Expression) -> Type | None:
    return type_ if type_ is None or type_.kind != "int" else Type("decimal", *_digits(type_, argument))


def _adjusted(precision: int, scale: int) -> Type:
    """Spark's way out when a result would need more than 38 digits: fewer after the point, but six if it had them."""
    if precision <= _MAX_DIGITS:
        return Type("decimal", precision, scale)
    kept = max(_MAX_DIGITS - (precision - scale), min(scale, _LEAST_SCALE))
    return Type("decimal", _MAX_DIGITS, kept)


def _branches(left: Type | None, right: Type | None, call: Call) -> Type | None:
    """The type of a value that comes from either of two branches."""
    if left is None or right is None or left == right:
        return left or right
    if {left.kind, right.kind} == {"float", "decimal"}:
        return FLOAT
    if left.is_numeric and right.is_numeric and "float" not in (left.kind, right.kind):
        return _adjusted(*_wider(left, right))
    try:
        return common_type((left, right))
    except SchemaError:
        raise SchemaError(f"{call} has values of type {left} and {right}; CAST one of them") from None


def _wider(left: Type, right: Type) -> tuple[int, int]:
    (precision, scale), (other_precision, other_scale) = _digits(left), _digits(right)
    kept = max(scale, other_scale)
    return max(precision - scale, other_precision - other_scale) + kept, kept


def common_type(types: Iterable[Type | None]) -> Type | None:
    """The type that values of the given ones are compared in, as Spark does it; None if none is known.

    It holds the values of all of them exactly, but for integers and decimals among floats.

    >>> str(common_type([Type("int"), Type("decimal", 10, 2)])), str(common_type([Type("date"), Type("timestamp")]))
    ('decimal(22,2)', 'timestamp')
    """
    return reduce(_common, (type_ for type_ in types if type_ is not None), None)


def _common(left: Type | None, right: Type) -> Type:
    if left is None or left == right:
        return right
    kinds = {left.kind, right.kind}
    if kinds in ({"int", "float"}, {"decimal", "float"}):
        return FLOAT
    if kinds == {"date", "timestamp"}:
        return _TIMESTAMP
    if kinds in ({"int", "decimal"}, {"decimal"}):
        precision, scale = _wider(left, right)
        if precision <= _MAX_DIGITS:
            return Type("decimal", precision, scale)
        raise SchemaError(f"{left} and {right} do not join: no decimal of {_MAX_DIGITS} digits holds both; CAST one")
    raise SchemaError(f"{left} and {right} do not join: they have no type in common; CAST one of them")


def variable_types(query: Query) -> dict[str, Type]:
    """The type of each of the query's variables, common to all the columns that it stands for.

    Both ends of a closure's edges have one type, since paths go through both. A variable that is nothing but the
    constant NULL is an int. Raises `SchemaError` if a column that the query uses has no declared type.
    """
    found: dict[str, list[Type | None]] = {variable: [] for variable in query.variables}
    for atom in query.atoms:
        types = _atom_types(atom, query.table(atom.relation))
        for term, type_ in zip(atom.terms, types, strict=True):
            if isinstance(term, str):
                found[term].append(type_)
    return {variable: _joined(variable, types, query) for variable, types in found.items()}


def _joined(variable: str, types: list[Type | None], query: Query) -> Type:
    try:
        return common_type(types) or INT
    except SchemaError as error:
        raise SchemaError(f"variable {variable} of {query.name}: {error}") from None


def _atom_types(atom: Atom, table: Table) -> list[Type | None]:
    for column in (table.column(name) for expression in atom.columns for name in columns_of(expression)):
        if column is not None and column.type is None:
            raise SchemaError(f"column {column.name} of table {table.name} has no type; declare one")
    types = [type_of(expression, table) for expression in atom.columns]
    return [end_type(types, table.name)] * len(types) if atom.closure else types


def end_type(types: Iterable[Type | None], edges: str) -> Type | None:
    """The type of both ends of a closure's paths, which go through both columns: it holds the nodes of both exactly."""
    first, last = types
    found = common_type((first, last))
    if first is not None and last is not None and first != last and found == FLOAT:
        raise SchemaError(
            f"the two columns of {edges} hold no nodes in common: one is {first}, the other {last}, and floats do not "
            "hold every integer or decimal; give both one type"
        )
    return found


def head_types(query: Query) -> tuple[Type, ...]:
    """The types of the columns of the view's rows, in order."""
    variables = variable_types(query)
    return tuple(
        variables[column.source] if isinstance(column.source, str) else aggregate_type(column.source, variables, query)
        for column in query.head
    )


def aggregate_type(aggregate: Aggregate, variables: dict[str, Type], query: Query | None = None) -> Type:
    """The type of an aggregate over a variable; `query` is needed where that is a variable of keys."""
    if aggregate.variable is None:
        return INT
    type_, function = argument_type(aggregate, variables), aggregate.definition
    if is_keyed(aggregate) and query is not None:
        type_ = _last_part_type(aggregate.variable, query) or INT
    if function.takes and type_.kind not in function.takes:
        wanted = "a number" if "float" in function.takes else function.takes[0]
        raise SchemaError(f"{aggregate} is over a variable of type {type_}; CAST it to {wanted}")
    found = function.type(type_)
    if found is None:
        raise SchemaError(f"{aggregate} is over a variable of type {type_}, which is too wide; CAST it to DOUBLE")
    return found


def argument_type(aggregate: Aggregate, variables: Mapping[str, Type]) -> Type:
    """The type of what an aggregate is over: of a variable, or of the product of two."""
    assert aggregate.variable is not None
    type_ = variables[aggregate.variable]
    if aggregate.partner is None or not is_joint(aggregate):
        return type_
    return product_type(type_, variables[aggregate.partner])


def product_type(one: Type, other: Type) -> Type:
    """The type of a product of numbers."""
    return _binary(Call("multiply", (Literal(None), Literal(None))), one, other)


def _last_part_type(variable: str, query: Query) -> Type | None:
    """The type of the last part of the keys (`order_key`) that a variable stands for."""
    for atom in query.atoms:
        if variable in atom.terms:
            key = atom.columns[atom.terms.index(variable)]
            assert isinstance(key, Call)
            return type_of(key.arguments[-1], query.table(atom.relation))
    raise SchemaError(f"variable {variable} of {query.name} is in no atom")
