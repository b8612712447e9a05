"""Rows for which an expression of a view fails: they are left out of it, and must not be visible in it.

A view over several atoms has a check for each way in which such rows could become visible (`query.failures`): a query
beside the view's own, maintained in the same batches, that must have no row when a batch is committed. Then the batch
is refused, with the view, the expression, and a row.
"""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ivme.engine.expression.arrow_values import evaluate_table
from ivme.engine.expression.row_expression import getter
from ivme.engine.ingest.row_batch import Inputs, RowBatch
from ivme.errors import DataError, ExpressionError
from ivme.query.failures import failing_expressions

if TYPE_CHECKING:
    from ivme.engine.runtime.reader import Reader
    from ivme.engine.runtime.shared_views import SharedViews
    from ivme.engine.runtime.view_state import ViewState
    from ivme.plan.assemble.plan import Check
    from ivme.query.model import Atom, Table


@dataclass(frozen=True, slots=True, eq=False)
class InstalledCheck:
    """A check under the name by which its group knows it, which no view has."""

    name: str
    group: SharedViews
    plan: Check

    def has_row(self) -> bool:
        """Whether a failing row is visible now, however often; as long as it takes to read the first row."""
        try:
            found = self.group.request(self.name, (), 1)
        except DataError:  # its count does not fit
            return True
        return found is None or bool(found[1])


def visible_failure(reader: Reader, state: ViewState, check: InstalledCheck) -> ExpressionError:
    """The error of a row that the check shows. It tries rows out: whatever it is part of has to be rolled back."""
    number = check.plan.failing[0]
    atom = check.plan.query.atoms[number]
    if atom.relation in reader.catalog.tables and not reader.catalog.tables[atom.relation].table.keep_rows:
        failing = failing_expressions(state.typed.query.atoms[number], reader.catalog.relation(atom.relation))
        shown = f"a row of table {atom.relation}, which keeps none"
        return ExpressionError.of(str(next(iter(failing))), "it has no value", row=shown, view=state.name)
    row = _visible_row(reader, check, atom)
    table = reader.catalog.relation(atom.relation)
    kind = "table" if atom.relation in reader.catalog.tables else "view"
    shown = f"the row {reprlib.repr(row)} of {kind} {atom.relation}"
    return _reason(state.typed.query.atoms[number], table, row, shown, state.name)


def _reason(atom: Atom, table: Table, row: tuple[object, ...], shown: str, view: str) -> ExpressionError:
    for expression in failing_expressions(atom, table):
        try:
            getter(expression, table.column_names)(row)
        except ExpressionError as error:
            return ExpressionError.of(error.expression, error.reason, row=shown, view=view)
    raise AssertionError(f"nothing fails for {shown}")


def _visible_row(reader: Reader, check: InstalledCheck, atom: Atom) -> tuple[object, ...]:
    """A row of the atom's relation that the check shows, found by taking away one half of what is left, and then less.

    Rows of a view that is recomputed cannot be taken away; of these it is the first that fails.
    """
    left = reader.all_rows(atom.relation)
    assert atom.where is not None
    mask = evaluate_table(atom.where, left.data).fill_null(False).to_numpy(zero_copy_only=False)
    left = left.kept(np.flatnonzero(mask), left.weights[mask])
    while len(left.weights) > 1 and check.group.reads(atom.relation) and not _is_lazy(check):
        half = len(left.weights) // 2
        first, rest = (_part(left, rows) for rows in (slice(0, half), slice(half, None)))
        _take_away(reader, check, atom.relation, first)
        if check.has_row():
            left = rest
        else:
            _take_away(reader, check, atom.relation, rest)
            _take_away(reader, check, atom.relation, first, sign=1)
            left = first
    return tuple(left.listed()[0])


def _is_lazy(check: InstalledCheck) -> bool:
    return check.group.blueprints[check.name].lazy


def _part(rows: RowBatch, which: slice) -> RowBatch:
    return rows.kept(np.arange(len(rows.weights))[which], rows.weights[which])


def _take_away(reader: Reader, check: InstalledCheck, relation: str, rows: RowBatch, sign: int = -1) -> None:
    group = check.group
    wanted = Inputs(reader.catalog.relation(relation), reader.catalog.domains, [("once", group.feed(relation))])
    group.run(relation, wanted.of(rows)[0][1], sign * rows.weights)
