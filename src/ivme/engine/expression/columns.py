"""Columns of a feed that are expressions, computed from the codes of a relation's rows by the kernel.

Rows go in and come out as codes, a batch or a single row alike. Three things make the kernel turn back: a code that a
memo does not have yet, a foreign column that is not computed yet for a row that gets to it, and a doubtful row. The
first two are filled in, and it runs again; the last is left to `evaluate`, which has its value or knows why there is
none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ivme import _kernel
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.dictionary import Codes
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.by_code import Elsewhere, States, code_memo
from ivme.engine.expression.compile import Compiler
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.graph import REAL, WIDE, WORD, FlatProgram, Node
from ivme.engine.expression.numbers import Value
from ivme.engine.expression.rows import CodedRows, Failure, Row, RowColumns, as_it_is
from ivme.query.model import Table

_SUFFIXES = {WORD: "word", WIDE: "wide", REAL: "real"}


class KernelColumns:
    """Compiled columns over the rows of one table; make it once, whenever what is wanted changes."""

    def __init__(self, table: Table, columns: Sequence[FeedColumn], domains: Domains) -> None:
        compiler = Compiler(table, domains)
        outputs = [_output(compiler, column, number) for number, column in enumerate(columns)]
        flat = compiler.graph.flat(outputs)
        self._count = len(columns)
        self._memos = domains.memos
        self._tables = [code_memo(*compiler.by_code[number], table, domains) for number in flat.tables]
        self._foreign = [Elsewhere(compiler.foreign[number], table, domains) for number in flat.foreign]
        read = {register for _, _, a, b, _, _ in flat.instructions for register in (a, b)}
        read.update(position for elsewhere in self._foreign for position in elsewhere.positions)
        self._read = [position in read for position in range(len(table.columns))]
        self._domains = [domains.domain(declared_type(table, column)) for column in table.columns]
        self._encoders = [(register, domains.domain(t), value) for register, t, value in flat.literals]
        self._rows = RowColumns(table, columns, domains)
        self.program = self._loaded(flat, compiler)
        self._memos.hold_constants(self)

    def _loaded(self, flat: FlatProgram, compiler: Compiler) -> _kernel.Expressions:
        tables = [memo.table for memo in self._tables]
        counts = self._count, len(self._foreign)
        program = _kernel.Expressions(
            compiler.graph.inputs,
            flat.kinds,
            *counts,
            tables,
            compiler.members,
            compiler.dictionaries,
            flat.instructions,
        )
        for constant in flat.constants:
            program.set_constant(*constant)
        return program

    def of(self, rows: CodedRows, failure: Failure = as_it_is) -> list[Codes]:
        columns = [rows.code(i) if read else rows.weights for i, read in enumerate(self._read)]
        outputs, doubtful = self._run(columns, len(rows.weights))
        if len(doubtful):
            self._settle(outputs, doubtful, [rows.code(i) for i in range(len(columns))], failure)
        return list(outputs)

    def prepare(self, columns: list[Codes], n: int) -> bool:
        """Fills in what a run over these columns lacks; whether the kernel then computes them without turning back."""
        return not self._foreign and not len(self._run(columns[: len(self._read)], n)[1])

    def row(self, codes: tuple[int, ...]) -> tuple[int, ...]:
        """The codes of a row with those of the columns behind them; DataError where an expression has no value."""
        found = self.program.run_row(codes)
        if found is not None:
            return found
        columns = [np.array([code], np.int64) for code in codes]
        outputs, doubtful = self._run(columns, 1)
        if len(doubtful):
            self._settle(outputs, doubtful, columns, as_it_is)
        return (*codes, *outputs[:, 0].tolist())

    def _run(self, columns: list[Codes], n: int) -> tuple[Any, Codes]:
        """The outputs, and the rows for which they are doubtful."""
        if not self.program.is_current:
            self._encode_literals()
        foreign = [(np.zeros(n, np.int64), np.zeros(n, np.uint8)) for _ in self._foreign]
        while True:
            outputs, doubtful, missing = self.program.run(columns, n, foreign)
            if missing is None:
                return outputs, doubtful
            for memo in self._tables:
                memo.fill()
            for elsewhere, rows, column in zip(self._foreign, missing, foreign, strict=True):
                _compute(elsewhere, rows, columns, column)

    def _encode_literals(self) -> None:
        for register, domain, value in self._encoders:
            self.program.set_constant(register, domain.encode_value(value), 0)
        self.program.is_current = True

    def forget_constants(self) -> None:
        """The codes of constants are found again before the next run."""
        self.program.is_current = False

    def _settle(self, outputs: Any, doubtful: Codes, columns: list[Codes], failure: Failure) -> None:
        """Computes doubtful rows by `evaluate`."""
        given = [
            domain.values(column[doubtful].tolist()) for domain, column in zip(self._domains, columns, strict=True)
        ]
        rows: list[Row] = list(zip(*given, strict=True)) if given else [()] * len(doubtful)
        for number in range(self._count):
            outputs[number, doubtful] = self._rows.column(number, rows, failure)


def _compute(elsewhere: Elsewhere, rows: Codes, columns: list[Codes], column: tuple[Codes, States]) -> None:
    if len(rows):
        read = [np.ascontiguousarray(columns[position][rows]) for position in elsewhere.positions]
        column[0][rows], column[1][rows] = elsewhere.codes(read)


def _output(compiler: Compiler, column: FeedColumn, number: int) -> Node:
    """The node that writes a column of a feed; NULL in rows that its guard drops."""
    graph, mask = compiler.graph, None
    if column.guard is not None:
        mask = graph.narrowed("mask_true", None, compiler.value(column.guard, None).node)
    if column.form == "test":
        value = compiler.value(column.expression, mask)
    else:
        value = compiler.in_type(column.expression, mask)
    if column.form in ("low", "high") and value.node.kind != WIDE:
        value = Value(compiler.numbers.wide(value), value.type)
    kind = value.node.kind
    if mask is not None:
        node = graph.node(f"select_{_SUFFIXES[kind]}", kind, value.node, graph.null(kind), mask=mask)
    else:
        node = value.node
    return graph.node("output", "o", node, k=(_operation(column.form, kind), number))


def _operation(form: str, kind: str) -> str:
    if form == "test":
        return "out_test"
    if form == "known":
        return f"known_{_SUFFIXES[kind]}"
    return f"{form}_wide" if form in ("low", "high") else f"out_{_SUFFIXES[kind]}"
