"""MERGE: SELECTs of the rows that are in both, in the source only and in the target only, and what is done with each.

A clause gets the rows that no clause before it has taken. A row of the target that several rows of the source match
would have to become several others, which is refused.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from ivme.engine.codes.nested_values import python_values
from ivme.errors import DataError, shown
from ivme.query.model import Table
from ivme.query.sql_text import SqlText
from ivme.query.table_expression import Parameters
from ivme.statements.change import (
    Taken,
    assigned,
    changed_table,
    column,
    new_columns,
    old_columns,
    positions,
    replace_rows,
    whole_rows,
    with_defaults,
)
from ivme.statements.constants import with_values
from ivme.statements.model import Merge, When
from ivme.statements.select import Rows, made_rows

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.batch import Batch


def merge(definitions: Definitions, statement: Merge, values: Parameters, batch: Batch, taken: Taken) -> int:
    """Adds a MERGE to a batch; how many rows it changes. All rows are read before the first is changed.

    `taken` gets the rows that come, and those that go without another in their place.
    """
    table = changed_table(definitions, statement.source, statement.table)
    run = _Run(definitions, statement, values, table, batch)
    made_rows(definitions, statement.source, run.joined([exp.Literal.number(1)]))  # refuses what is ambiguous in ON
    found = [(when, run.rows(number, when)) for number, when in enumerate(statement.whens)]
    run.refuse_several([rows for when, rows in found if when.rows == "both"])
    taken += [run.apply(when, rows) for when, rows in found]
    return sum(int(rows.data.num_rows) for _, rows in found)


class _Run:
    """One MERGE into one table."""

    def __init__(
        self, definitions: Definitions, statement: Merge, values: Parameters, table: Table, batch: Batch
    ) -> None:
        self._definitions = definitions
        self._statement = statement
        self._values = values
        self._table = table
        self._batch = batch
        self._on = with_values(statement.source, statement.on, values)
        self._using = with_values(statement.source, statement.using, values)

    @property
    def _source(self) -> SqlText:
        return self._statement.source

    def joined(self, expressions: list[exp.Expr]) -> exp.Select:
        """What the source and the target have in common."""
        named = [exp.alias_(each, "matched") if not isinstance(each, exp.Alias) else each for each in expressions]
        select = exp.Select(expressions=named, from_=exp.From(this=self._statement.table.copy()))
        select.set("joins", [exp.Join(this=self._using.copy(), on=self._on.copy())])
        return select

    def rows(self, number: int, when: When) -> Rows:
        """The rows that a clause takes: those of the target, then the expressions that it gives to columns."""
        new = new_columns(self._source, self._nodes(when), self._values)
        target = self._statement.table
        if when.rows == "both":
            select = self.joined([*old_columns(target, self._table), *new])
        elif when.rows == "target":
            old = old_columns(target, self._table)
            select = self._without([*old, *new], target, self._using)
        else:
            select = self._without(new, self._using, target)
        conditions = [*self._conditions(number, when)]
        where = select.args.get("where")
        if conditions:
            select.set("where", exp.Where(this=exp.and_(*([] if where is None else [where.this]), *conditions)))
        return made_rows(self._definitions, self._source, select, self._batch)

    def _without(self, expressions: list[exp.Expr], one: exp.Expr, other: exp.Expr) -> exp.Select:
        """The rows of one side that the other has no match for."""
        inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=other.copy()))
        inner.set("where", exp.Where(this=self._on.copy()))
        select = exp.Select(expressions=expressions, from_=exp.From(this=one.copy()))
        select.set("where", exp.Where(this=exp.Not(this=exp.Exists(this=inner))))
        return select

    def _conditions(self, number: int, when: When) -> list[exp.Expr]:
        """The clause's own condition, and that none of those before it holds."""
        before = [each for each in self._statement.whens[:number] if each.rows == when.rows]
        found: list[exp.Expr] = []
        for each in before:
            if each.condition is None:
                found.append(exp.Boolean(this=False))
            else:
                holds = exp.Coalesce(this=self._valued(each.condition), expressions=[exp.Boolean(this=False)])
                found.append(exp.Not(this=holds))
        return found if when.condition is None else [*found, exp.paren(self._valued(when.condition))]

    def _valued(self, node: exp.Expr) -> exp.Expr:
        return with_values(self._source, node, self._values)

    def _nodes(self, when: When) -> list[exp.Expr]:
        if when.is_all:
            return [column(self._using, name) for name in self._table.column_names]
        return with_defaults(self._table, self._places(when), [node for _, node in when.values or ()], self._values)

    def _places(self, when: When) -> list[int]:
        if when.is_all:
            return list(range(len(self._table.columns)))
        return positions(self._source, self._table, [name for name, _ in when.values or ()])

    def refuse_several(self, matched: list[Rows]) -> None:
        """Refuses rows of the target that more than one row of the source matches."""
        width = len(self._table.columns)
        found: Counter[tuple[object, ...]] = Counter()
        for rows in matched:
            found.update(zip(*(python_values(rows.data.column(i)) for i in range(width)), strict=True))
        if not found or max(found.values()) == 1:
            return
        data, counts = self._batch.look(lambda: self._definitions.runtime.reader.contents(self._table.name))
        held = dict(zip(zip(*map(python_values, data.columns), strict=True), counts.tolist(), strict=True))
        for row, count in found.items():
            if count > held[row]:
                raise DataError(
                    f"several rows of the source match {shown(row)} of table {self._table.name}, which can become one "
                    "row only; nothing was changed. Make them one, by GROUP BY for instance"
                )

    def apply(self, when: When, rows: Rows) -> pa.Table:
        """Changes the rows of a clause; what they are then, or were."""
        count, width = int(rows.data.num_rows), len(self._table.columns)
        names = list(self._table.column_names)
        if when.values is None:
            old = [rows.data.column(number) for number in range(width)]
            gone = pa.table(old, names=names)
            self._batch.delete(self._table.name, gone)
            return gone
        if when.rows == "source":
            places, nodes = self._places(when), self._nodes(when)
            numbered = enumerate(zip(places, nodes, strict=True))
            made = [assigned(self._source, node, rows, i, self._table, place) for i, (place, node) in numbered]
            come = whole_rows(self._table, places, made, count, self._values)
            self._batch.insert(self._table.name, come)
            return come
        return replace_rows(self._source, self._table, self._places(when), rows, self._nodes(when), self._batch)
