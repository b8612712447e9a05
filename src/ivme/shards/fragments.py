"""A fragment of a view: some blocks of its text as a script of their own, over tables and other fragments.

Blocks that have a key in common are computed together in each shard, as a whole view with such a key is. What they read
of other fragments, these feed them. A union, a pairing or an order is no view by itself: as the last block of a
fragment it has one on top that shows its rows. The first rows in an order are those of the block beneath it, in that
order: shards then have their own first rows, which are put together where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from ivme.query.block_names import block_name
from ivme.query.model import Column, Query, Table
from ivme.query.order import Order
from ivme.query.pairing import Pairing, typed_pairing
from ivme.query.read_select import ReadSelect
from ivme.query.rewrite.script import Ordered
from ivme.query.shape import ordered_columns
from ivme.query.sql_pairing import is_pairing
from ivme.query.sql_script import SqlScript, renamed
from ivme.query.sql_union import is_union
from ivme.query.typed import typed
from ivme.query.union import Union, typed_union

_ROWS = "rows"
"""What the names of blocks begin with that a fragment adds."""


def reads_of(script: SqlScript, number: int) -> list[int]:
    """The blocks that a block reads."""
    numbers = {name: place for place, (name, _) in enumerate(script.selects)}
    return sorted({numbers[table.name] for table in _tables(script.selects[number][1]) if table.name in numbers})


def _tables(node: exp.Expr) -> Iterable[exp.Table]:
    return node.find_all(exp.Table)


def block_table(script: SqlScript, number: int, known: Sequence[Table], names: Mapping[str, str], name: str) -> Table:
    """What a block looks like as a table; `names` are those of the blocks before it, which are `known`."""
    block = script.selects[number][0]
    if block in script.ordered:
        rows = _named(known, names[script.ordered[block].rows])
        return Table(name, ordered_columns(rows.columns, script.ordered[block].order))
    made = script.block(number, known, names, name)
    if isinstance(made, Union):
        return typed_union(made)[1]
    if isinstance(made, Pairing):
        return typed_pairing(made)[1]
    return table_of(made, name)


def table_of(query: Query, name: str) -> Table:
    """The rows of a block that is a query, as a table."""
    return Table(name, tuple(Column(c.name, t) for c, t in zip(query.head, typed(query).head, strict=True)))


def _named(tables: Sequence[Table], name: str) -> Table:
    return next(table for table in tables if table.name == name)


def is_first_rows(order: Order) -> bool:
    """Whether an order shows the first of all rows, and nothing else."""
    is_plain = not order.groups and not order.rank and not order.windows and order.ranges is None
    return is_plain and order.limit is not None


def fragment(script: SqlScript, view: str, members: Sequence[int], name: str, tables: Sequence[Table]) -> ReadSelect:
    """Some blocks of a view's script, the last of which is shown by the view `name`. `tables` has all that they read.

    Blocks are called as in the whole view, so that messages name them alike.
    """
    names = {block: block_name(view, number) for number, (block, _) in enumerate(script.selects, 1)}
    inside = [script.selects[number][0] for number in members]
    outside = {block: called for block, called in names.items() if block not in inside}
    nodes = dict(script.selects)
    selects = {block: renamed(nodes[block], outside) for block in inside}
    called = {block: names[block] for block in inside} | {inside[-1]: block_name(name, 0), "": block_name(name, 0)}
    orders = {block: each for block, each in script.ordered.items() if block in inside}
    is_last = members[-1] == len(script) - 1
    made = replace(
        script,
        selects=tuple(selects.items()),
        ordered=orders,
        order=script.order if is_last else None,
        rules=script.rules if is_last else None,
        called=called,
    )
    for block in orders:
        made = _with_rows(made, block, outside, tables)
    made = _shown(made, inside[-1], tables)
    return ReadSelect(made.source, made.selects[-1][1], script=made)


def _shown(script: SqlScript, last: str, tables: Sequence[Table]) -> SqlScript:
    """A script that ends with a query, which shows the rows of its last block."""
    if last in script.ordered:
        if is_first_rows(script.ordered[last].order):
            return _in_order(script, last)
    elif not _is_passed_on(script):
        return _ending(script, script.selects)
    known, names = tuple(tables), dict[str, str]()
    for number, (block, _) in enumerate(script.selects):
        names[block] = script.name_of(number, "")
        known = (*known, block_table(script, number, known, names, names[block]))
    return _ending(script, (*script.selects, ("", select_all(known[-1].column_names, last))))


def _is_passed_on(script: SqlScript) -> bool:
    node = script.selects[-1][1]
    return is_union(node) or is_pairing(node)


def _ending(script: SqlScript, selects: Sequence[tuple[str, exp.Expr]]) -> SqlScript:
    return replace(script, selects=(*selects[:-1], ("", selects[-1][1])))


def _with_rows(script: SqlScript, block: str, outside: Mapping[str, str], tables: Sequence[Table]) -> SqlScript:
    """A script in which the rows of an order are a block, also where another fragment has them."""
    ordered = script.ordered[block]
    if ordered.rows not in outside:
        return script
    feed, name = outside[ordered.rows], f"{_ROWS} {ordered.rows}"
    orders = {**script.ordered, block: Ordered(name, ordered.order)}
    called = {**script.called, name: f"{script.called['']}{name}"}
    rows = {name: select_all(_named(tables, feed).column_names, feed)}
    return replace(script, selects=tuple((rows | dict(script.selects)).items()), ordered=orders, called=called)


def _in_order(script: SqlScript, last: str) -> SqlScript:
    """The rows of an order, as those of a view that has the order itself."""
    orders = {block: each for block, each in script.ordered.items() if block != last}
    rows = _ending(script, [each for each in script.selects if each[0] != last])
    return replace(rows, order=script.ordered[last].order, ordered=orders)


def select_all(columns: Iterable[str], relation: str) -> exp.Select:
    """SELECT with all columns of a relation, each by its name."""
    items = [exp.column(exp.to_identifier(c, quoted=True), "r").as_(exp.to_identifier(c, quoted=True)) for c in columns]
    table = exp.Table(this=exp.to_identifier(relation, quoted=True), alias=exp.TableAlias(this=exp.to_identifier("r")))
    return exp.select(*items).from_(table)
