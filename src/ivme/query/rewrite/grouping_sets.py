"""The keys of GROUP BY, and the sets of them that ROLLUP, CUBE and GROUPING SETS say."""

from __future__ import annotations

from itertools import combinations, product

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.rewrite.clauses import aggregates_in, condition_of, is_aggregated, items_of, own_columns
from ivme.query.sql_aggregates import is_aggregate
from ivme.query.sql_text import SqlText
from ivme.query.written import spelled


def computes_with_groups(select: exp.Select) -> bool:
    """Whether something is computed from aggregates, or rows of groups are filtered or made distinct."""
    if select.args.get("having") is not None or select.args.get("distinct") is not None:
        return True
    keys, sets = grouping_of(select)
    group = select.args.get("group")
    if len(sets) != 1 or len(sets[0]) != len(keys) or (group is not None and group.find(*SETS) is not None):
        return True
    texts = {exact_text(key) for key in keys}
    shown = {exact_text(inner) for _, inner in items_of(select)}
    if not texts <= shown and not all_aggregates(select):
        return True  # rows repeat
    for _, inner in items_of(select):
        whole = (isinstance(inner, exp.AggFunc) or is_aggregate(inner)) and not isinstance(inner, exp.Filter)
        if not whole and exact_text(inner) not in texts:
            return True
    return False


def has_total(select: exp.Select) -> bool:
    """Whether there is a row also where there is nothing to group: that of all rows, which is not a total of groups."""
    return is_aggregated(select) and grouping_of(select)[1] == [[]]


def has_sets(select: exp.Select) -> bool:
    """Whether rows are grouped in several ways, so that a key is NULL in the groups that leave it out."""
    return select.args.get("group") is not None and len(grouping_of(select)[1]) > 1


def refuse_sets(select: exp.Select, tied: list[exp.Expr], source: SqlText) -> None:
    """Refuses ROLLUP and its like where the expressions that a query around fixes would have to be keys of all sets."""
    group = select.args.get("group")
    if group is None or not tied:
        return
    instead = "write the total as a separate SELECT, after UNION ALL"
    if has_total(select):
        message = "the total of ROLLUP, CUBE or GROUPING SETS, which every key has, is not supported here"
        raise source.unsupported(message, group, instead)
    keys, sets = grouping_of(select)
    common = set.intersection(*({exact_text(key) for key in chosen} for chosen in sets))
    left_out = {exact_text(found) for key in keys if exact_text(key) not in common for found in own_columns(key)}
    for key in tied:
        if exact_text(key) not in common and not left_out.isdisjoint(map(exact_text, own_columns(key))):
            message = f"{spelled(key)} equals a column of the query around, and some sets of keys leave it out"
            raise source.unsupported(message, group, instead)


def grouping_of(select: exp.Select) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
    """The keys of GROUP BY, and the sets of them that rows are grouped by: one, unless ROLLUP and its like say more."""
    group = select.args.get("group")
    if group is None:
        return [], [[]]
    if group.args.get("all"):
        keys = [inner for _, inner in items_of(select) if not aggregates_in(inner)]
        return keys, [keys]
    plain = [key_of(node, select) for node in group.expressions if not isinstance(node, SETS)]
    parts = [[[key]] for key in plain]
    for node in (*group.expressions, *(each for name in _WORDS for each in group.args.get(name) or ())):
        if isinstance(node, SETS):
            if not node.expressions:  # GROUP BY a, b WITH ROLLUP
                parts = [_rolled(node, [[key] for key in plain])]
            else:
                parts.append(_sets(node, select))
    sets = [unique([key for part in chosen for key in part]) for chosen in product(*parts)] if parts else [[]]
    return unique([key for part in parts for chosen in part for key in chosen]), sets


SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_WORDS = ("rollup", "cube", "grouping_sets")


def _sets(node: exp.Expr, select: exp.Select) -> list[list[exp.Expr]]:
    if isinstance(node, exp.GroupingSets):
        found: list[list[exp.Expr]] = []
        for each in node.expressions:
            found += _sets(each, select) if isinstance(each, SETS) else [_listed(each, select)]
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
    return [key_of(each, select) for each in inner]


def unique(keys: list[exp.Expr]) -> list[exp.Expr]:
    return list({exact_text(key): key for key in keys}.values())


def key_of(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """A key of GROUP BY; a number is a position in SELECT."""
    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        items = items_of(select)
        if 1 <= int(node.this) <= len(items):
            return items[int(node.this) - 1][1]
    return node


def all_aggregates(select: exp.Select) -> list[exp.Expr]:
    places = [inner for _, inner in items_of(select)] + condition_of(select, "having")
    return [found for place in places for found in aggregates_in(place)]
