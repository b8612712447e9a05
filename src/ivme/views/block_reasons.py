"""What is behind the rows of a view's blocks, for `why` and `why_not`: in the end, rows of tables.

A block that joins tables is asked as a view is; of a union, each branch that has such rows, or could have them; of a
block with an order or windows, the rows that decide the position or the value (`ordered_reasons`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ivme.closure.group import ClosureGroup
from ivme.engine.read.derivations import Derivations, Known, Wanted
from ivme.engine.read.reasons import Finding, merged
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.query.block_names import view_of_block
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom, Query
from ivme.views.branch_reasons import BranchReasons
from ivme.views.closure_reasons import missing_path, path_edges
from ivme.views.ordered_reasons import absent_order, present_order
from ivme.views.ordered_view import OrderedView
from ivme.views.paired_view import PairedView
from ivme.views.union_view import UnionView

_COMPARED = "a union of both sides"
"""How a union is labelled that compares its sides: what is below it is told in its place."""

NOTHING: Known = {}

Columns = Mapping[str, Any]
"""What is known of a row of a block, by the names of its columns."""


class BlockReasons:
    """Finds what makes the rows of blocks, or what is missing for one."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._branches = BranchReasons(self)

    def is_block(self, relation: str) -> bool:
        """Whether a relation is part of a view's own text: a block, or the closure of a table."""
        state = self.reader.catalog.views.get(relation)
        return state is not None and (bool(view_of_block(relation)) or _is_closure(state))

    def label(self, relation: str) -> str:
        """What people may call it."""
        state = self.reader.catalog.views[relation]
        if isinstance(state.group, ClosureGroup):
            return f"the closure of {state.typed.written.atoms[0].relation}"
        if isinstance(state.group, PairedView):
            return "a pair"
        if not isinstance(state.group, UnionView):
            return "a subquery"
        return _COMPARED if any(name.startswith("#") for name in state.table.column_names) else "a union"

    def below(self, atom: Atom, known: Sequence[Known], *, present: bool, every: bool) -> tuple[Finding, ...]:
        """What is behind the rows that an atom over a block has at what is known of its variables."""
        if not self.is_block(atom.relation):
            return ()
        terms = zip(atom.columns, atom.terms, strict=True)
        named = [(column.name, term) for column, term in terms if isinstance(column, ColumnRef)]
        columns = [{name: one[term] for name, term in named if isinstance(term, str) and term in one} for one in known]
        return self.behind(atom.relation, columns, present=present, every=every)

    def behind(
        self,
        relation: str,
        columns: Sequence[Columns],
        *,
        present: bool,
        every: bool = False,
        given: Known = NOTHING,
        called: str = "the group",
    ) -> tuple[Finding, ...]:
        """What is behind the rows of a block, or missing for one, at what is known of them, and the values that its
        inputs are `given`; with `every`, all rows that look so count. `called` is how another row is told."""
        state = self.reader.catalog.views[relation]
        group: Any = state.group
        if state.plan is not None:
            sources = {column.name: column.source for column in state.typed.written.head}
            pairs = [[(sources[name], value) for name, value in row.items() if name in sources] for row in columns]
            wanted = [Wanted.of(each, given) for each in pairs]
            return self.joined(state.typed.written, wanted, present=present, every=every, called=called)
        if isinstance(group, UnionView):
            return self._branches.union(state, group.union, columns, present=present, every=every)
        if isinstance(group, PairedView):
            return self._branches.paired(state, group.pairing, columns, present=present, every=every)
        if isinstance(group, ClosureGroup):
            return self._path(state, columns, present=present)
        assert isinstance(group, OrderedView), f"{relation} is of a kind that tells no reasons"
        values = tuple(given.values())
        if present:
            return present_order(self, state, columns, values, every=every)
        return absent_order(self, state, columns[0], values)

    def joined(
        self, query: Query, wanted: Sequence[Wanted], *, present: bool, every: bool = False, called: str = "the group"
    ) -> tuple[Finding, ...]:
        """What joins to rows of a query, or is missing for one."""
        if query.aggregates and not present and not wanted[0].known and called == "the group":
            return ()
        derivations = Derivations(self.reader, query, wanted, self, every=every)
        if not present:
            return tuple(told(derivations.absent(called)))
        return merged(told(derivations.present()))

    def _path(self, state: ViewState, columns: Sequence[Columns], *, present: bool) -> tuple[Finding, ...]:
        group, names = state.group, state.table.column_names
        assert isinstance(group, ClosureGroup)
        rows = [
            row for row in self.reader.all_rows(state.name).rows() if _fits(dict(zip(names, row, strict=True)), columns)
        ]
        (atom,) = state.typed.written.atoms
        if not present:
            ends = [(name, columns[0][name]) for name in names if name in columns[0]]
            return missing_path(self.reader, group, atom, ends) if len(ends) == len(names) else ()
        return merged(path_edges(self.reader, group, state.typed.written, *row) for row in rows)


def told(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings in words that people know: what is below others may be told in their place."""
    for finding in findings:
        yield from finding.below if _is_passed_over(finding) else (finding,)


def _fits(row: Columns, columns: Sequence[Columns]) -> bool:
    return any(all(row[name] == value for name, value in known.items()) for known in columns)


def _is_closure(state: ViewState) -> bool:
    return isinstance(state.group, ClosureGroup) and "(" in state.name


def _is_passed_over(finding: Finding) -> bool:
    """Whether what is below a finding is told in its place: it compares sides, or shows nothing that people know."""
    return finding.relation.startswith(_COMPARED) or (finding.tuples == ((),) and bool(finding.below))
