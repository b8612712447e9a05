"""What a state was made with, and what becomes of its tables when the file declares them otherwise.

A declaration is a text that the journal holds. Columns may be added after the others, and types may become wider, so
that every old value is one of the new type; anything else is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivme.errors import IvmeError
from ivme.query.model import Column, Table
from ivme.query.types import Type, parse_type

_INT_DIGITS = 19


@dataclass(frozen=True, slots=True)
class TableEdit:
    """How a table differs from the one in the state; `refused` says why that cannot be done."""

    added: tuple[Column, ...] = ()
    widened: tuple[tuple[Column, Column], ...] = ()
    refused: str = ""

    def __bool__(self) -> bool:
        return bool(self.added or self.widened or self.refused)


def declaration(table: Table) -> str:
    """A table as a text: its columns, key and promises."""
    columns = ", ".join(f"{column.name} {column.type}" for column in table.columns)
    key = f" primary key ({', '.join(table.primary_key)})" if table.primary_key else ""
    promised = f"{' append-only' * table.append_only}{' static' * table.static}"
    further = [f" unique ({', '.join(each)})" for each in table.unique]
    further += [f" not null ({', '.join(table.not_null)})"] if table.not_null else []
    return f"({columns}){key}{promised}{''.join(further)}{''.join(f' {each}' for each in table.references)}"


def declared_columns(text: str) -> tuple[tuple[Column, ...], str]:
    """The columns of a declaration, and the rest of it.

    >>> declared_columns("(a int, b decimal(10,2)) primary key (a)")[1]
    ' primary key (a)'
    """
    parts, depth, start = [], 0, 1
    for place, letter in enumerate(text):
        depth += (letter in "(<") - (letter in ")>")
        if depth == 0 or (depth == 1 and letter == ","):
            parts.append(text[start:place])
            start = place + 1
        if depth == 0:
            columns = (part.strip().partition(" ") for part in parts)
            return tuple(Column(name, parse_type(kind)) for name, _, kind in columns), text[start:]
    raise IvmeError(f"{text} is not a declaration of a table")


def edit_of(noted: str, table: Table) -> TableEdit:
    """What to do with the table that a declaration describes so that it is as the file has it."""
    said = declaration(table)
    if noted == said:
        return TableEdit()
    try:
        old, rest = declared_columns(noted)
        _, new_rest = declared_columns(said)
    except IvmeError:
        return TableEdit(refused="it is declared differently")
    if rest != new_rest:
        return TableEdit(refused="its key or promises differ")
    names = [column.name for column in old]
    if names != list(table.column_names[: len(names)]):
        return TableEdit(refused="columns may only be added after the others")
    pairs = [(before, after) for before, after in zip(old, table.columns, strict=False) if before.type != after.type]
    for before, after in pairs:
        if not _is_wider(before.type, after.type):
            reason = f"not every {before.type} of column {before.name} is a {after.type}"
            return TableEdit(refused=reason)
    return TableEdit(table.columns[len(names) :], tuple(pairs))


def _is_wider(old: Type | None, new: Type | None) -> bool:
    """Whether every value of a type is one of another type, exactly."""
    if old is None or new is None:
        return False
    if old.kind == "date" and new.kind == "timestamp":
        return True
    if new.kind != "decimal" or old.kind not in ("int", "decimal"):
        return False
    scale, digits = new.scale or 0, (new.precision or 0) - (new.scale or 0)
    if old.kind == "int":
        return digits >= _INT_DIGITS
    return scale >= (old.scale or 0) and digits >= (old.precision or 0) - (old.scale or 0)
