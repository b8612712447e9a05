"""What the tables must hold after each batch, and which batches must be refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.fuzz.steps import Change, Op
from tests.fuzz.values import Row, is_wrong

if TYPE_CHECKING:
    from tests.fuzz.cases import TableSpec


class Model:
    """The tables as bags of rows."""

    def __init__(self, tables: Sequence[TableSpec]) -> None:
        self.tables = {table.name: table for table in tables}
        self.contents: dict[str, Counter[Row]] = {table.name: Counter() for table in tables}

    def apply(self, change: Change) -> str:
        """Applies a batch, or says why it is refused; an empty reason means that it is applied."""
        reason = next((reason for op in change.ops if (reason := self._malformed(op))), "")
        if reason:
            return reason
        changed: dict[str, Counter[Row]] = {}
        for name in dict.fromkeys(op.table for op in change.ops if op.rows):
            ops = [op for op in change.ops if op.table == name]
            after = self._after(name, ops)
            reason = self._refusal(name, after)
            if reason:
                return reason
            changed[name] = +after
        self.contents |= changed
        return ""

    def _malformed(self, op: Op) -> str:
        table = self.tables[op.table]
        for row in op.rows:
            if len(row) != len(table.columns):
                return "a row has the wrong number of columns"
            for value, column in zip(row, table.columns, strict=True):
                if is_wrong(value, column.type):
                    return "a value has the wrong type"
                if value is None and column.name in table.primary_key:
                    return "a primary key is NULL"
        if table.static and self.contents[op.table] and op.rows:
            return "a static table does not change"
        return ""

    def _after(self, name: str, ops: Sequence[Op]) -> Counter[Row]:
        """The table after its part of the batch; weights are judged on their sum for each row."""
        net: Counter[Row] = Counter()
        for op in ops:
            for row, weight in zip(op.rows, op.weights, strict=True):
                net[row] += weight
        after = Counter(self.contents[name])
        lenient = any(op.method == "discard" for op in ops)
        for row, weight in net.items():
            after[row] += max(weight, -after[row]) if lenient else weight
        return after

    def _refusal(self, name: str, after: Counter[Row]) -> str:
        table = self.tables[name]
        if any(count < 0 for count in after.values()):
            return "a row is deleted that is not there"
        if table.append_only and any(count > after[row] for row, count in self.contents[name].items()):
            return "an append-only table loses no rows"
        if table.primary_key:
            places = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]
            keys = Counter(tuple(row[i] for i in places) for row in after.elements())
            if any(count > 1 for count in keys.values()):
                return "two rows have one primary key"
        return ""
