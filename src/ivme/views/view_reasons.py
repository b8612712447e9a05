"""Why a row is in a view that users made, or why not: whichever way the view is maintained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.engine.read.derivations import Derivations
from ivme.engine.read.reasons import Reasons, Row
from ivme.engine.read.why import Partners
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import PlanError
from ivme.plan.assemble.plan import Plan
from ivme.views.block_reasons import BlockReasons
from ivme.views.ordered_reasons import is_told, order_reasons


def reasons_of(reader: Reader, state: ViewState, row: Row, given: Mapping[str, Any], *, present: bool) -> Reasons:
    """The reasons for a row at the values that its inputs are `given`: from marks where they show all keys, from the
    order of the view, or from its tables. The caller holds the lock, and knows whether the row is there."""
    plan = state.plan
    if plan is None and not is_told(reader, state):
        message = (
            f"is not a join of tables, but maintained by {state.explanation.strategy}; ask the views that it reads"
        )
        raise PlanError(f"view {state.name} {message}")
    if plan is None:
        return order_reasons(reader, state, row, given, present=present)
    shown = {column.source for column in state.typed.query.head}
    if plan.marks is not None and shown.issuperset(state.typed.query.output):
        return _marked(reader, state, plan, row, given, present=present)
    query = state.typed.written
    values = zip((column.source for column in query.head), row, strict=True)
    known = {source: value for source, value in values if isinstance(source, str)} | dict(given)
    return Derivations(reader, query, known, BlockReasons(reader)).reasons(state.name, row, present=present)


def _marked(
    reader: Reader, state: ViewState, plan: Plan, row: Row, given: Mapping[str, Any], *, present: bool
) -> Reasons:
    query, domain = state.typed.query, state.finisher.domain
    shown = {column.source: value for column, value in zip(query.head, row, strict=True)}
    values = {**{str(v): shown[v] for v in query.output}, **given}
    originals = dict(plan.blueprint.leaves.inputs)
    free = [*originals, *query.output]
    codes = {v: domain(originals.get(v, v)).find_value(values[originals.get(v, v)]) for v in free}
    return Partners(reader, state, plan, values).reasons(row, codes, present=present)
