"""HAVING, expressions over aggregates and grouping sets: a block of groups, and a SELECT that computes with its rows.

    SELECT a, SUM(b) / COUNT(*) AS mean FROM R GROUP BY a HAVING COUNT(*) > 1
    block#1: SELECT a, SUM(b) AS sum_b, COUNT(*) AS count FROM R GROUP BY a
             SELECT g.a, g.sum_b / g.count AS mean FROM block#1 AS g WHERE g.count > 1

ROLLUP, CUBE and GROUPING SETS are the union of one block for each set of keys; the other keys are NULL in its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from ivme.query.rewrite.absent import as_branch
from ivme.query.rewrite.across import split_across
from ivme.query.rewrite.clauses import (
    aggregates_in,
    condition_of,
    is_aggregated,
    items_of,
    own_columns,
    own_nodes,
    own_nodes_of,
    replaced,
    set_where,
)
from ivme.query.rewrite.parameters import without_parameters
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_from
from ivme.query.sql_aggregates import is_aggregate
from ivme.query.sql_text import DIALECT
from ivme.query.sql_union import union_of
from ivme.query.written import spelled

GROUPS = "g"


@dataclass(frozen=True, slots=True)
class Grouped:
    """A SELECT over the rows of groups; `keys` are the columns that GROUP BY had, by what they are now called."""

    select: exp.Select
    table: exp.Table
    keys: dict[tuple[str, str], str]

    def names(self, before: Names) -> Names:
        """What subqueries of SELECT and HAVING see: the keys, under the names that users have for them."""
        renamed: dict[tuple[str, str], exp.Expr] = {}
        for alias, columns in before.sources.items():
            for name in columns:
                current = before.column(alias, name)
                found = self.keys.get((current.table, current.name)) if isinstance(current, exp.Column) else None
                if found is not None:
                    renamed[alias, name] = column(GROUPS, found)
        tables = {GROUPS: self.table}
        return Names(before.script, before.sources, tables, before.merged, before.hidden, renamed, before.outer)


def split_groups(select: exp.Select, script: Script) -> Grouped | None:
    """The SELECT over a block of groups; None if its aggregates are whole columns already, or it has none."""
    if not is_aggregated(select) or not _computes_with_groups(select):
        return None
    keys, sets = _grouping(select)
    select, parameters = without_parameters(select, script)
    keys, sets = _with_keys(keys, sets, [key for key, _ in parameters])
    aggregates = _all_aggregates(select)
    _check_grouping(aggregates, keys, script)
    columns: dict[str, str] = {}
    nodes: list[tuple[exp.Expr, str]] = []
    for node in (*keys, *aggregates):
        text = _text(node)
        if text not in columns:
            columns[text] = fresh_name(_wanted_name(node), columns.values())
            nodes.append((node, columns[text]))
    if not nodes:
        nodes.append((exp.Count(this=exp.Star()), "count"))
    blocks = [_block(select, nodes, keys, chosen, script, is_one_of=len(sets)) for chosen in sets]
    name = script.add(blocks[0]) if len(blocks) == 1 else _union(blocks, nodes, script)
    named = {(key.table, key.name): columns[_text(key)] for key in keys if isinstance(key, exp.Column)}
    table = script.reference(name, GROUPS)
    made = _over_groups(select, table, columns)
    for found in (each for node in own_nodes_of(made) for each in [node] if isinstance(each, exp.Column)):
        if found.table != GROUPS:
            message = f"{found.name} is neither aggregated nor in GROUP BY"
            raise script.source.unsupported(message, found, "add it to GROUP BY, or aggregate it")
    tests = [exp.EQ(this=column(GROUPS, columns[_text(key)]), expression=each) for key, each in parameters]
    set_where(made, [*condition_of(made), *tests])
    return Grouped(made, table, named)


def _check_grouping(aggregates: list[exp.Expr], keys: list[exp.Expr], script: Script) -> None:
    """GROUPING is of keys: of anything else it would say nothing."""
    known = {_text(key) for key in keys}
    for node in aggregates:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            for key in node.expressions or [node.this]:
                if key is not None and _text(key.unnest()) not in known:
                    message = f"{spelled(key)} is not in GROUP BY, and {node.key.upper()} is of keys"
                    raise script.source.unsupported(message, key, "name a key of GROUP BY")


def keys_with_queries(select: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY that have subqueries; positions become what they mean."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        return []
    group.set(
        "expressions", [each if isinstance(each, _SETS) else _key(each, select).copy() for each in group.expressions]
    )
    return [each for each in group.expressions if any(isinstance(node, exp.Query) for node in own_nodes(each))]


def _with_keys(
    keys: list[exp.Expr], sets: list[list[exp.Expr]], more: list[exp.Expr]
) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """The keys with some that all sets have."""
    return _unique([*keys, *more]), [_unique([*chosen, *more]) for chosen in sets]


_ROWS = "#rows"


def _block(
    select: exp.Select,
    nodes: list[tuple[exp.Expr, str]],
    keys: list[exp.Expr],
    chosen: list[exp.Expr],
    script: Script,
    *,
    is_one_of: int,
) -> exp.Select:
    """The groups by some of the keys: those keys, and the aggregates.

    The group of all rows beside other groups is there only if there are rows, as in Spark; alone it is always there.
    """
    is_total = not chosen and is_one_of > 1
    left_out = {_text(key) for key in keys} - {_text(key) for key in chosen}
    groups = select.copy()
    for clause in ("having", "order", "limit", "offset", "distinct"):
        groups.set(clause, None)
    items = [
        aliased(node.copy(), name)
        for node, name in nodes
        if _text(node) not in left_out and not isinstance(node, exp.Grouping | exp.GroupingId)
    ]
    shown = items or [aliased(exp.Count(this=exp.Star()), "#count")]
    rows_there = [aliased(exp.Count(this=exp.Star()), _ROWS)] if is_total else []
    groups.set("expressions", [*shown, *rows_there])
    by = [_position(key, items) if next(own_columns(key), None) is None else key.copy() for key in chosen]
    groups.set("group", exp.Group(expressions=by) if chosen else None)
    made = split_across(groups, script)
    if not is_total and not left_out and not any(isinstance(node, exp.Grouping | exp.GroupingId) for node, _ in nodes):
        return made
    rows = script.rows_of(script.add(made))
    known = {item.alias: item.unalias() for item in rows.expressions}
    rows.set("expressions", [aliased(_in_set(node, name, known, left_out), name) for node, name in nodes])
    if is_total:
        set_where(rows, [exp.GT(this=known[_ROWS].copy(), expression=exp.Literal.number(0))])
    return rows


def _position(constant: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """A constant among the keys, by its position: a number alone would be taken for one."""
    texts = [_text(item.unalias()) for item in items]
    return exp.Literal.number(texts.index(_text(constant)) + 1)


def _in_set(node: exp.Expr, name: str, known: dict[str, exp.Expr], left_out: set[str]) -> exp.Expr:
    """A column of the union, for one set of keys."""
    if name in known:
        return known[name].copy()
    if isinstance(node, exp.Grouping | exp.GroupingId):
        value = 0
        for key in node.expressions or [node.this]:
            value = 2 * value + int(_text(key.unnest()) in left_out)
        return exp.Literal.number(value)
    return exp.Null()


def _union(blocks: list[exp.Select], nodes: list[tuple[exp.Expr, str]], script: Script) -> str:
    branches = []
    for block in blocks:
        branch = as_branch(block, script).copy()
        values = {item.alias: item.unalias() for item in branch.expressions}
        branch.set("expressions", [aliased(values[name].copy(), name) for _, name in nodes])
        branches.append(branch)
    return script.add(union_of(branches))


def _computes_with_groups(select: exp.Select) -> bool:
    """Whether something is computed from aggregates, or rows of groups are filtered or made distinct."""
    if select.args.get("having") is not None or select.args.get("distinct") is not None:
        return True
    keys, sets = _grouping(select)
    group = select.args.get("group")
    if len(sets) != 1 or len(sets[0]) != len(keys) or (group is not None and group.find(*_SETS) is not None):
        return True
    texts = {_text(key) for key in keys}
    shown = {_text(inner) for _, inner in items_of(select)}
    if not texts <= shown and not _all_aggregates(select):
        return True  # rows repeat
    for _, inner in items_of(select):
        whole = (isinstance(inner, exp.AggFunc) or is_aggregate(inner)) and not isinstance(inner, exp.Filter)
        if not whole and _text(inner) not in texts:
            return True
    return False


def _grouping(select: exp.Select) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """The keys of GROUP BY, and the sets of them that rows are grouped by: one, unless ROLLUP and its like say more."""
    group = select.args.get("group")
    if group is None:
        return [], [[]]
    if group.args.get("all"):
        keys = [inner for _, inner in items_of(select) if not aggregates_in(inner)]
        return keys, [keys]
    plain = [_key(node, select) for node in group.expressions if not isinstance(node, _SETS)]
    parts = [[[key]] for key in plain]
    for node in (*group.expressions, *(each for name in _WORDS for each in group.args.get(name) or ())):
        if isinstance(node, _SETS):
            if not node.expressions:  # GROUP BY a, b WITH ROLLUP
                parts = [_rolled(node, [[key] for key in plain])]
            else:
                parts.append(_sets(node, select))
    sets = [_unique([key for part in chosen for key in part]) for chosen in product(*parts)] if parts else [[]]
    return _unique([key for part in parts for chosen in part for key in chosen]), sets


_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_WORDS = ("rollup", "cube", "grouping_sets")


def _sets(node: exp.Expr, select: exp.Select) -> list[list[exp.Expr]]:
    if isinstance(node, exp.GroupingSets):
        found: list[list[exp.Expr]] = []
        for each in node.expressions:
            found += _sets(each, select) if isinstance(each, _SETS) else [_listed(each, select)]
        return found
    return _rolled(node, [_listed(each, select) for each in node.expressions])


def _rolled(node: exp.Expr, keys: list[list[exp.Expr]]) -> list[list[exp.Expr]]:
    if isinstance(node, exp.Rollup):
        chosen = [tuple(range(count)) for count in range(len(keys), -1, -1)]
    else:
        chosen = [c for count in range(len(keys), -1, -1) for c in combinations(range(len(keys)), count)]
    return [[key for place in places for key in keys[place]] for places in chosen]


def _listed(node: exp.Expr, select: exp.Select) -> list[exp.Expr]:
    inner = node.expressions if isinstance(node, exp.Tuple) else [node]
    return [_key(each, select) for each in inner]


def _unique(keys: list[exp.Expr]) -> list[exp.Expr]:
    return list({_text(key): key for key in keys}.values())


def _key(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """A key of GROUP BY; a number is a position in SELECT."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        items = items_of(select)
        if 1 <= int(node.this) <= len(items):
            return items[int(node.this) - 1][1]
    return node


def _all_aggregates(select: exp.Select) -> list[exp.Expr]:
    places = [inner for _, inner in items_of(select)] + condition_of(select, "having")
    return [found for place in places for found in aggregates_in(place)]


def _over_groups(select: exp.Select, table: exp.Table, columns: dict[str, str]) -> exp.Select:
    def change(node: exp.Expr) -> exp.Expr | None:
        found = columns.get(_text(node))
        return None if found is None else column(GROUPS, found)

    outer = select_from(
        table.copy(), [aliased(replaced(inner, change), item.alias) for item, inner in items_of(select)]
    )
    outer.set("distinct", select.args.get("distinct"))
    set_where(outer, [replaced(each, change) for each in condition_of(select, "having")])
    return outer


def _text(node: exp.Expr) -> str:
    return node.sql(dialect=DIALECT, comments=False)


def _wanted_name(node: exp.Expr) -> str:
    """A readable name for a column of groups."""
    if isinstance(node, exp.Column):
        return node.name
    argument = next((found.name for found in node.find_all(exp.Column)), "")
    return "_".join(part for part in (node.key, argument) if part)
