"""Feeds: which columns a relation's rows are given to the compiled kernel as, and how each load reads them.

Constants, repeated variables, NULLs and lifts are the kernel's work, by column. What needs an expression (a computed
column, a predicate) is evaluated before: it is a column of the feed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.dictionary import NULL_CODE as NULL
from ivme.engine.codes.python_values import FIRST_INTEGER, LAST_INTEGER, ValueCodes
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.row_expression import Row, getter
from ivme.errors import IvmeError
from ivme.plan.ir.program import Lift, Source
from ivme.query.expression import Call, ColumnRef, Expression

if TYPE_CHECKING:
    from ivme._kernel import Step


@dataclass(slots=True)
class Feed:
    """The columns that the loads of one relation ask for, in the order in which they first do."""

    row: tuple[str, ...]
    columns: list[FeedColumn] = field(default_factory=list)

    def column(self, expression: Expression, form: str = "code", guard: Expression | None = None) -> int:
        wanted = FeedColumn(expression, form, guard if isinstance(expression, Call) else None)
        if wanted not in self.columns:
            self.columns.append(wanted)
        return self.columns.index(wanted)

    def load(
        self,
        target: int,
        number: int,
        source: Source,
        slots: Sequence[str],
        codes: ValueCodes | None,
        needed: Container[str] | None = None,
    ) -> Step:
        """The kernel's load step of a source; `number` is that of the input.

        With `needed`, only those variables of its schema are loaded: a value that is only summed up needs no code.
        """
        atom = source.atom
        first = {variable: atom.terms.index(variable) for variable in atom.variables}
        kept = [v for v, name in zip(atom.variables, source.schema, strict=True) if needed is None or name in needed]
        used = {first[variable] for variable in kept} | {first[atom.variables[i]] for i in source.not_null}
        used |= {i for i, term in enumerate(atom.terms) if not isinstance(term, str) or atom.terms.count(term) > 1}
        terms = {i: self.column(column, "code", atom.where) for i, column in enumerate(atom.columns) if i in used}
        repeats = [
            (terms[i], terms[first[t]]) for i, t in enumerate(atom.terms) if isinstance(t, str) and first[t] != i
        ]
        constants = []
        for i, term in enumerate(atom.terms):
            if not isinstance(term, str):
                assert codes is not None
                constants.append((terms[i], codes.encode(term.value)))
        never_null = [terms[first[atom.variables[position]]] for position in source.not_null]
        never_null += [column for column, _ in constants]
        if atom.where is not None:
            constants.append((self.column(atom.where, "test"), 1))
        columns = [terms[first[variable]] for variable in kept]
        expressions = [atom.columns[first[variable]] for variable in atom.variables]
        lifts = [
            self._lift(lift, slot, expressions, atom.where)
            for lift, slot in zip(source.lifts, slots, strict=bool(source.lifts))
        ]
        return ("load", target, number, columns, constants, repeats, never_null, lifts)

    def _lift(
        self, lift: Lift | None, slot: str, expressions: Sequence[Expression], where: Expression | None
    ) -> tuple[str, int]:
        if lift is None:
            return ("none", 0)
        expression = expressions[lift.column]
        guard = where if isinstance(expression, Call) else None
        if lift.function == "count":
            coded = FeedColumn(expression, "code", guard) in self.columns
            return ("count", self.column(expression, "code" if coded else "known", guard))
        square = " square" if lift.function == "square" else ""
        if slot in ("i64", "i128", "i192"):
            return (f"int{square}", self.column(expression, "int", guard))
        if slot == "f64":
            return (f"float{square}", self.column(expression, "float", guard))
        if FeedColumn(expression, "low", guard) in self.columns:
            return (f"wide{square}", self.column(expression, "low", guard))
        self.columns += [FeedColumn(expression, "low", guard), FeedColumn(expression, "high", guard)]
        return (f"wide{square}", len(self.columns) - 2)

    def encoder(self, codes: ValueCodes) -> Callable[[Row], tuple[int, ...]]:
        """A function from a row of Python values to the codes of the feed's columns."""
        getters = [(getter(column.expression, self.row, column.guard), _FORMS[column.form]) for column in self.columns]

        def encode(row: Row) -> tuple[int, ...]:
            return tuple(form(get(row), codes) for get, form in getters)

        def encode_integers(row: Row) -> tuple[int, ...]:
            """Rows of integers are their own codes, which is what short paths live on."""
            for value in row:
                if type(value) is not int or not FIRST_INTEGER <= value <= LAST_INTEGER:
                    return encode(row)
            return row

        return encode_integers if self._is_the_row() else encode

    def _is_the_row(self) -> bool:
        """Whether the feed's columns are those of the row, in its order, as plain codes."""
        names = [c.expression.name.lower() if isinstance(c.expression, ColumnRef) else None for c in self.columns]
        plain = all(column.form in ("code", "int") for column in self.columns)
        return plain and names == [name.lower() for name in self.row]


def float_code(value: float) -> int:
    """The code of a float that keeps the order of floats; equal floats have one code."""
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def _integer(value: Any, codes: ValueCodes) -> int:
    code = codes.encode(value)
    if code < FIRST_INTEGER and code != NULL:
        raise IvmeError(f"{value!r} cannot be summed as a 64-bit integer; give the sum a wider slot")
    return code


def _word(value: Any, shift: int) -> int:
    word = (0 if value is None else int(value)) >> shift & (2**64 - 1)
    return word - 2**64 if word >= 2**63 else word


_FORMS: dict[str, Callable[[Any, ValueCodes], int]] = {
    "code": lambda value, codes: codes.encode(value),
    "test": lambda value, _: int(value is True),
    "known": lambda value, _: NULL if value is None else 0,
    "int": _integer,
    "float": lambda value, _: NULL if value is None else float_code(float(value)),
    "low": lambda value, _: _word(value, 0),
    "high": lambda value, _: _word(value, 64),
}
