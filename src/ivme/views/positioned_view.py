"""Reading a view by position: single rows, slices, samples and pages, by its ordered map where it has one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ivme.engine.ingest.row_batch import Layout
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.view_state import ViewState
from ivme.query.order import Order
from ivme.views.base_view import BaseView, Row
from ivme.views.ordered_reading import PageRequest, placed_row
from ivme.views.ordered_view import OrderedView


class PositionedView(BaseView):
    """A view whose rows may be in an ordered map: then a position costs O(log N), and nothing is sorted."""

    _runtime: Runtime
    state: ViewState

    @property
    def _mapped(self) -> OrderedView | None:
        """What has its rows in an ordered map, if it has no parameters."""
        group = self.state.group
        is_mapped = isinstance(group, OrderedView) and not self.parameters and group.positions is not None
        return group if is_mapped and isinstance(group, OrderedView) else None

    @property
    def is_mapped(self) -> bool:
        """Whether rows are found by their positions without reading the others."""
        return self._mapped is not None

    @property
    def own_order(self) -> Order | None:
        return None if isinstance(self.state.group, OrderedView) else super().own_order

    def _between(self, start: int, stop: int) -> list[Row]:
        group = self._mapped
        return super()._between(start, stop) if group is None else group.between(start, stop, self._layout)

    def _at(self, places: list[int]) -> list[Row]:
        if self._mapped is None:
            return super()._at(places)
        return [self._between(place, place + 1)[0] for place in places]

    @property
    def _layout(self) -> Layout:
        return self._runtime.catalog.layout(self.name)

    def known_size(self) -> int | None:
        """How many rows there are, if that is known without reading them: by positions, or by the size of a map."""
        with self._runtime.lock:
            self.check_readable()
            group, state = self.state.group, self.state
            if isinstance(group, ExternalView):
                return group.positions if isinstance(group, OrderedView) else None
            query, reading = state.typed.query, group.enumerations[state.name]
            is_once = bool(query.output) and (query.distinct or bool(query.aggregates))
            if not is_once or state.lazy or state.ring or reading.inputs or reading.branches or reading.guards:
                return None
            if len(reading.loops) != 1 or any(each.map != reading.loops[0].read.map for each in reading.factors):
                return None
            (loop,) = reading.loops
            is_whole = set(loop.new) == set(loop.read.variables) == set(reading.outputs)
            return group.sizes([loop.read.map])[0] if is_whole else None

    def page(self, request: PageRequest, parameters: Mapping[str, Any]) -> pa.Table:
        """A page of rows, by the ordered map if it has them in that order."""
        found = None if parameters else self.mapped_page(request)
        return super().page(request, parameters) if found is None else found

    def mapped_page(self, request: PageRequest) -> pa.Table | None:
        """A page of rows by the ordered map, O(log N) and O(1) a row; None if it does not have them in this order."""
        request.check()
        after = request.after
        with self._runtime.lock:
            self.check_readable()
            group = self._mapped
            if group is None or not group.has_order(request.order, places=after is not None):
                return None
            given = None if after is None else placed_row(self.name, self._layout.schema, after)
            return group.page(request.limit, request.offset, given, self._layout)
