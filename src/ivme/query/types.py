"""Column types: each column knows its type, and results come back in it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ivme.errors import SchemaError, shown

NESTED = ("array", "struct")
KINDS = ("int", "float", "decimal", "string", "bool", "date", "timestamp", "binary", *NESTED)
"""The kinds of values."""

_MOST_CHARACTERS = 100
"""The longest name of a type; reading it takes time that grows with the square of its blanks."""

_MOST_NESTED = 10_000
"""The longest name of a type of arrays or structs."""

_DEEPEST = 16
"""How deeply arrays and structs may nest."""

_TYPE = re.compile(
    r"([A-Za-z_]+(?:\s+with(?:out)?\s+time\s+zone)?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", re.IGNORECASE
)

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_NESTED_NAME = re.compile(r"(array|list|struct|row|map)\b", re.IGNORECASE)
_FIELD = re.compile(r"\s*(`(?:[^`]|``)+`|\w+)\s*(?::|\s)\s*")
_NOT_NULL = re.compile(r"\s+NOT\s+NULL$", re.IGNORECASE)

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
    **dict.fromkeys(("timestamp_ntz", "timestamp_ltz", "timestamptz", "timestampntz", "timestampltz"), "timestamp"),
    **dict.fromkeys(("timestamp with time zone", "timestamp without time zone"), "timestamp"),
}


@dataclass(frozen=True, slots=True)
class Type:
    """A column's type; decimals have `precision` and `scale`, arrays an `element`, structs `fields`."""

    kind: str
    precision: int | None = None
    scale: int | None = None
    element: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SchemaError(f"unknown type {shown(self.kind)}; use one of {', '.join(KINDS)}")
        if self.kind == "decimal":
            precision, scale = self.precision, self.scale
            if precision is None or scale is None or not (1 <= precision <= 38 and 0 <= scale <= precision):
                raise SchemaError("a decimal needs a precision from 1 to 38 and a scale up to it: decimal(10, 2)")
        if (self.kind == "array") != (self.element is not None):
            raise SchemaError("an array needs the type of its elements: array<int>")
        if (self.kind == "struct") != bool(self.fields):
            raise SchemaError("a struct needs the names and types of its fields: struct<a int, b string>")
        names = [name.lower() for name, _ in self.fields]
        if len(set(names)) < len(names):
            raise SchemaError(f"two fields of {self} have the same name; rename one")

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("int", "float", "decimal")

    @property
    def name(self) -> str:
        """What kind of values it has: arrays and structs are of a kind if their types are equal."""
        return str(self) if self.is_nested else self.kind

    @property
    def is_nested(self) -> bool:
        """Whether values are arrays or structs."""
        return self.kind in NESTED

    def __str__(self) -> str:
        if self.element is not None:
            return f"array<{self.element}>"
        if self.fields:
            return f"struct<{', '.join(f'{_quoted(name)} {type_}' for name, type_ in self.fields)}>"
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind


def is_nested_kind(name: str | None) -> bool:
    """Whether a `Type.name` is that of arrays or structs."""
    return name is not None and name.startswith(NESTED)


def _quoted(name: str) -> str:
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def parse_type(written: str | type | Type) -> Type:
    """The type that a text names, with SQL's usual synonyms, or a class of Python such as `int`.

    >>> str(parse_type("BIGINT")), str(parse_type("decimal(12, 2)")), str(parse_type("varchar(10)"))
    ('int', 'decimal(12,2)', 'string')
    >>> str(parse_type("STRUCT<tags: ARRAY<VARCHAR(9)>, n: INT[]>"))
    'struct<tags array<string>, n array<int>>'
    >>> str(parse_type(str))
    'string'
    """
    if isinstance(written, Type):
        return written
    if isinstance(written, type) and _SYNONYMS.get(written.__name__, written.__name__) in _OF_PYTHON:
        return Type(_SYNONYMS.get(written.__name__, written.__name__))
    if not isinstance(written, str):
        name = written.__name__ if isinstance(written, type) else shown(written)
        raise SchemaError(f"a type is a string such as 'int' or 'decimal(10, 2)'; {name} is not a type")
    return _parsed(written, 0)


_OF_PYTHON = ("int", "float", "string", "bool", "date", "timestamp", "binary")
"""The kinds that a class of Python names; a decimal needs its digits."""


def _parsed(text: str, depth: int) -> Type:
    text = text.strip()
    if len(text) <= _MOST_NESTED and (text.endswith((">", "]")) or _NESTED_NAME.match(text)):
        if depth > _DEEPEST:
            raise SchemaError(f"a type nests deeper than {_DEEPEST}; store parts of it as separate columns")
        return _nested(text, depth)
    match = _TYPE.fullmatch(text) if len(text) <= _MOST_CHARACTERS else None
    if match is None:
        raise SchemaError(f"cannot read the type {shown(text)}; use one of {', '.join(KINDS)}")
    name, precision, scale = " ".join(match.group(1).lower().split()), match.group(2), match.group(3)
    kind = _SYNONYMS.get(name, name)
    if kind == "decimal":
        return Type("decimal", int(precision or 38), int(scale or 0))
    return Type(kind)


def _nested(text: str, depth: int) -> Type:
    """The type of arrays or structs that a text names."""
    if text.endswith("[]"):
        return Type("array", element=_parsed(text[:-2], depth + 1))
    match = _NESTED_NAME.match(text)
    name = match.group(1).lower() if match is not None else ""
    if name == "map":
        instead = "store its entries as rows of a separate table, with the key and the value as columns"
        raise SchemaError(f"columns of type MAP are not supported; {instead}")
    inside = text[match.end() :].strip() if match is not None else ""
    if inside[:1] + inside[-1:] not in ("<>", "()") or len(inside) < 2:
        raise SchemaError(f"cannot read the type {shown(text)}; write array<int> or struct<a int, b string>")
    parts = _split(inside[1:-1])
    if name in ("array", "list"):
        if len(parts) != 1:
            raise SchemaError(f"cannot read the type {shown(text)}; an array has one type of elements: array<int>")
        return Type("array", element=_parsed(parts[0], depth + 1))
    return Type("struct", fields=tuple(_field(part, depth) for part in parts))


def _field(text: str, depth: int) -> tuple[str, Type]:
    match = _FIELD.match(text)
    if match is None:
        raise SchemaError(f"cannot read the field {shown(text)} of a struct; write struct<a int, b string>")
    name = match.group(1)
    kind = _NOT_NULL.sub("", text[match.end() :].strip())
    return name[1:-1].replace("``", "`") if name.startswith("`") else name, _parsed(kind, depth + 1)


def _split(text: str) -> list[str]:
    """The parts of a text that commas outside of brackets and quotes separate."""
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == "`"
        depth += 0 if quoted else (character in "<(") - (character in ">)")
        if character == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts
