"""What a view really costs: its operations, counted beside what is promised.

The view is made once more, alone, over a copy of its tables, so that nobody else's work is counted and nothing changes.
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
from ivme.plan.explain.explanation import Explanation
from ivme.plan.explain.measurement import MeasuredTable, Measurement
from ivme.query.model import Table
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions import Definitions

_ROWS = 100
"""So many rows of each table are tried."""

_MOST_READ = 10_000

Contents = list[tuple[Table, pa.Table, Codes]]


def measured(definitions: Definitions, name: str, query: str, options: Mapping[str, object]) -> Explanation:
    """The explanation of a query as a view with these options, with what was counted over the rows that there are."""
    names, contents = _needed(definitions, name, query, options)
    copy = type(definitions)(is_opening=False)
    copy.functions = definitions.functions
    try:
        chosen = _fill(copy, contents, random.Random(0))
        for each, known in definitions.views.items():
            if each in names and isinstance(known, View):
                copy.create_view(each, *known.made_with)
        view = copy.create_view(name, query, options)
        tables = tuple(_tried(copy, view, *each, chosen[each[0].name]) for each in contents)
        found = Measurement(tables, copy.runtime.backend.entries(), *_reading(copy, view))
        return replace(view.explain(), measured=found)
    finally:
        copy.close()


def _needed(
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


def _fill(copy: Definitions, contents: Contents, rng: random.Random) -> dict[str, list[int]]:
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


def _tried(
    copy: Definitions, view: View, table: Table, data: pa.Table, weights: Codes, chosen: list[int]
) -> MeasuredTable:
    """Each of the chosen rows is taken away, or added where rows only come, and what that took is taken back."""
    operations, seconds = list[int](), list[float]()
    backend = copy.runtime.backend
    for place in chosen:
        batch = Batch(copy.runtime)
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
