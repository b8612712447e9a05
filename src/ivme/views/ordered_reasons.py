"""Why a row is in a view with ORDER BY or LIMIT, or why not: its position, and what makes it a row of the block below.

The position is found by listing the block's rows in their order: linear in them, as reasons from tables are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.engine.read.derivations import MOST_SHOWN, Derivations
from ivme.engine.read.reasons import Finding, Reasons, Row, shown
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.views.block_reasons import BlockReasons
from ivme.views.first_rows_view import FirstRowsView
from ivme.views.ordered_view import OrderedView
from ivme.views.range_totals import RangeTotals
from ivme.views.range_view import RangeView


def is_told(reader: Reader, state: ViewState) -> bool:
    """Whether a view shows the rows of a block that joins tables, all or those of a request in one order."""
    group: Any = state.group
    if type(group) not in (OrderedView, RangeView, FirstRowsView, RangeTotals):
        return False
    return bool(group.has_positions) and reader.catalog.views[group.inner].plan is not None


def order_reasons(reader: Reader, state: ViewState, row: Row, given: Mapping[str, Any], *, present: bool) -> Reasons:
    """The position of a row, from 1, and its partners; or that it is beyond the limit or out of the range that the
    `given` values of parameters have, or what its block lacks."""
    group: Any = state.group
    query = reader.catalog.views[group.inner].typed.written
    names = [column.name for column in state.typed.query.head]
    sources = {column.name: column.source for column in query.head if isinstance(column.source, str)}
    known = {sources[name]: value for name, value in zip(names, row, strict=True) if name in sources}
    values = tuple(given[variable] for variable in state.typed.query.input)
    if isinstance(group, RangeTotals):
        return _total_reasons(reader, state, row, values, present=present)
    known |= group.known_below(sources, values)
    derivations = Derivations(reader, query, known, BlockReasons(reader))
    position = group.position_of(row, values)
    if position is None:
        if derivations.is_whole and not query.aggregates:
            at = tuple(zip(state.typed.query.parameters, values, strict=True))
            return Reasons(state.name, row, present, (Finding("the range", at, ()),))
        return Reasons(state.name, row, present, derivations.reasons(state.name, row, present=False).findings)
    partners = derivations.reasons(state.name, row, present=True).findings
    if not present:
        partners = (Finding(state.name, (("position", position),), ()),)
    if present and not group.order_text:
        return Reasons(state.name, row, present, partners)
    placed = Finding(f"position {position} of {group.order_text}", (), (row,), 0, partners)
    return Reasons(state.name, row, present, (placed,))


def _total_reasons(reader: Reader, state: ViewState, row: Row, values: Row, *, present: bool) -> Reasons:
    """The rows in the range that a total adds up, those of its group; or that there are none, or another total."""
    group: Any = state.group
    query = reader.catalog.views[group.inner].typed.written
    sources = {column.name: str(column.source) for column in query.head}
    keys = group.keys_of(row)
    rows = [each for each in group.named_rows(values) if all(each[name] == value for name, value in keys.items())]
    at = tuple(zip(state.typed.query.parameters, values, strict=True))
    if not rows:
        return Reasons(state.name, row, present, (Finding("the range", at, ()),))
    found: dict[Finding, None] = {}
    for each in rows[:MOST_SHOWN]:
        known = {source: each[name] for name, source in sources.items() if name in each and source in query.output}
        derived = Derivations(reader, query, known, BlockReasons(reader)).reasons(state.name, row, present=True)
        found.update(dict.fromkeys(derived.findings))
    if present:
        return Reasons(state.name, row, present, tuple(found))
    return Reasons(state.name, row, present, (Finding(f"the total {shown(row)}", at, (), 0, tuple(found)),))
