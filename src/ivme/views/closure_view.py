"""A view that is a closure and nothing else: a view like any other that also knows paths."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ivme.closure.group import ClosureGroup
from ivme.engine.read.reasons import Finding, Reasons, Row
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom
from ivme.view import View

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
        self.check_alive()
        with self._runtime.lock:
            if (self.multiplicity(row, **parameters) != 0) != present:
                raise self._wrong_question(row, present=present)
            query, row = self.state.typed.written, tuple(row)
            known = {str(column.source): value for column, value in zip(query.head, row, strict=True)}
            known |= {str(variable): value for variable, value in self.asked.codes(parameters)[1].items()}
            (atom,) = query.atoms
            src, dst = (known[str(term)] for term in atom.terms[:2])
            nodes = self._group.path(src, dst) if present else None
            if nodes is not None:
                edges = tuple(itertools.pairwise(nodes))
                return Reasons(self.name, row, present, (Finding(atom.relation, (), edges),))
            return Reasons(self.name, row, present, self._missing(atom, src, dst))

    def _missing(self, atom: Atom, src: Any, dst: Any) -> tuple[Finding, ...]:
        data, weights = self._runtime.reader.contents(atom.relation)
        names = [column.name for column in atom.columns[:2] if isinstance(column, ColumnRef)]
        there = np.flatnonzero(weights)
        ends = [set(data.column(name).take(there).to_pylist()) for name in names]
        if self._group.graph == "undirected":
            ends = [ends[0] | ends[1]] * 2
        keys = ((names[0], src), (names[1], dst))
        lacking = [(key,) for key, values in zip(keys, ends, strict=True) if key[1] not in values]
        return tuple(Finding(atom.relation, at, ()) for at in lacking) or (
            Finding(f"a path along {atom.relation}", keys, ()),
        )

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
