"""What the kernel's expressions lack, computed by the table of functions: by code, or for single rows.

A function of one column of text is evaluated once for each distinct value, and remembered by code for all batches to
come, in the database's `Memos`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ivme import _kernel
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import DictionaryValues
from ivme.engine.codes.domains import Domains
from ivme.engine.expression.arrow_expression import evaluate_columns
from ivme.errors import DataError
from ivme.query.expression import Expression, columns_of, evaluate
from ivme.query.inference import in_type, type_of
from ivme.query.model import Table
from ivme.query.types import Type

States = npt.NDArray[np.uint8]
"""For each value whether it is known."""

KNOWN, DOUBTFUL = 1, 2
_MANY = 64
"""From so many values on Arrow is quicker than `evaluate`."""


class Elsewhere:
    """An expression that the kernel lacks, over columns given by their codes."""

    def __init__(self, expression: Expression, table: Table, domains: Domains) -> None:
        names = [column.name.lower() for column in table.columns]
        written = list(dict.fromkeys(columns_of(expression)))
        self.expression = expression
        self.positions = read = sorted({names.index(name.lower()) for name in written})
        self._names = [names[position] for position in read]
        self._written = [(name, read.index(names.index(name.lower()))) for name in written]
        self._domains = [domains.domain(declared_type(table, table.columns[i])) for i in read]
        self._type = type_of(expression, table)
        self._domain = domains.domain(self._type or Type("int"))

    def codes(self, columns: Sequence[Codes]) -> tuple[Codes, States]:
        """The codes of the values for some rows; doubtful where a row has no value."""
        if len(columns[0]) >= _MANY:
            try:
                return self._in_arrow(columns)
            except DataError:
                pass  # some row has no value: which one, `evaluate` tells
        return self._by_row(columns)

    def _in_arrow(self, columns: Sequence[Codes]) -> tuple[Codes, States]:
        arrays = [domain.decode(codes) for domain, codes in zip(self._domains, columns, strict=True)]
        values = evaluate_columns(self.expression, pa.Table.from_arrays(arrays, names=self._names))
        states = np.full(len(values), KNOWN, np.uint8)
        if pa.types.is_null(values.type):
            return np.full(len(values), NULL_CODE, np.int64), states
        return np.ascontiguousarray(self._domain.encode(values)), states

    def _by_row(self, columns: Sequence[Codes]) -> tuple[Codes, States]:
        known: dict[tuple[int, ...], tuple[int, int]] = {}
        rows = list(zip(*(column.tolist() for column in columns), strict=True))
        for row in rows:
            if row not in known:
                known[row] = self._one(row)
        codes, states = zip(*(known[row] for row in rows), strict=True) if rows else ((), ())
        return np.array(codes, np.int64), np.array(states, np.uint8)

    def _one(self, codes: tuple[int, ...]) -> tuple[int, int]:
        values = [domain.decode_value(code) for domain, code in zip(self._domains, codes, strict=True)]
        try:
            value = evaluate(self.expression, {name: values[place] for name, place in self._written})
            return self._domain.encode_value(in_type(value, self._type, self.expression)), KNOWN
        except DataError:
            return NULL_CODE, DOUBTFUL


class CodeMemo:
    """What a function of one column of text gives, by code."""

    def __init__(self, expression: Expression, table: Table, position: int, domains: Domains) -> None:
        domain = domains.domain(declared_type(table, table.columns[position]))
        assert isinstance(domain, DictionaryValues)
        self.table = _kernel.CodeTable(domain.dictionary.base)
        self._elsewhere = Elsewhere(expression, table, domains)

    def fill(self) -> None:
        """Computes what the kernel looked up and did not find."""
        codes = self.table.requested()
        if len(codes):
            self.table.fill(codes, *self._elsewhere.codes([codes]))
            self.table.withdraw()

    def forget(self) -> None:
        self.table.forget()

    def memory_bytes(self) -> int:
        return self.table.memory_bytes()


def code_memo(expression: Expression, position: int, table: Table, domains: Domains) -> CodeMemo:
    """The memo of a function of a column of text: one for all tables that have such a column."""
    key = "by code", expression, declared_type(table, table.columns[position])
    return domains.memos.memo(key, lambda: CodeMemo(expression, table, position, domains))
