"""Why a row is in a view that users made, or why not: whichever way the view is maintained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ivme.engine.read.derivations import Derivations, Wanted
from ivme.engine.read.reasons import Finding, Reasons, Row
from ivme.engine.read.why import Partners
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.plan.assemble.plan import Plan
from ivme.query.model import HeadColumn, Query
from ivme.views.block_reasons import BlockReasons

Given = Mapping[str, Any]
"""The values that the inputs of a view are given, by variable."""


def reasons_of(reader: Reader, state: ViewState, row: Row, given: Given, *, present: bool) -> Reasons:
    """The reasons for a row at the values that its inputs are given: from marks where they show all keys, else from
    the tables. The caller holds the lock, and knows whether the row is there."""
    plan = state.plan
    shown = {column.source for column in state.typed.query.head}
    if plan is not None and plan.marks is not None and shown.issuperset(state.typed.query.output):
        return _marked(reader, state, plan, row, given, present=present)
    return told(state.name, row, findings_of(reader, state, row, given, present=present), present=present)


def told(view: str, row: Row, findings: tuple[Finding, ...], *, present: bool) -> Reasons:
    """Findings as the answer that users get: with the first few tuples of each."""
    return Reasons(view, row, present, tuple(finding.shortened() for finding in findings))


def findings_of(reader: Reader, state: ViewState, row: Row, given: Given, *, present: bool) -> tuple[Finding, ...]:
    """What is behind a row of a view, from its tables, or what is missing for it."""
    blocks, query = BlockReasons(reader), state.typed.written
    if state.plan is None:
        columns = dict(zip(state.table.column_names, row, strict=True))
        return blocks.behind(state.name, [columns], present=present, given=given)
    wanted = Wanted.of(zip((column.source for column in query.head), row, strict=True), given)
    derivations = Derivations(reader, query, [wanted], blocks)
    return derivations.present() if present else derivations.absent(state.name)


def element_reasons(reader: Reader, query: Query, row: Row, given: Given, *, present: bool) -> Reasons:
    """The rows whose elements of a ring add up to that of a row; or what has no partner, or that they add up to
    nothing."""
    plain = replace(query, head=tuple(HeadColumn(variable, variable) for variable in query.output))
    wanted = Wanted({**dict(zip(query.output, row, strict=True)), **given})
    derivations = Derivations(reader, plain, [wanted], BlockReasons(reader), every=True)
    if present or derivations.is_whole:
        found = derivations.present()
    else:
        found = derivations.absent(query.name)
    if derivations.is_whole and not present:
        found = (Finding("the sum of their elements", (), (), 0, found),)
    return told(query.name, row, found, present=present)


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
