"""An incremental evaluation system (source 004, section 6): tables, and programs in SQL that keep an answer fresh.

An IES has input tables, an answer, auxiliary tables, and for each input two maintenance programs, one for the
insertion and one for the deletion of a row. A program sees the input as it was before the change, and the row as
parameters. Whatever runs it (`executor.py`) then changes the input. Inputs are bags of which only a first insert and a
last delete matter, so a program never sees an insert of a row that is there or a delete of one that is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ivme.closure.program_text import Statement, read_program
from ivme.errors import SchemaError
from ivme.query.names import check_name
from ivme.query.types import Type, parse_type

Row = tuple[Any, ...]
Programs = str | Mapping[str, str]
"""A program's text; one for each input if there are several."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of an IES; with `query` it is a view of the others, as the source's TC is one of THROUGH."""

    name: str
    columns: tuple[tuple[str, Type], ...]
    query: str | None = None

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A change is refused if a table has more than `most` rows when a program has made it.

    `message` gets the changed rows and all rows of the input as it was.
    """

    table: str
    most: int
    message: Callable[[list[Row], list[Row]], str]


@dataclass(frozen=True, slots=True)
class IES:
    """Inputs, answer and auxiliary tables, and the programs of each input, by its name.

    `on_insert_many` and `on_delete_many` take a set of rows at once, in the table `changes`. `on_start` runs once, over
    empty inputs, for an answer that is not empty over nothing.
    """

    name: str
    inputs: tuple[Relation, ...]
    answer: Relation
    auxiliary: tuple[Relation, ...]
    on_insert: Mapping[str, tuple[Statement, ...]]
    on_delete: Mapping[str, tuple[Statement, ...]]
    on_insert_many: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)
    on_delete_many: Mapping[str, tuple[Statement, ...]] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    on_start: tuple[Statement, ...] = ()

    def __post_init__(self) -> None:
        names = [relation.name for relation in (*self.inputs, self.answer, *self.auxiliary)]
        for name in names:
            if names.count(name) > 1:
                raise SchemaError(f"IES {self.name} has two tables named {name}")
        inputs = {relation.name for relation in self.inputs}
        for programs in (self.on_insert, self.on_delete):
            if set(programs) != inputs:
                raise SchemaError(
                    f"IES {self.name} needs a program on_insert and one on_delete for each of its inputs "
                    f"({', '.join(sorted(inputs))}), and for nothing else"
                )
            for relation in self.inputs:
                self._check(relation, programs[relation.name])

    def _check(self, relation: Relation, program: tuple[Statement, ...]) -> None:
        """A program changes what it may change, and asks for columns that the changed row has."""
        known = {each.name for each in self.auxiliary}
        known |= {self.answer.name} if self.answer.query is None else set()
        for statement in program:
            if statement.kind == "temp":
                known = known | {statement.target}
            elif statement.kind in ("insert", "delete") and statement.target not in known:
                raise SchemaError(
                    f"a program of IES {self.name} changes {statement.target}; it may change the answer, auxiliary "
                    "tables and what it made itself"
                )
            for name, _ in statement.parameters:
                if name not in relation.column_names:
                    listed = ", ".join(relation.column_names)
                    raise SchemaError(
                        f"a program of IES {self.name} uses :{name}; a row of {relation.name} has {listed}"
                    )


def make_ies(
    name: str,
    inputs: Mapping[str, Mapping[str, str | Type]],
    answer: Relation,
    auxiliary: Mapping[str, Mapping[str, str | Type]],
    on_insert: Programs,
    on_delete: Programs,
    *,
    on_start: str = "",
    **more: Any,
) -> IES:
    """An IES from plain Python values; `more` are further fields of `IES`."""
    made = tuple(relation(table, columns) for table, columns in inputs.items())
    only = made[0].name if len(made) == 1 else None
    return IES(
        name,
        made,
        answer,
        tuple(relation(table, columns) for table, columns in auxiliary.items()),
        _read(name, on_insert, only),
        _read(name, on_delete, only),
        on_start=read_program(on_start),
        **more,
    )


def relation(name: str, columns: Mapping[str, str | Type], query: str | None = None) -> Relation:
    """A table from the names and types of its columns."""
    for each in (name, *columns):
        check_name(each, "a table of an IES, or one of its columns,")
    if not name.isidentifier() or not columns or not all(column.isidentifier() for column in columns):
        raise SchemaError(f"table {name!r} of an IES needs a plain name, and columns with plain names and types")
    typed = ((column, parse_type(kind)) for column, kind in columns.items())
    made = Relation(name.lower(), tuple(typed), query)
    nested = next((column for column, kind in made.columns if kind.is_nested), None)
    if nested is not None:
        raise SchemaError(
            f"column {nested} of table {name} of an IES is an array or struct; store its parts as columns"
        )
    return made


def _read(name: str, programs: Programs, only: str | None) -> dict[str, tuple[Statement, ...]]:
    if isinstance(programs, str):
        if only is None:
            raise SchemaError(f"IES {name} has several inputs: give a program for each, by its name")
        return {only: read_program(programs)}
    return {table.lower(): read_program(text) for table, text in programs.items()}
