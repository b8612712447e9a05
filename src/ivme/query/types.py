"""Column types (DESIGN section 5): each column knows its type, and results come back in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ivme.errors import SchemaError, shown

KINDS = ("int", "float", "decimal", "string", "bool", "date", "timestamp", "binary")
"""The eight kinds of values."""

_MOST_CHARACTERS = 100
"""The longest name of a type; reading it takes time that grows with the square of its blanks."""

_TYPE = re.compile(r"([A-Za-z]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")

_SYNONYMS = {
    "integer": "int",
    "bigint": "int",
    "long": "int",
    "smallint": "int",
    "tinyint": "int",
    "double": "float",
    "real": "float",
    "numeric": "decimal",
    "text": "string",
    "varchar": "string",
    "char": "string",
    "str": "string",
    "boolean": "bool",
    "datetime": "timestamp",
    "bytes": "binary",
}


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type; `precision` and `scale` are set for decimals only."""

    kind: str
    precision: int | None = None
    scale: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"unknown type {shown(self.kind)}; use one of {', '.join(KINDS)}")
        if self.kind == "decimal":
            precision, scale = self.precision, self.scale
            if precision is None or scale is None or not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise SchemaError("a decimal needs a precision from 1 to 38 and a scale up to it: decimal(10, 2)")

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("int", "float", "decimal")

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind


def parse_type(text: str) -> Type:
    """The type that `text` names, with SQL's usual synonyms.

    >>> str(parse_type("BIGINT")), str(parse_type("decimal(12, 2)")), str(parse_type("varchar(10)"))
    ('int', 'decimal(12,2)', 'string')
    """
    match = _TYPE.fullmatch(text.strip()) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        raise SchemaError(f"cannot read the type {shown(text)}; use one of {', '.join(KINDS)}")
    name, precision, scale = match.group(1).lower(), match.group(2), match.group(3)
    kind = _SYNONYMS.get(name, name)
    if kind == "decimal":
        return Type("decimal", int(precision or 38), int(scale or 0))
    return Type(kind)
