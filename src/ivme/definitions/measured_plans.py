"""What plans of a view take for what it is used for, counted rather than bounded.

Bounds hold for the worst tables that there may be; those that are there may be much kinder to one plan than to another.
Before a view gets another plan, both are tried over a copy of its tables: single rows of each table change, and the
latest requests are run again. Operations are the kernel's.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ivme.compile import CompiledView
from ivme.definitions.installing import install_view
from ivme.definitions.measuring import Contents, fill_tables, needed_contents, tried_changes
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions

_MOST_READ = 10_000


@dataclass(frozen=True, slots=True)
class CountedPlan:
    """The operations that a build, a changed row of each table, a request, and a row of an answer take on average."""

    build: int
    changes: Mapping[str, float]
    request: float
    row: float

    def work(self, changes: Mapping[str, int], requests: int, rows: int) -> float:
        """What so many changed rows of each table, requests, and rows read take."""
        changed = sum(number * self.changes.get(table, 0.0) for table, number in changes.items())
        return changed + requests * self.request + rows * self.row


def counted_plans(
    definitions: Definitions, view: View, plans: Iterable[CompiledView], asked: Iterable[Mapping[str, Any]]
) -> list[CountedPlan]:
    """The same view by several plans, each over a copy of its tables, with these requests."""
    query, options = view.made_with
    names, contents = needed_contents(definitions, view.name, query, options)
    copy = type(definitions)(is_opening=False)
    copy.functions = definitions.functions
    requests = list(asked)
    try:
        chosen = fill_tables(copy, contents, random.Random(0))
        for each, known in definitions.views.items():
            if each in names and isinstance(known, View):
                copy.create_view(each, *known.made_with)
        return [_counted(copy, plan, contents, chosen, requests) for plan in plans]
    finally:
        copy.close()


def _counted(
    copy: Definitions,
    plan: CompiledView,
    contents: Contents,
    chosen: Mapping[str, list[int]],
    asked: list[Mapping[str, Any]],
) -> CountedPlan:
    backend = copy.runtime.backend
    before = backend.operations
    with copy.runtime.lock, copy.change():
        view = install_view(copy.runtime, plan)
        copy.views[view.name] = view
    build = backend.operations - before
    tables = [tried_changes(copy, view, *each, chosen[each[0].name]) for each in contents]
    request, row = _reading(copy, view, asked)
    copy.drop_view(view.name)
    return CountedPlan(build, {each.table: each.mean for each in tables}, request, row)


def _reading(copy: Definitions, view: View, asked: list[Mapping[str, Any]]) -> tuple[float, float]:
    """The operations of a request, or without parameters of a row."""
    before = copy.runtime.backend.operations
    if view.parameters:
        for parameters in asked:
            view.to_arrow(**parameters)
        return (copy.runtime.backend.operations - before) / max(1, len(asked)), 0.0
    rows = sum(1 for _ in islice(view, _MOST_READ))
    return 0.0, (copy.runtime.backend.operations - before) / max(1, rows)
