"""Fills the maps of views from whole relations, as far as they are not filled yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ivme.engine.runtime.shared_views import SharedViews
from ivme.plan.ir import program as ir

if TYPE_CHECKING:
    from ivme.plan.assemble.assembled import AssembledView


def fill_group(
    group: SharedViews,
    changed: Iterable[str],
    filled: frozenset[str],
    run: Callable[[list[ir.Step]], object],
    *,
    is_new: bool,
) -> None:
    """Fills the maps of views that are not filled yet; `run` runs steps over whole relations."""
    for view in (group.views[name] for name in changed):
        steps = list(view.assembly.fill(filled))
        if is_new and group.rebalancer is not None and group.rebalancer.partitions[0].heavy not in filled:
            run(steps)
            group.rebalancer.start()
            filled, steps = filled.union(_added(steps)), []
        steps += () if view.blueprint.lazy else _build(view, filled)
        filled = filled.union(_added(steps))
        if steps:
            run(steps)


def _build(view: AssembledView, filled: frozenset[str]) -> tuple[ir.Step, ...]:
    """What fills its views, but for those that are filled."""
    return view.build if filled.isdisjoint(_added(view.build)) else view.assembly.build(view.name, filled)


def _added(steps: Iterable[ir.Step]) -> set[str]:
    """The maps that steps add to."""
    return {step.map for step in steps if isinstance(step, ir.Add)}
