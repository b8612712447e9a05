"""A view that is a closure and nothing else: a view like any other that also knows paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ivme.closure.group import ClosureGroup
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
