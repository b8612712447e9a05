"""A view's text as a query, over tables and the views beneath it as if these were tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ivme.plan.strategy.options import read_options
from ivme.query.block_names import block_name
from ivme.query.closures import closures_as_relations
from ivme.query.model import Column, Query, Table
from ivme.query.parse import as_asked, is_sql
from ivme.query.read_select import ReadSelect
from ivme.query.rewrite.clock import reads_clock
from ivme.query.rewrite.clock import with_expiry as expiring_text
from ivme.query.shape import script_shape, view_shape
from ivme.query.sql import one_statement
from ivme.query.sql_script import read_script
from ivme.query.typed import typed
from ivme.shards.catalog import ViewEntry, ViewText
from ivme.shards.fragments import fragment
from ivme.shards.functions import defined


def parse_view(entry: ViewEntry | ViewText, tables: tuple[Table, ...]) -> Query:
    """A view's query, over tables and the views beneath it as if they were tables."""
    if isinstance(entry, ViewEntry) and entry.block is not None:
        return _block(entry, tables)
    known = known_to(entry, tables)[-1][1] if isinstance(entry, ViewEntry) else tables
    options = dict(entry.options)
    query = as_asked(view_shape(entry.text, known, entry.name, defined(entry.functions)), options.get("semantics"))
    return closures_as_relations(query, options.get("graph", "digraph"))


def _block(entry: ViewEntry, tables: tuple[Table, ...]) -> Query:
    """The block of a text that an entry is, over tables and the blocks that feed it."""
    assert entry.block is not None
    known = (*tables, *entry.feeds)
    if entry.members:
        made = own_source(entry, known).script
        assert made is not None
        return replace(script_shape(made, known, entry.name), text=entry.text)
    script = read_script(entry.text, known, defined(entry.functions))
    names = {name: block_name(entry.view, number) for number, (name, _) in enumerate(script.selects, 1)}
    query = script.block(entry.block, known, names, entry.name)
    assert isinstance(query, Query), "other blocks are fragments"
    return query


def own_source(entry: ViewEntry, known: tuple[Table, ...]) -> ReadSelect:
    """The blocks of a fragment, over tables and what feeds it, which are `known`."""
    script = read_script(entry.text, known, defined(entry.functions))
    return fragment(script, entry.view, entry.members, entry.name, known)


def source_of(view: ViewEntry | ViewText, known: tuple[Table, ...]) -> str | ReadSelect:
    """What the engines of a view are to compute: its text, or a fragment of it."""
    return own_source(view, known) if isinstance(view, ViewEntry) and view.members else view.text


def with_expiry(text: str, options: Mapping[str, Any]) -> tuple[str, bool, dict[str, Any]]:
    """A text with the option `expire` as a condition, whether it then reads the clock, and its other options."""
    others = {name: value for name, value in options.items() if name != "expire"}
    if not isinstance(text, str) or not is_sql(text):
        return text, False, dict(options)
    expire = read_options(options).expire
    source, node = one_statement(text, functions={})
    if expire is None:
        return text, reads_clock(node), others
    return expiring_text(source, node, expire), True, others


def view_as_table(view: ViewEntry | ViewText, tables: tuple[Table, ...]) -> Table:
    """What is known of a view as if it were a table."""
    query = parse_view(view, tables)
    return Table(view.name, tuple(Column(c.name, t) for c, t in zip(query.head, typed(query).head, strict=True)))


def known_to(entry: ViewEntry, tables: tuple[Table, ...]) -> list[tuple[ViewEntry | ViewText, tuple[Table, ...]]]:
    """The views that a view's engine makes beneath it, and itself, each with the tables and views that it sees."""
    if entry.feeds:
        return [(entry, (*tables, *entry.feeds))]
    levels: list[tuple[ViewEntry | ViewText, tuple[Table, ...]]] = []
    known = tables
    for view in entry.beneath:
        levels.append((view, known))
        known = (*known, view_as_table(view, known))
    return [*levels, (entry, known)]


def rests_on(entry: ViewEntry, query: Query, tables: tuple[Table, ...]) -> list[Table]:
    """The tables that a view or a view beneath it reads."""
    read = set(_reads(query))
    for view, known in known_to(entry, tables)[:-1]:
        read |= set(_reads(parse_view(view, known)))
    return [table for table in (*tables, *entry.feeds) if table.name in read]


def _reads(query: Query) -> list[str]:
    """The relations that a query reads, those of closures included."""
    return [table.name if table.closure_of is None else table.closure_of.relation for table in query.tables]
