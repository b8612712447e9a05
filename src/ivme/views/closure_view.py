"""A view that is a closure and nothing else: a view like any other that also knows paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ivme.closure.group import ClosureGroup
from ivme.engine.read.reasons import Reasons, Row
from ivme.query.expression import ColumnRef
from ivme.view import View
from ivme.views.closure_reasons import missing_path, path_edges
from ivme.views.view_reasons import told

if TYPE_CHECKING:
    from ivme.engine.runtime.runtime import Runtime
    from ivme.engine.runtime.view_state import ViewState


class ClosureView(View):
    """The pairs of nodes with a path between them, maintained."""

    def __init__(self, runtime: Runtime, state: ViewState) -> None:
        super().__init__(runtime, state)
        assert isinstance(state.group, ClosureGroup)
        self._group = state.group

    def path(self, src: Any, dst: Any) -> list[Any] | None:
        """A shortest path along the edges from one node to another, both included; None if there is none.

        From a node to itself it is a shortest cycle. Breadth-first search among the nodes that lead to `dst`.
        """
        self.check_alive()
        with self._runtime.lock:
            return self._group.path(src, dst)

    def distance(self, src: Any, dst: Any) -> int | None:
        """The number of edges of a shortest path; None if there is none."""
        nodes = self.path(src, dst)
        return None if nodes is None else len(nodes) - 1

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """The edges of a shortest path; or which end has no edge, or that no path leads from one to the other."""
        query, reader = self.state.typed.written, self._runtime.reader
        known = {str(column.source): value for column, value in zip(query.head, row, strict=True)}
        known |= self.asked.joined(parameters)
        (atom,) = query.atoms
        ends = [known[str(term)] for term in atom.terms[:2]]
        if present:
            return told(self.name, row, (path_edges(reader, self._group, query, *ends),), present=True)
        names = [column.name for column in atom.columns[:2] if isinstance(column, ColumnRef)]
        missing = missing_path(reader, self._group, atom, list(zip(names, ends, strict=True)))
        return told(self.name, row, missing, present=False)

    def count(self, **parameters: Any) -> int:
        """How many pairs there are; all of them are counted without listing them."""
        if parameters or self.parameters:
            return super().count(**parameters)
        self.check_alive()
        with self._runtime.lock:
            return self._group.engine.pairs

    def stats(self) -> dict[str, Any]:
        """The strategy, and the sizes of the graph and of its closure."""
        self.check_alive()
        with self._runtime.lock:
            return {"strategy": "closure", "graph": self._group.graph, **self._group.stats()}
