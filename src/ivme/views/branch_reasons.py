"""What is behind the rows of unions and of pairs: rows of the relations that their branches and sides read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ivme.engine.read.derivations import Wanted
from ivme.engine.read.reasons import Finding, Row, merged
from ivme.engine.runtime.view_state import ViewState
from ivme.query.expression import Call, ColumnRef, Expression, Literal, conjunction, evaluate
from ivme.query.model import Atom, HeadColumn, Query
from ivme.query.pairing import Pairing, Side
from ivme.query.union import Branch, Union
from ivme.views.plain_pairs import met_rows, shown_pair

if TYPE_CHECKING:
    from ivme.views.block_reasons import BlockReasons, Columns


class BranchReasons:
    """Asks the relations that branches read."""

    def __init__(self, blocks: BlockReasons) -> None:
        self._blocks = blocks

    def union(
        self, state: ViewState, union: Union, columns: Sequence[Columns], *, present: bool, every: bool
    ) -> tuple[Finding, ...]:
        """The rows of each branch that has such a row; or what each lacks that could have it."""
        names = state.table.column_names
        found: list[Finding] = []
        for branch in union.branches:
            shown = dict(zip(names, branch.columns, strict=True))
            possible = [row for row in columns if _is_possible(shown, row)]
            if possible and branch.relation is None:
                found += _constant(branch) if present else ()
            elif possible:
                found += self._asked(branch, shown, possible, present=present, every=every)
        return merged(finding for finding in found if finding.tuples) if present else tuple(found)

    def paired(
        self, state: ViewState, pairing: Pairing, columns: Sequence[Columns], *, present: bool, every: bool
    ) -> tuple[Finding, ...]:
        """The rows of both sides of pairs; or the side that has none for one. Linear in the pairs."""
        names = state.table.column_names
        if not present:
            return self._missing_side(names, pairing, columns[0])
        known = [[(place, row[name]) for place, name in enumerate(names) if name in row] for row in columns]
        pairs: list[tuple[Row, Row | None]] = []
        waiting = list(known)
        for pair, _ in met_rows(pairing, self._blocks.reader, pads=pairing.pads):
            row = shown_pair(pairing, *pair)
            mine = [each for each in waiting if all(row[place] == value for place, value in each)]
            pairs += [pair] if mine else []
            waiting = waiting if every else [each for each in waiting if each not in mine]
        return merged(finding for pair in pairs for finding in self._pair((pairing.left, pairing.right), pair))

    def _missing_side(self, names: Sequence[str], pairing: Pairing, columns: Columns) -> tuple[Finding, ...]:
        first = len(pairing.left.columns)
        lacking: list[Finding] = []
        for side, mine in ((pairing.left, names[:first]), (pairing.right, names[first:])):
            shown = dict(zip(mine, side.columns, strict=True))
            found = self._asked(side.branch, shown, [columns], present=True, every=False)
            lacking += [each for each in found if not each.tuples]
        return tuple(lacking)

    def _pair(self, sides: tuple[Side, Side], pair: tuple[Row, Row | None]) -> list[Finding]:
        found: list[Finding] = []
        for side, row in zip(sides, pair, strict=True):
            if row is not None:
                values = {f"column {place}": value for place, value in enumerate(row)}
                shown = dict(zip(values, side.branch.columns, strict=True))
                found += self._asked(side.branch, shown, [values], present=True, every=True, named="#{}")
        return found

    def _asked(
        self,
        branch: Branch,
        shown: Mapping[str, Expression],
        columns: Sequence[Columns],
        *,
        present: bool,
        every: bool,
        named: str = "{} of the union",
    ) -> tuple[Finding, ...]:
        """What a branch has at what is known of its rows, as a query of one atom over all columns of its relation;
        `named` is what computed columns are called."""
        assert branch.relation is not None
        table = self._blocks.reader.relation(branch.relation)
        computed: dict[str, Expression] = {
            named.format(name): column
            for name, column in shown.items()
            if not isinstance(column, Literal) and not _is_plain(column, table.column_names) and not _is_own(name)
        }
        read: dict[str, Expression] = {name: ColumnRef(name) for name in table.column_names} | computed
        tests = [] if branch.where is None else [branch.where]
        tests += [] if branch.weight is None else [Call("ne", (branch.weight, Literal(0)))]
        atom = Atom(branch.relation, tuple(read), tuple(read.values()), conjunction(tests))
        head = tuple(HeadColumn(name, name) for name in read)
        query = Query("the union", tuple(read), (), (atom,), (table,), head)
        known = [_known(shown, row, read, named) for row in columns]
        return self._blocks.joined(query, known, present=present, every=every)


def _known(shown: Mapping[str, Expression], row: Columns, read: Mapping[str, Expression], named: str) -> Wanted:
    known: dict[str, Any] = {}
    for name, column in shown.items():
        variable = column.name if isinstance(column, ColumnRef) else named.format(name)
        if name in row and variable in read:
            known[variable] = row[name]
    return Wanted(known)


def _is_plain(column: Expression, names: Sequence[str]) -> bool:
    return isinstance(column, ColumnRef) and column.name in names


def _is_possible(shown: Mapping[str, Expression], row: Columns) -> bool:
    """Whether a branch could have such a row, by its constants."""
    constants = [(name, column.value) for name, column in shown.items() if isinstance(column, Literal)]
    return all(row[name] == value for name, value in constants if name in row)


def _constant(branch: Branch) -> tuple[Finding, ...]:
    if branch.where is not None and evaluate(branch.where, {}) is not True:
        return ()
    return (Finding("a constant of the query", (), (tuple(evaluate(each, {}) for each in branch.columns),)),)


def _is_own(column: str) -> bool:
    """Whether a column is one that ivme adds to compare the sides of NOT EXISTS or EXCEPT."""
    return column.startswith("#")
