"""Pieces of Spark SQL: names, texts, and what is said of a value that does not fit its column."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

CORRUPT = "ivme_corrupt"
"""The column in which Spark's readers put the text of what is not a row."""

MORE_DIGITS = "has more digits after the point than"
"""What is said of a number that Spark would round."""

_LONGEST = 80
_NAMES = {"bigint": "int", "timestamp_ntz": "timestamp", "double": "float", "boolean": "bool"}


def quoted(name: str) -> str:
    """A name as Spark SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""A text as Spark SQL has it.

    >>> print(literal("it's \\ odd"))
    'it\'s \\ odd'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def type_name(kind: DataType) -> str:
    """A type of Spark's by our name, as messages have it."""
    told = kind.simpleString()
    return _NAMES.get(told, told)


def shown(value: str) -> str:
    """A value in a message, in quotes; a long one is cut."""
    text = f"CAST({value} AS string)"
    cut = f"CASE WHEN length({text}) > {_LONGEST} THEN concat(left({text}, {_LONGEST}), '...') ELSE {text} END"
    return f'concat("\'", {cut}, "\'")'


def misfit(column: str, value: str, type_: str, what: str = "is not of type") -> str:
    """The text that says which value of which column is not of a type."""
    return f"concat({literal(f'column {column}: ')}, {shown(value)}, {literal(f' {what} {type_}')})"


def is_plain_number(text: str, scale: int) -> str:
    """Whether a text is digits with a point at most, and zeros behind the digits of a scale."""
    return f"{text} RLIKE '^ *[+-]?[0-9]*([.][0-9]{{0,{scale}}}0*)? *$'"


def has_more_digits(text: str, precision: int, scale: int) -> str:
    """Whether a number that is written as a text has more digits after the point than a scale; zeros do not count.

    One with an exponent is compared with what the cast makes of it, by the 38 digits that a decimal has.
    """
    wide = f"try_cast({text} AS decimal(38, {38 - (precision - scale)}))"
    cast = f"try_cast({text} AS decimal({precision}, {scale}))"
    lost = f"({wide} <> {cast} OR ({cast} = 0 AND {text} RLIKE '[1-9].*[eE]'))"
    return f"(NOT {is_plain_number(text, scale)} AND (NOT contains(lower({text}), 'e') OR {lost}))"
