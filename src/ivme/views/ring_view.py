"""Views over a user's ring: each row comes with an element of the ring in place of a multiplicity.

They run on the plain-Python engine, whose payloads may be any Python objects, in the same batches as all other views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ivme.algebra.ring import Payload, Ring
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.read.recompute import recompute_elements
from ivme.engine.read.verify import compare_rows
from ivme.engine.reference.interpreter import Delta, Interpreter, accumulate
from ivme.engine.runtime.reader import Reader
from ivme.errors import PlanError, UnknownNameError
from ivme.plan.assemble.assemble import Assembly, program_of
from ivme.plan.assemble.catalog import catalog_of
from ivme.query.model import Aggregate, HeadColumn, Query
from ivme.views.base_view import Row
from ivme.views.participating_view import ParticipatingView, weighted

if TYPE_CHECKING:
    import pyarrow as pa

    from ivme.engine.read.reasons import Reasons
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.explain.explanation import Explanation


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


class RingView(ParticipatingView):
    """The rows of a query with elements of a ring, maintained."""

    def __init__(self, query: Query, plan: Plan, explanation: Explanation, ring: Ring, reader: Reader) -> None:
        super().__init__(reader)
        self.query = query
        self.ring = ring
        self._plan = plan
        self._explanation = explanation
        self._interpreter = Interpreter(plan.program, ring)
        self._is_followed = False
        self._emitted: Delta = {}

    @property
    def name(self) -> str:
        return self.query.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns: those of the query's outputs."""
        return self.query.output

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self.query.parameters

    @property
    def relations(self) -> tuple[str, ...]:
        """The tables and views that the view reads."""
        return tuple(dict.fromkeys(atom.relation for atom in self.query.atoms))

    def _items(self, parameters: Mapping[str, Any]) -> list[tuple[Row, Any]]:
        """The rows over the query's outputs, each with its element."""
        inputs = {v: parameters[name] for v, name in zip(self.query.input, self.query.parameters, strict=True)}
        return [(row, payload) for row, payload, _ in self._interpreter.items(inputs)]

    def value(self, **parameters: Any) -> Payload | None:
        """The element of a view without outputs; None if nothing is there."""
        return next((payload for _, payload in self.items(**parameters)), None)

    def to_arrow(self, **parameters: Any) -> pa.Table:  # noqa: ARG002
        raise PlanError(f"view {self.name} has elements of a ring, which Arrow has no type for; read its items()")

    # About the view

    def explain(self) -> Explanation:
        """How the view is maintained and what that costs, in ring operations."""
        return self._explanation

    def stats(self) -> dict[str, Any]:
        """The view's strategy, the sizes of its maps, and the operations so far."""
        self.check_alive()
        with self.lock:
            maps = {name: len(stored) for name, stored in self._interpreter.kernel.maps.items()}
            return {
                "strategy": self._explanation.strategy,
                "maps": maps,
                "operations": self._interpreter.operations,
            }

    def verify(self) -> None:
        """Computes all elements from the tables by plain joins; VerificationError names the first difference."""
        self.check_alive()
        with self.lock:
            for inputs, expected in recompute_elements(self._reader, self.query, self.ring).items():
                request = dict(zip(self.parameters, inputs, strict=True))
                given = f" for {request!r}" if request else ""
                compare_rows(f"view {self.name}{given}", expected, dict(self._items(request)))

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """The rows whose elements add up to that of a row; or what has no partner."""
        from ivme.views.view_reasons import element_reasons

        given = {v: parameters[name] for v, name in zip(self.query.input, self.query.parameters, strict=True)}
        return element_reasons(self._reader, self.query, row, given, present=present)

    # Batches

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        self._interpreter.build({relation: weighted(each) for relation, each in rows.items()})

    def apply(self, relation: str, rows: RowBatch) -> None:
        emitted = self._interpreter.stage(relation, weighted(rows))
        for _, delta in emitted.get(self.name, ()):
            for row, payload in delta.items():
                accumulate(self._emitted, row[: len(self.query.free)], payload)

    def _follow(self) -> None:
        """Maintains it from now on by a program that also emits changes; linear in the tables, once."""
        if not self._is_followed:
            blueprint = replace(self._plan.followed, lazy=False)
            program = program_of(Assembly(catalog_of({self.name: blueprint}), {}, exponents=False), self.name)
            interpreter = Interpreter(program, self.ring)
            interpreter.build({relation: weighted(self._reader.all_rows(relation)) for relation in self.relations})
            self._interpreter, self._is_followed = interpreter, True

    def _change(self) -> dict[Row, Any]:
        return dict(self._emitted)

    def _commit(self) -> None:
        self._interpreter.kernel.commit()
        self._emitted = {}

    def _roll_back(self) -> None:
        self._interpreter.kernel.roll_back()
        self._emitted = {}
