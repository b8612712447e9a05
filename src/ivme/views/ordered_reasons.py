"""Why a row is in a view with ORDER BY or LIMIT, or why not: its position, and what makes it a row of the block below.

The position is found by listing the block's rows in their order: linear in them, as reasons from tables are.
"""

from __future__ import annotations

from typing import Any

from ivme.engine.read.derivations import Derivations
from ivme.engine.read.reasons import Finding, Reasons, Row
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.views.block_reasons import BlockReasons
from ivme.views.ordered_view import OrderedView


def is_told(reader: Reader, state: ViewState) -> bool:
    """Whether a view shows the rows of a block that joins tables, in one order, and has no parameters."""
    group: Any = state.group
    is_ordered = type(group) is OrderedView and group.has_positions
    return is_ordered and reader.catalog.views[group.inner].plan is not None


def order_reasons(reader: Reader, state: ViewState, row: Row, *, present: bool) -> Reasons:
    """The position of a row, from 1, and its partners; or that it is beyond the limit, or what its block lacks."""
    group: Any = state.group
    below = reader.catalog.views[group.inner]
    query = below.typed.written
    names = [column.name for column in state.typed.query.head]
    sources = {column.name: column.source for column in query.head}
    known = {
        source: value for name, value in zip(names, row, strict=True) if isinstance(source := sources.get(name), str)
    }
    derivations = Derivations(reader, query, known, BlockReasons(reader))
    position = group.position_of(row)
    if position is None:  # then it is not there
        return Reasons(state.name, row, present, derivations.reasons(state.name, row, present=False).findings)
    partners = derivations.reasons(state.name, row, present=True).findings
    if not present:
        partners = (Finding(state.name, (("position", position),), ()),)
    placed = Finding(f"position {position} of {group.order_text}", (), (row,), 0, partners)
    return Reasons(state.name, row, present, (placed,))
