"""What the options of a view promise about its tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ivme.errors import PlanError
from ivme.plan.strategy.options import Options
from ivme.query.model import Query


def with_promises(query: Query, options: Options) -> Query:
    """The query over tables that promise what the options say about them."""
    append_only = _named(query, "append_only", options.append_only)
    static = _named(query, "static", options.static)
    _named(query, "changes", (name for name, _ in options.changes))
    if isinstance(options.epsilon, tuple):
        _named(query, "epsilon", (name for name, _ in options.epsilon))
    return query.with_tables(
        replace(
            table,
            append_only=table.append_only or table.name in append_only,
            static=table.static or table.name in static,
        )
        for table in query.tables
    )


def _named(query: Query, option: str, names: Iterable[str]) -> set[str]:
    """The query's tables of these names, whatever their case."""
    known = {table.name.lower(): table.name for table in query.tables}
    found = set()
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(known.values())
            raise PlanError(f"option {option} names {name}, which is not a table of the query; its tables are {listed}")
        found.add(known[name.lower()])
    return found
