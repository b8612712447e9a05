"""What a view really costs: its operations, counted beside what is promised.

The view is made once more, alone, over a copy of its tables, so that no other work is counted and nothing changes.
Then single rows of each table go, and each change is taken back; of a table that only grows they come. Operations are
the kernel's: entries that are looked up, visited or changed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ivme.compile import Request, compile_view
from ivme.engine.backend import Codes
from ivme.engine.runtime.batch import Batch
from ivme.plan.explain.measurement import MeasuredTable, Measurement
from ivme.query.model import Table
from ivme.view import View
from ivme.views.base_view import BaseView

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.plan.explain.explanation import Explanation

_ROWS = 100
"""So many rows of each table are tried."""

_MOST_READ = 10_000

Contents = list[tuple[Table, pa.Table, Codes]]


def measured(definitions: Definitions, name: str, query: str, options: Mapping[str, object]) -> Explanation:
    """The explanation of a query as a view with these options, with what was counted over the rows that there are."""
    names, contents = needed_contents(definitions, name, query, options)
    copy = type(definitions)(is_opening=False)
    copy.functions = definitions.functions
    try:
        chosen = fill_tables(copy, contents, random.Random(0))
        for each, known in definitions.views.items():
            if each in names and isinstance(known, View):
                copy.create_view(each, *known.made_with)
        view = copy.create_view(name, query, options, _plan_of(definitions, name))
        tables = tuple(tried_changes(copy, view, *each, chosen[each[0].name]) for each in contents)
        requests, operations = _asked(copy, view, definitions.views.get(name))
        reading = _reading(copy, view)
        found = Measurement(tables, copy.runtime.backend.entries(), *reading, requests, operations)
        return replace(view.explain(), measured=found)
    finally:
        copy.close()


def _plan_of(definitions: Definitions, name: str) -> str | None:
    """The plan that a view has, as text: what it was used for may have changed it. None for one of several blocks, or
    one that calls functions, which no text holds."""
    state, view = definitions.catalog.views.get(name), definitions.views.get(name)
    if state is None or state.plan is None or definitions.blocks_of(name) or not isinstance(view, View) or view.calls:
        return None
    from ivme.plan.plan_text import plan_text

    return plan_text(state.explanation, state.plan)


def _asked(copy: Definitions, view: View, original: BaseView | None) -> tuple[int, float]:
    """How many of the latest requests were run again, and how many operations each took."""
    known = original.state.observed.asked if isinstance(original, View) and view.parameters else ()
    requests = list(known)
    before = copy.runtime.backend.operations
    for parameters in requests:
        view.to_arrow(**parameters)
    return len(requests), (copy.runtime.backend.operations - before) / max(1, len(requests))


def needed_contents(
    definitions: Definitions, name: str, query: str, options: Mapping[str, object]
) -> tuple[set[str], Contents]:
    """The relations that a query reads, also through views, and the rows of the tables among them."""
    with definitions.runtime.lock:
        relations = tuple(each for each in definitions.relations() if each.name.lower() != name.lower())
        functions = dict(definitions.functions.defined)
        compiled = compile_view(Request(query, relations, options, functions=functions))
        waiting, found = [table.name for table in compiled.sources], set[str]()
        while waiting:
            each = definitions.owner(waiting.pop())
            if each not in found:
                found.add(each)
                states = [
                    state for known, state in definitions.catalog.views.items() if definitions.owner(known) == each
                ]
                waiting += [relation for state in states for relation in state.relations]
        tables = [state.table for known, state in definitions.catalog.tables.items() if known in found]
        return found, [(table, *definitions.runtime.reader.contents(table.name)) for table in tables]


def fill_tables(copy: Definitions, contents: Contents, rng: random.Random) -> dict[str, list[int]]:
    """Makes the tables with their rows, and chooses some of each; what only grows is without these at first."""
    chosen: dict[str, list[int]] = {}
    for table, data, weights in contents:
        there = np.flatnonzero(weights > 0).tolist()
        most = 0 if table.static else len(there) // 2 if table.append_only else len(there)
        chosen[table.name] = sorted(rng.sample(there, min(_ROWS, most)))
        kept = weights.copy()
        if table.append_only:
            kept[chosen[table.name]] = 0
        some = np.flatnonzero(kept)
        copy.create_table(table)
        copy.runtime.load({table.name: (data.take(some), kept[some])})
    return chosen


def tried_changes(
    copy: Definitions, view: View, table: Table, data: pa.Table, weights: Codes, chosen: list[int]
) -> MeasuredTable:
    """Each of the chosen rows is taken away, or added where rows only come, and what that took is taken back."""
    operations, seconds = list[int](), list[float]()
    backend = copy.runtime.backend
    for place in chosen:
        batch = Batch(copy.runtime).begin()
        (batch.insert if table.append_only else batch.delete)(table.name, data.slice(place, 1))
        before, start = backend.operations, perf_counter()
        after, end = batch.look(lambda: (backend.operations, perf_counter()))
        operations.append(after - before)
        seconds.append(end - start)
    promised = view.explain().updates.get(table.name)
    mean, time = (sum(each) / max(1, len(chosen)) for each in (operations, seconds))
    told = "static" if table.static else "" if promised is None else str(promised)
    return MeasuredTable(
        table.name, int(weights.sum()), told, len(chosen), mean, max(operations, default=0), time * 1_000_000
    )


def _reading(copy: Definitions, view: View) -> tuple[int | None, float]:
    """How many rows were read, and how many operations each took."""
    if view.parameters:
        return None, 0.0
    before = copy.runtime.backend.operations
    rows = sum(1 for _ in islice(view, _MOST_READ))
    return rows, (copy.runtime.backend.operations - before) / max(1, rows)
