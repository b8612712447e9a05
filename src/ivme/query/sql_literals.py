"""Constants as they are written: numbers, bytes, and texts side by side."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from ivme.query.expression import Literal
from ivme.query.sql_text import SqlText


def read_number(source: SqlText, node: exp.Literal, sign: str = "") -> Literal:
    """1 is an integer, 1.5 a decimal and 1e3 a float, as in Spark; an integer beyond 64 bits is a decimal."""
    text = sign + node.this
    if text.lstrip("-").isdigit() and len(text) <= 38:
        value = int(text)
        return Literal(value if -(2**63) <= value < 2**63 else Decimal(value))
    try:
        number = float(text) if "e" in text.lower() else Decimal(text)
    except ArithmeticError:
        number = math.nan
    if not math.isfinite(number) or (isinstance(number, Decimal) and len(number.as_tuple().digits) > 38):
        raise source.unsupported("the number is out of range", node, "use at most 38 digits")
    return Literal(number)


def read_bytes(source: SqlText, node: exp.Expr) -> Literal:
    """X'1F2B'; an odd number of digits has a 0 in front, as in Spark."""
    digits = str(node.this)
    try:
        return Literal(bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}"))
    except ValueError:
        raise source.unsupported("this is not a text of bytes", node, "write X'1F2B'") from None


def side_by_side(source: SqlText, node: exp.Expr) -> str:
    """Literals side by side as one; touching ones have the quote between them, which was doubled."""
    start = source.at(node)
    tokens = [token for token in source.tokens if start is not None and token.start >= start]
    value = str(node.expressions[0].this)
    for part, (before, after) in zip(node.expressions[1:], pairwise(tokens), strict=False):
        value += (source.text[after.start] if before.end + 1 == after.start else "") + part.this
    return value
