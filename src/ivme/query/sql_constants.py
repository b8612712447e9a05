"""What is wrong with the constants of an expression: what fails for every row is refused before there are any.

Looked at are the parts that every row gets to, and every side of an AND. What a CASE, a COALESCE or the left side of an
OR guards is left to the rows: it may never be computed.
"""

from __future__ import annotations

from collections.abc import Callable

from ivme.errors import ExpressionError
from ivme.query.expression import Call, Expression, Literal, columns_of, evaluate
from ivme.query.functions import COMPARISONS
from ivme.query.sql_kinds import kind_of
from ivme.query.sql_values import to_date, to_timestamp

ColumnKind = Callable[[str], str | None]


def failing_constant(expression: Expression, column_kind: ColumnKind) -> str | None:
    """What fails whatever the row is; None if nothing does.

    >>> from ivme.query.expression import ColumnRef
    >>> failing_constant(Call("modulo", (ColumnRef("n"), Literal(0))), lambda _: "int")
    'n % 0 fails: division by zero'
    """
    if not isinstance(expression, Call):
        return None
    for argument in _always(expression):
        inner = failing_constant(argument, column_kind)
        if inner is not None:
            return inner
    try:
        if next(columns_of(expression), None) is None:
            evaluate(expression, {})
        elif expression.function in ("divide", "modulo", "pmod", "div"):
            _check_divisor(expression)
        elif expression.definition.check is not None:
            _check_constants(expression)
        elif expression.function in COMPARISONS:
            _check_dates(expression, column_kind)
    except ExpressionError as error:
        return str(error)
    except ValueError as error:
        return f"{expression} fails: {error}"
    return None


def _always(call: Call) -> tuple[Expression, ...]:
    """The arguments that are computed whatever the others are, or that the whole needs to be true."""
    return call.arguments[:1] if call.function in ("or", "case", "coalesce") else call.arguments


def _check_divisor(call: Call) -> None:
    divisor = call.arguments[1]
    if next(columns_of(divisor), None) is None and evaluate(divisor, {}) == 0:
        raise ValueError("division by zero")


def _check_constants(call: Call) -> None:
    """A pattern, a unit, ... that no row has a value with; the function itself knows which they are."""
    function = call.definition
    assert function.check is not None
    found = [call.arguments[place] for place in function.checked if place < len(call.arguments)]
    constants = [argument.value for argument in found if isinstance(argument, Literal)]
    if constants and len(constants) == len(found) and None not in constants:
        function.check(*constants)


def _check_dates(call: Call, column_kind: ColumnKind) -> None:
    """A text that a date or a timestamp is compared with must be one."""
    kinds = {kind_of(argument, column_kind) for argument in call.arguments}
    texts = [a.value for a in call.arguments if isinstance(a, Literal) and isinstance(a.value, str)]
    for text in texts if kinds & {"date", "timestamp"} else ():
        (to_date if "date" in kinds else to_timestamp)(text)
