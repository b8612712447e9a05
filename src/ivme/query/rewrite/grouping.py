"""HAVING, expressions over aggregates and grouping sets: a block of groups, and a SELECT that computes with its rows.

    SELECT a, SUM(b) / COUNT(*) AS mean FROM R GROUP BY a HAVING COUNT(*) > 1
    block#1: SELECT a, SUM(b) AS sum_b, COUNT(*) AS count FROM R GROUP BY a
             SELECT g.a, g.sum_b / g.count AS mean FROM block#1 AS g WHERE g.count > 1

ROLLUP, CUBE and GROUPING SETS are the union of one block for each set of keys; the other keys are NULL in its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.absent import as_branch, key_name, keys_of, padded, rows_of_keys
from ivme.query.rewrite.across import split_across
from ivme.query.rewrite.clauses import (
    condition_of,
    is_aggregated,
    items_of,
    or_of_no_rows,
    own_columns,
    own_nodes,
    own_nodes_of,
    replaced,
    set_where,
)
from ivme.query.rewrite.domains import Undecided
from ivme.query.rewrite.grouping_sets import (
    SETS,
    all_aggregates,
    computes_with_groups,
    grouping_of,
    has_total,
    key_of,
    unique,
)
from ivme.query.rewrite.parameters import without_parameters
from ivme.query.rewrite.qualify import Names
from ivme.query.rewrite.script import Script, aliased, column, fresh_name, select_from
from ivme.query.sql_union import union_of
from ivme.query.written import spelled

GROUPS = "g"


@dataclass(frozen=True, slots=True)
class Grouped:
    """A SELECT over the rows of groups; `keys` are the columns that GROUP BY had, by what they are now called."""

    select: exp.Select
    table: exp.Table
    keys: dict[tuple[str, str], str]
    bound: dict[str, exp.Expr]

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
        known = (before.sources, tables, before.merged, before.hidden, renamed, before.outer, self.bound)
        return Names(before.script, *known)


def split_groups(select: exp.Select, script: Script) -> Grouped | None:
    """The SELECT over a block of groups; None if its aggregates are whole columns already, or it has none."""
    if not is_aggregated(select) or not computes_with_groups(select):
        return None
    keys, sets = grouping_of(select)
    select, parameters = without_parameters(select, script)
    for key, parameter, _ in parameters:
        if any(
            exact_text(key) in map(exact_text, keys) and exact_text(key) not in map(exact_text, chosen)
            for chosen in sets
        ):
            message = f"the parameter :{parameter.name} is compared with a key that some groups leave out"
            error = script.source.unsupported(message, parameter, "group by it in all sets of keys")
            raise Undecided(parameter.name, error)
    keys, sets = _with_keys(keys, sets, [key for key, *_ in parameters])
    aggregates = all_aggregates(select)
    _check_grouping(aggregates, keys, script)
    columns: dict[str, str] = {}
    nodes: list[tuple[exp.Expr, str]] = []
    for node in (*keys, *aggregates):
        text = exact_text(node)
        if text not in columns:
            columns[text] = fresh_name(_wanted_name(node), columns.values())
            nodes.append((node, columns[text]))
    if not nodes:
        nodes.append((exp.Count(this=exp.Star()), "count"))
    given = [key for key, *_ in parameters]
    blocks = [_block(select, nodes, keys, chosen, script, is_one_of=len(sets)) for chosen in sets]
    if given and has_total(select):
        blocks = [_of_all_values(block, given, nodes, select, script) for block in blocks]
    name = script.add(blocks[0]) if len(blocks) == 1 else _union(blocks, nodes, script)
    named = {(key.table, key.name): columns[exact_text(key)] for key in keys if isinstance(key, exp.Column)}
    table = script.reference(name, GROUPS)
    made = _over_groups(select, table, columns)
    for found in (each for node in own_nodes_of(made) for each in [node] if isinstance(each, exp.Column)):
        if found.table != GROUPS:
            message = f"{found.name} is neither aggregated nor in GROUP BY"
            raise script.source.unsupported(message, found, "add it to GROUP BY, or aggregate it")
    by = [(column(GROUPS, columns[exact_text(key)]), each, comparison) for key, each, comparison in parameters]
    tests = [comparison(this=key.copy(), expression=each) for key, each, comparison in by]
    set_where(made, [*condition_of(made), *tests])
    return Grouped(made, table, named, {each.name: key for key, each, _ in by})


def _check_grouping(aggregates: list[exp.Expr], keys: list[exp.Expr], script: Script) -> None:
    """GROUPING is of keys: of anything else it would say nothing."""
    known = {exact_text(key) for key in keys}
    for node in aggregates:
        if isinstance(node, exp.Grouping | exp.GroupingId):
            for key in node.expressions or [node.this]:
                if key is not None and exact_text(key.unnest()) not in known:
                    message = f"{spelled(key)} is not in GROUP BY, and {node.key.upper()} is of keys"
                    raise script.source.unsupported(message, key, "name a key of GROUP BY")


def keys_with_queries(select: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY that have subqueries; positions become what they mean."""
    group = select.args.get("group")
    if group is None or group.args.get("all"):
        return []
    group.set(
        "expressions", [each if isinstance(each, SETS) else key_of(each, select).copy() for each in group.expressions]
    )
    return [each for each in group.expressions if any(isinstance(node, exp.Query) for node in own_nodes(each))]


def _with_keys(
    keys: list[exp.Expr], sets: list[list[exp.Expr]], more: list[exp.Expr]
) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """The keys with some that all sets have."""
    return unique([*keys, *more]), [unique([*chosen, *more]) for chosen in sets]


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
    left_out = {exact_text(key) for key in keys} - {exact_text(key) for key in chosen}
    groups = select.copy()
    for clause in ("having", "order", "limit", "offset", "distinct"):
        groups.set(clause, None)
    items = [
        aliased(node.copy(), name)
        for node, name in nodes
        if exact_text(node) not in left_out and not isinstance(node, exp.Grouping | exp.GroupingId)
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


def _of_all_values(
    block: exp.Select, keys: list[exp.Expr], nodes: list[tuple[exp.Expr, str]], select: exp.Select, script: Script
) -> exp.Select:
    """The total for each value of the parameters, which are all keys, with that of no rows where there are none."""
    rows = as_branch(block, script)
    values = {item.alias: item.unalias() for item in rows.expressions}
    names = {exact_text(node): name for node, name in nodes}
    mine = [names[exact_text(key)] for key in keys]
    constant = [name for name, value in values.items() if next(own_columns(value), None) is None]
    rest = [name for _, name in nodes if name not in (*mine, *constant)]
    right = rows.copy()
    right.set("expressions", [*keys_of([values[name] for name in mine]), *(aliased(values[n], n) for n in rest)])
    wanted = {found.table for key in keys for found in own_columns(key)}
    tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
    left = rows_of_keys(keys, [t for t in tables if t.alias_or_name in wanted], [], script, lambda made: made)
    made = script.rows_of(padded(left, right, script, nulls_equal=True))
    found = {item.alias: item.unalias() for item in made.expressions}
    items = {name: found[key_name(number)] for number, name in enumerate(mine, 1)}
    items |= {name: values[name] for name in constant}
    for node, name in nodes:
        if name in rest:
            items[name] = or_of_no_rows(found[name].copy(), node)
    made.set("expressions", [aliased(items[name].copy(), name) for _, name in nodes])
    return made


def _position(constant: exp.Expr, items: list[exp.Expr]) -> exp.Expr:
    """A constant among the keys, by its position: a number alone would be taken for one."""
    texts = [exact_text(item.unalias()) for item in items]
    return exp.Literal.number(texts.index(exact_text(constant)) + 1)


def _in_set(node: exp.Expr, name: str, known: dict[str, exp.Expr], left_out: set[str]) -> exp.Expr:
    """A column of the union, for one set of keys."""
    if name in known:
        return known[name].copy()
    if isinstance(node, exp.Grouping | exp.GroupingId):
        value = 0
        for key in node.expressions or [node.this]:
            value = 2 * value + int(exact_text(key.unnest()) in left_out)
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


def _over_groups(select: exp.Select, table: exp.Table, columns: dict[str, str]) -> exp.Select:
    def change(node: exp.Expr) -> exp.Expr | None:
        found = columns.get(exact_text(node))
        return None if found is None else column(GROUPS, found)

    outer = select_from(
        table.copy(), [aliased(replaced(inner, change), item.alias) for item, inner in items_of(select)]
    )
    outer.set("distinct", select.args.get("distinct"))
    set_where(outer, [replaced(each, change) for each in condition_of(select, "having")])
    return outer


def _wanted_name(node: exp.Expr) -> str:
    """A readable name for a column of groups."""
    if isinstance(node, exp.Column):
        return node.name
    argument = next((found.name for found in node.find_all(exp.Column)), "")
    return "_".join(part for part in (node.key, argument) if part)
