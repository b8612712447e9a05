"""Installs planned views in the runtime of a database."""

from __future__ import annotations

from functools import partial

from ivme.closure.install import add_closure, add_closures
from ivme.compile import CompiledView
from ivme.compiled_blocks import CompiledPairing, CompiledUnion
from ivme.engine.runtime.build_beside import BuildBeside, build_beside
from ivme.engine.runtime.runtime import Runtime
from ivme.query.order import Order
from ivme.view import View
from ivme.views.asof_view import AsofView
from ivme.views.closure_view import ClosureView
from ivme.views.first_rows_view import FirstRowsView
from ivme.views.listed_view import ListedView
from ivme.views.ordered_view import OrderedView
from ivme.views.range_join_view import RangeJoinView
from ivme.views.range_totals import RangeTotals
from ivme.views.range_view import RangeView
from ivme.views.union_view import UnionView
from ivme.views.window_request_view import WindowRequestView
from ivme.views.window_view import WindowView


def start_build(runtime: Runtime, view: CompiledView) -> BuildBeside | None:
    """Builds a large view while others write, if it can be."""
    return None if view.ring or view.blocks else build_beside(runtime.catalog, view.name, view.typed, view.plan)


def install_view(runtime: Runtime, view: CompiledView, build: BuildBeside | None = None) -> View:
    """Fills a view, and the closures that it reads; within a change of the catalog, which undoes it on any error."""
    for block in view.blocks:
        if isinstance(block, CompiledView):
            install_view(runtime, block)
        elif isinstance(block, CompiledPairing):
            _install_pairing(runtime, block)
        else:
            _install_union(runtime, block)
    made = view.typed, view.explanation
    kind = ListedView if view.typed.query.lists else View
    if view.order is not None:
        ordered = _ordered_kind(view.order)(view.typed.query, view.ordered, view.order, runtime.reader)
        return kind(runtime, runtime.installation.add_block(*made, view.table, ordered))
    if view.plan is None:
        return ClosureView(runtime, add_closure(runtime, *made, view.table, view.graph))
    add_closures(runtime, view.typed.query)
    built = None if build is None else build.image()
    state = runtime.installation.add_view(
        view.name, *made, view.plan, view.table, ring=view.ring, prepared=view.assembled, built=built
    )
    return kind(runtime, state)


def _ordered_kind(order: Order) -> type[OrderedView]:
    if order.windows:
        return WindowView if order.ranges is None else WindowRequestView
    if order.ranges is None:
        return OrderedView
    if not order.ranges.spans:
        return FirstRowsView
    return RangeTotals if order.ranges.totals else RangeView


def _install_union(runtime: Runtime, block: CompiledUnion) -> None:
    types = [type_ for column in block.table.columns if (type_ := column.type) is not None]
    union = UnionView(block.union, types, runtime.catalog, partial(runtime.reader.rows_to_feed, each=True))
    runtime.installation.add_block(block.typed, block.explanation, block.table, union)


def _install_pairing(runtime: Runtime, block: CompiledPairing) -> None:
    types = [type_ for column in block.table.columns if (type_ := column.type) is not None]
    kind = AsofView if block.pairing.first else RangeJoinView
    paired = kind(block.pairing, types, runtime.reader)
    runtime.installation.add_block(block.typed, block.explanation, block.table, paired)
