"""Feeds: which columns a relation's rows are given to the compiled kernel as, and how each load reads them.

Constants, repeated variables, NULLs and lifts are the kernel's work, by column. What needs an expression (a computed
column, a predicate) is evaluated before: it is a column of the feed.
"""

from __future__ import annotations

import struct
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ivme.engine.expression.feed_column import FeedColumn
from ivme.plan.ir.program import Lift, Source
from ivme.query.aggregates import JOINT
from ivme.query.expression import Call, Expression, columns_of

if TYPE_CHECKING:
    from ivme._kernel import Step


@dataclass(slots=True)
class Feed:
    """The columns that the loads of one relation ask for, in the order in which they first do."""

    row: tuple[str, ...]
    columns: list[FeedColumn] = field(default_factory=list)
    _places: dict[FeedColumn, int] = field(default_factory=dict, repr=False, compare=False)

    @property
    def read(self) -> set[str]:
        """The relation's columns that they are computed from."""
        return read_by(self.columns)

    def column(self, expression: Expression, form: str = "code", guard: Expression | None = None) -> int:
        wanted = FeedColumn(expression, form, guard if isinstance(expression, Call) else None)
        place = self._places.get(wanted)
        return self._append(wanted) if place is None else place

    def _append(self, *columns: FeedColumn) -> int:
        """Adds columns that have to follow each other; the place of the first."""
        first = len(self.columns)
        for place, column in enumerate(columns, first):
            self.columns.append(column)
            self._places.setdefault(column, place)
        return first

    def load(
        self,
        target: int,
        number: int,
        source: Source,
        slots: Sequence[str],
        needed: Container[str] | None = None,
    ) -> Step:
        """The kernel's load step of a source; `number` is that of the input.

        With `needed`, only those variables of its schema are loaded: a value that is only summed up needs no code.
        """
        atom = source.atom
        first = {variable: atom.terms.index(variable) for variable in atom.variables}
        kept = [v for v, name in zip(atom.variables, source.schema, strict=True) if needed is None or name in needed]
        used = {first[variable] for variable in kept} | {first[atom.variables[i]] for i in source.not_null}
        used |= {i for i, term in enumerate(atom.terms) if atom.terms.count(term) > 1}
        terms = {i: self.column(column, "code", atom.where) for i, column in enumerate(atom.columns) if i in used}
        repeats = [
            (terms[i], terms[first[t]]) for i, t in enumerate(atom.terms) if isinstance(t, str) and first[t] != i
        ]
        never_null = [terms[first[atom.variables[position]]] for position in source.not_null]
        constants = [] if atom.where is None else [(self.column(atom.where, "test"), 1)]
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
        if lift.function.startswith(JOINT):
            inner = replace(lift, function=lift.function.removeprefix(JOINT))
            kind, column = self._lift(inner, slot.removeprefix(JOINT), expressions, where)
            return (JOINT + kind, column)
        if lift.function == "one":
            return ("one", 0)
        expression = expressions[lift.column]
        guard = where if isinstance(expression, Call) else None
        if lift.function == "count":
            coded = FeedColumn(expression, "code", guard) in self._places
            return ("count", self.column(expression, "code" if coded else "known", guard))
        if lift.partner is not None:
            return ("float product", self._pair(expression, expressions[lift.partner], where))
        square = " square" if lift.function == "square" else ""
        if slot in ("i64", "i128", "i192"):
            return (f"int{square}", self.column(expression, "int", guard))
        if slot == "f64":
            return (f"float{square}", self.column(expression, "float", guard))
        if FeedColumn(expression, "low", guard) in self._places:
            return (f"wide{square}", self.column(expression, "low", guard))
        halves = FeedColumn(expression, "low", guard), FeedColumn(expression, "high", guard)
        return (f"wide{square}", self._append(*halves))

    def _pair(self, one: Expression, other: Expression, where: Expression | None) -> int:
        """The place of the first of two columns of floats that follow each other."""
        pair = [FeedColumn(each, "float", where if isinstance(each, Call) else None) for each in (one, other)]
        for place in range(len(self.columns) - 1):
            if self.columns[place : place + 2] == pair:
                return place
        return self._append(*pair)


def float_code(value: float) -> int:
    """The code of a float that keeps the order of floats; equal floats have one code."""
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def read_by(columns: Iterable[FeedColumn]) -> set[str]:
    """A relation's columns that some are computed from."""
    expressions = [e for column in columns for e in (column.expression, column.guard) if e is not None]
    return {name for expression in expressions for name in columns_of(expression)}
