"""Views over a user's ring: each row comes with an element of the ring in place of a multiplicity.

They run on the plain-Python kernel, whose payloads may be any Python objects. A ring view joins the same batches as
every other view: its changes are staged with the batch, and kept or undone with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ivme.algebra.ring import Payload, Ring
from ivme.engine.reference.interpreter import Interpreter
from ivme.errors import PlanError, UnknownNameError
from ivme.query.model import Aggregate, HeadColumn, Query

if TYPE_CHECKING:
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.explain.explanation import Explanation

Row = tuple[Any, ...]


def lifting(query: Query, ring: Ring) -> Query:
    """The query with the ring's variables marked: where it would count their values, the ring lifts them."""
    if query.aggregates or query.distinct:
        raise PlanError(f"view {query.name} has a ring, so its head has variables only, no aggregates or DISTINCT")
    for variable in ring.variables:
        if variable not in query.variables:
            known = ", ".join(query.variables)
            raise UnknownNameError(f"the ring lifts {variable}, which view {query.name} has not; it has {known}")
    marks = tuple(HeadColumn(f"ring {v}", Aggregate("count", v)) for v in ring.variables)
    return replace(query, head=query.head + marks)


class Participant(Protocol):
    """What takes part in batches beside the kernel: the changes of its relations are staged, then kept or undone."""

    name: str
    relations: tuple[str, ...]

    def build(self, database: Mapping[str, Mapping[Row, int]]) -> None:
        """Fills it from whole tables."""

    def stage(self, relation: str, changes: Mapping[Row, int]) -> None:
        """Applies a part of a batch; `keep` or `undo` ends the batch."""

    def prepare(self) -> None:
        """Before a batch is committed: computes what `keep` needs, as that cannot fail."""

    def keep(self) -> None:
        """Ends a batch that was committed; may be called again."""

    def undo(self) -> None:
        """Ends a batch that was not; may be called again."""


class RingView:
    """The rows of a query with elements of a ring, kept fresh."""

    def __init__(self, query: Query, plan: Plan, explanation: Explanation, ring: Ring) -> None:
        self.name = query.name
        self.query = query
        self.relations = tuple(dict.fromkeys(atom.relation for atom in query.atoms))
        self.ring = ring
        self._explanation = explanation
        self._interpreter = Interpreter(plan.program, ring)

    def items(self, **parameters: Any) -> Iterator[tuple[Row, Payload]]:
        """The rows of an access request, over the query's outputs, each with its element."""
        unknown = set(parameters).symmetric_difference(self.query.parameters)
        if unknown:
            listed = ", ".join(self.query.parameters) or "none"
            raise UnknownNameError(f"view {self.name} takes these parameters: {listed}; check {', '.join(unknown)}")
        inputs = {v: parameters[name] for v, name in zip(self.query.input, self.query.parameters, strict=True)}
        return ((row, payload) for row, payload, _ in self._interpreter.items(inputs))

    def value(self, **parameters: Any) -> Payload | None:
        """The element of a view without outputs; None if nothing is there."""
        return next((payload for _, payload in self.items(**parameters)), None)

    def explain(self) -> Explanation:
        """How the view is maintained and what that costs, in ring operations."""
        return self._explanation

    def build(self, database: Mapping[str, Mapping[Row, int]]) -> None:
        """Fills the view from whole tables."""
        self._interpreter.build(database)

    def stage(self, relation: str, changes: Mapping[Row, int]) -> None:
        """Applies a part of a batch; `keep` or `undo` ends the batch."""
        self._interpreter.stage(relation, changes)

    def prepare(self) -> None:
        """There is nothing to compute."""

    def keep(self) -> None:
        self._interpreter.kernel.commit()

    def undo(self) -> None:
        self._interpreter.kernel.rollback()
