"""Runs an IES over a connection: rows in, programs run, the answer out. One executor for DuckDB, one for Spark SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ivme.closure.ies import IES, Relation, Row
from ivme.closure.program_text import Statement
from ivme.errors import DataError, UnknownNameError

CHANGES = "changes"
"""The table of changed rows in a program that takes many at once."""


class Executor(ABC):
    """The tables of an IES in some engine. Each change is all or nothing.

    The multiplicities of the input rows are stored here; the engine's input tables hold each row once.
    """

    def __init__(self, ies: IES) -> None:
        self.ies = ies
        self._counts: dict[str, Counter[Row]] = {relation.name: Counter() for relation in ies.inputs}
        self._counts_before: dict[str, Counter[Row]] | None = None
        self._limits = {refusal.table: refusal for refusal in ies.refusals}

    # Changes

    def start(self) -> None:
        """Runs the program for empty inputs; once, before the first change."""
        self.begin()
        try:
            self._run_program(self.ies.on_start, {}, self.ies.inputs[0], [])
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def insert(self, table: str, row: Sequence[Any]) -> None:
        """Inserts a row and runs the program for it, unless the row was there before."""
        self._apply(table, [tuple(row)], 1, many=False)

    def delete(self, table: str, row: Sequence[Any]) -> None:
        """Deletes a row and runs the program for it, unless the row is still there."""
        self._apply(table, [tuple(row)], -1, many=False)

    def insert_many(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Inserts a set of rows at once, where the IES can, or one after the other."""
        self._apply(table, [tuple(row) for row in rows], 1, many=True)

    def delete_many(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Deletes a set of rows at once, where the IES can, or one after the other."""
        self._apply(table, [tuple(row) for row in rows], -1, many=True)

    def begin(self) -> None:
        """Opens a transaction: the changes until `commit` are all or nothing together."""
        self._counts_before = {table: counts.copy() for table, counts in self._counts.items()}
        self._begin()

    def change(self, table: str, rows: Mapping[Row, int]) -> None:
        """Takes the net changes of an input within a transaction, deletes first."""
        relation = self._input(table)
        for sign in (-1, 1):
            chosen = [row for row, weight in rows.items() for _ in range(abs(weight)) if weight * sign > 0]
            self._run(relation, chosen, sign, many=True)

    def commit(self) -> None:
        """Ends the transaction, if one is open; may be called again."""
        if self._counts_before is not None:
            self._commit()
            self._counts_before = None

    def roll_back(self) -> None:
        """Undoes the transaction, if one is open; may be called again."""
        if self._counts_before is not None:
            self._roll_back()
            self._counts = self._counts_before
            self._counts_before = None

    def _apply(self, table: str, rows: list[Row], sign: int, *, many: bool) -> None:
        relation = self._input(table)
        self.begin()
        try:
            self._run(relation, rows, sign, many=many)
        except BaseException:
            self.roll_back()
            raise
        self.commit()

    def _run(self, relation: Relation, rows: list[Row], sign: int, *, many: bool) -> None:
        counts = self._counts[relation.name]
        seen = []
        for row in rows:
            self._check(relation, row)
            counts[row] += sign
            if counts[row] < 0:
                raise DataError(
                    f"cannot delete {row!r} from {relation.name}: the row does not exist; nothing was changed"
                )
            if counts[row] == (1 if sign > 0 else 0):
                seen.append(row)
        sets = self.ies.on_insert_many if sign > 0 else self.ies.on_delete_many
        singles = self.ies.on_insert if sign > 0 else self.ies.on_delete
        if many and len(seen) > 1 and relation.name in sets:
            self._make_changes(relation, seen)
            self._run_program(sets[relation.name], {}, relation, seen)
            self._change_input(relation, seen, sign)
            return
        for row in seen:
            parameters = dict(zip(relation.column_names, row, strict=True))
            self._run_program(singles[relation.name], parameters, relation, [row])
            self._change_input(relation, [row], sign)

    def _run_program(
        self, program: Sequence[Statement], parameters: Mapping[str, Any], relation: Relation, rows: list[Row]
    ) -> None:
        at, start = 0, 0
        while at < len(program):
            statement = program[at]
            at += 1
            if statement.kind == "repeat":
                start = at
            elif statement.kind == "until":
                at = start if self._size(statement.target) else at
            else:
                self._execute(statement, parameters)
                self._refuse(statement.target, relation, rows)

    def _refuse(self, table: str, relation: Relation, rows: list[Row]) -> None:
        limit = self._limits.get(table)
        if limit is not None and self._size(table) > limit.most:
            raise DataError(limit.message(rows, self.rows(relation.name)))

    def _input(self, table: str) -> Relation:
        for relation in self.ies.inputs:
            if relation.name == table.lower():
                return relation
        listed = ", ".join(relation.name for relation in self.ies.inputs)
        raise UnknownNameError(f"IES {self.ies.name} has no input {table}; it has {listed}")

    def _check(self, relation: Relation, row: Row) -> None:
        if len(row) != len(relation.columns) or None in row:
            listed = ", ".join(relation.column_names)
            raise DataError(f"a row of {relation.name} has a value for each of {listed}, and no NULL; {row!r} has not")

    # Reading

    def answer(self) -> list[Row]:
        """The rows of the answer, sorted."""
        return self.rows(self.ies.answer.name)

    @abstractmethod
    def rows(self, table: str) -> list[Row]:
        """The rows of a table of the IES, or of one that the last program made, sorted."""

    # The engine

    @abstractmethod
    def _begin(self) -> None: ...
    @abstractmethod
    def _commit(self) -> None:
        """Ends a transaction; nothing if that is done already."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Undoes a transaction; nothing if that is done already."""

    @abstractmethod
    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> None: ...
    @abstractmethod
    def _size(self, table: str) -> int: ...
    @abstractmethod
    def _make_changes(self, relation: Relation, rows: list[Row]) -> None: ...
    @abstractmethod
    def _change_input(self, relation: Relation, rows: list[Row], sign: int) -> None: ...
