"""What is behind the rows of a view's blocks, for `why` and `why_not`: in the end, rows of tables.

A block that joins tables is asked as a view is; of a union, each branch that has such a row, or could have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.engine.read.derivations import Derivations, Known
from ivme.engine.read.reasons import Finding, Row
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.query.block_names import view_of_block
from ivme.query.expression import ColumnRef, Expression, Literal
from ivme.query.model import Atom, HeadColumn, Query
from ivme.query.pairing import Pairing, Side
from ivme.query.union import Branch
from ivme.views.ordered_view import OrderedView
from ivme.views.paired_view import PairedView
from ivme.views.plain_pairs import met_rows, shown_pair
from ivme.views.union_view import UnionView

_COMPARED = "a union of both sides"
"""How a union is labelled that compares its sides: what is below it is told in its place."""


class BlockReasons:
    """Finds what makes the rows of blocks, or what is missing for one."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def is_block(self, relation: str) -> bool:
        """Whether a relation is part of a view's own text."""
        return relation in self._reader.catalog.views and bool(view_of_block(relation))

    def label(self, relation: str) -> str:
        """What people may call it."""
        state = self._reader.catalog.views[relation]
        if isinstance(state.group, PairedView):
            return "a pair"
        if not isinstance(state.group, UnionView):
            return "a subquery"
        return _COMPARED if any(map(_is_own, state.table.column_names)) else "a union"

    def below(self, atom: Atom, known: Known, *, present: bool) -> tuple[Finding, ...]:
        """What is behind the rows that an atom over a block has at what is known of its variables."""
        if not self.is_block(atom.relation):
            return ()
        terms = zip(atom.columns, atom.terms, strict=True)
        named = [(column.name, term) for column, term in terms if isinstance(column, ColumnRef)]
        columns = {name: known[term] for name, term in named if isinstance(term, str) and term in known}
        return self._behind(self._reader.catalog.views[atom.relation], columns, present=present)

    def _behind(self, state: ViewState, columns: Mapping[str, Any], *, present: bool) -> tuple[Finding, ...]:
        group: Any = state.group
        if state.plan is not None:
            return self._joined(state.typed.written, columns, present=present)
        if isinstance(group, UnionView):
            branches = [each for each in group.union.branches if each.relation is not None]
            asked = [
                self._branch(dict(zip(state.table.column_names, each.columns, strict=True)), each, columns)
                for each in branches
            ]
            found = [finding for query, known in asked for finding in self._joined(query, known, present=present)]
            return tuple(finding for finding in found if finding.tuples or not present)
        if isinstance(group, PairedView):
            return self._paired(state, group.pairing, columns, present=present)
        if isinstance(group, OrderedView):
            return self._behind(self._reader.catalog.views[group.inner], columns, present=present)
        return ()

    def _paired(
        self, state: ViewState, pairing: Pairing, columns: Mapping[str, Any], *, present: bool
    ) -> tuple[Finding, ...]:
        """The rows of both sides of a pair; or the side that has none, or that none of both meet."""
        names = state.table.column_names
        known = [(place, columns[name]) for place, name in enumerate(names) if name in columns]
        sides = (pairing.left, pairing.right)
        if not present:
            shown = names[: len(pairing.left.columns)], names[len(pairing.left.columns) :]
            lacking: list[Finding] = []
            for side, mine in zip(sides, shown, strict=True):
                asked = self._branch(dict(zip(mine, side.columns, strict=True)), side.branch, columns)
                lacking += [each for each in self._joined(*asked, present=True) if not each.tuples]
            return tuple(lacking)
        for pair, _ in met_rows(pairing, self._reader, pads=pairing.pads):
            row = shown_pair(pairing, *pair)
            if all(row[place] == value for place, value in known):
                return self._pair(sides, pair)
        return ()

    def _pair(self, sides: tuple[Side, Side], pair: tuple[Row, Row | None]) -> tuple[Finding, ...]:
        found: list[Finding] = []
        for side, row in zip(sides, pair, strict=True):
            if row is not None:
                values = {f"column {place}": value for place, value in enumerate(row)}
                shown = dict(zip(values, side.branch.columns, strict=True))
                asked = self._branch(shown, side.branch, values, named="#{}")
                found += self._joined(*asked, present=True)
        return tuple(found)

    def _joined(self, query: Query, columns: Mapping[str, Any], *, present: bool) -> tuple[Finding, ...]:
        sources = {column.name: column.source for column in query.head}
        known = {source: value for name, value in columns.items() if isinstance(source := sources.get(name), str)}
        if query.aggregates and not present and not known:
            return ()
        row: Row = tuple(columns.values())
        found = Derivations(self._reader, query, known, self).reasons("the group", row, present=present).findings
        return tuple(each for one in found for each in (one.below if _is_passed_over(one) else (one,)))

    def _branch(
        self,
        shown: Mapping[str, Expression],
        branch: Branch,
        columns: Mapping[str, Any],
        named: str = "{} of the union",
    ) -> tuple[Query, dict[str, Any]]:
        """The rows of a branch as a query of one atom over all columns of its table, and what is known of them;
        `named` is what computed columns are called."""
        assert branch.relation is not None
        table = self._reader.relation(branch.relation)
        terms = {name: ColumnRef(name) for name in table.column_names}
        known: dict[str, Any] = {}
        computed: dict[str, Expression] = {}
        for name, column in shown.items():
            if isinstance(column, ColumnRef) and column.name in terms:
                known |= {column.name: columns[name]} if name in columns else {}
            elif not isinstance(column, Literal) and not _is_own(name):
                computed[named.format(name)] = column
                known |= {named.format(name): columns[name]} if name in columns else {}
        read: dict[str, Expression] = {**terms, **computed}
        atom = Atom(branch.relation, tuple(read), tuple(read.values()), branch.where)
        head = tuple(HeadColumn(name, name) for name in read)
        return Query("the union", tuple(read), (), (atom,), (table,), head), known


def _is_passed_over(finding: Finding) -> bool:
    """Whether what is below a finding is told in its place: it compares sides, or shows nothing that people know."""
    return finding.relation.startswith(_COMPARED) or (finding.tuples == ((),) and bool(finding.below))


def _is_own(column: str) -> bool:
    """Whether a column is one that ivme adds to compare the sides of NOT EXISTS or EXCEPT."""
    return column.startswith("#")
