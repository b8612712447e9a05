"""Makes the SELECT of a failing case small: takes clauses, items, joins and parts of expressions away.

Candidates are made from the syntax tree without asking whether they still mean anything: DuckDB refuses those that do
not, and a case in which DuckDB refuses a text has no difference. The order stays where there is a LIMIT, since
the rows would depend on chance without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp

from tests.fuzz.cases import AnyCase
from tests.fuzz.shrinking import STREAM_PASSES, Pass, without_column

_CLAUSES = ("with_", "where", "having", "order", "limit", "offset", "distinct", "group", "joins", "filter")
_OF_GROUPS = ("rollup", "cube", "grouping_sets")


def smaller_texts(sql: str) -> Iterator[str]:
    """Texts that have less in them, those that leave out most first.

    >>> list(smaller_texts("SELECT i FROM r WHERE i > 1 OR j > 2"))[:2]
    ['SELECT i FROM r', 'SELECT i FROM r WHERE i > 1']
    """
    tree = sqlglot.parse_one(sql)
    seen = {sql}
    for change in (_subqueries, _clauses, _lists, _children, _plainer):
        for text in change(tree):
            if text and text not in seen and len(text) < len(sql) + 10:
                seen.add(text)
                if not _has_total_of_nothing(text):
                    yield text


def _changed(tree: exp.Expr, node: exp.Expr, act: Callable[[exp.Expr], Any]) -> str:
    """The text after a change of one node; the tree itself stays. Empty if sqlglot has no words for what is left."""
    place = [*tree.walk()].index(node)
    copied = tree.copy()
    act([*copied.walk()][place])
    try:
        return copied.sql()
    except (ValueError, AttributeError, KeyError, TypeError):
        return ""


def _subqueries(tree: exp.Expr) -> Iterator[str]:
    """A query inside the query, in its place."""
    for node in list(tree.walk())[1:]:
        if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
            yield node.sql()


def _clauses(tree: exp.Expr) -> Iterator[str]:
    for node in tree.walk():
        for clause in _CLAUSES:
            if node.args.get(clause) and not (clause == "order" and node.args.get("limit")):
                yield _changed(tree, node, lambda copied, clause=clause: copied.set(clause, None))  # type: ignore[misc]


def _has_total_of_nothing(sql: str) -> bool:
    """Whether a grouping set may have a row of no rows, which DuckDB has and Spark has not: HAVING drops it."""
    try:
        tree = sqlglot.parse_one(sql)
    except sqlglot.errors.ParseError:  # DuckDB refuses it, too
        return False
    for select in tree.find_all(exp.Select):
        group, having = select.args.get("group"), select.args.get("having")
        has_sets = group is not None and group.find(exp.Rollup, exp.Cube, exp.GroupingSets) is not None
        if has_sets and (having is None or "COUNT(*) > 0" not in having.sql()):
            return True
    return False


def _lists(tree: exp.Expr) -> Iterator[str]:
    """Without one of several: items, keys, joins, CTEs, rows of VALUES, values of IN."""
    for node in tree.walk():
        if isinstance(node, exp.Order) and node.parent and node.parent.args.get("limit"):
            continue
        for name, value in node.args.items():
            if isinstance(value, list) and (len(value) > 1 or name in _OF_GROUPS):
                yield from (_changed(tree, node, partial(_drop, name, i)) for i in range(len(value)))


def _drop(name: str, place: int, node: exp.Expr) -> None:
    value = node.args[name]
    node.set(name, value[:place] + value[place + 1 :])


def _children(tree: exp.Expr) -> Iterator[str]:
    """A part of an expression or of a set operation in the place of the whole."""
    for node in tree.walk():
        if isinstance(node, exp.Condition | exp.SetOperation | exp.Subquery):
            for i, child in enumerate(node.iter_expressions()):
                if isinstance(child, exp.Condition | exp.Query) and _is_truth(node) == _is_truth(child):
                    yield child.sql() if node is tree else _changed(tree, node, partial(_lift, i))


def _lift(place: int, node: exp.Expr) -> None:
    node.replace([*node.iter_expressions()][place].copy())


def _plainer(tree: exp.Expr) -> Iterator[str]:
    """Inner joins for others, TRUE for a condition, and 1 for what is computed."""
    for node in tree.walk():
        if isinstance(node, exp.Join) and (node.args.get("side") or node.args.get("kind")):
            yield _changed(tree, node, _inner)
        if _is_truth(node):
            yield _changed(tree, node, lambda copied: copied.replace(exp.Boolean(this=True)))
        elif isinstance(node, exp.Binary):
            yield _changed(tree, node, lambda copied: copied.replace(exp.Literal.number(1)))


def _is_truth(node: exp.Expr) -> bool:
    """Whether a condition stands here: numbers are none in Spark, though DuckDB takes them."""
    truths = exp.Predicate | exp.Connector | exp.Not | exp.Exists
    return isinstance(node.unnest() if isinstance(node, exp.Paren) else node, truths)


def _inner(join: exp.Expr) -> None:
    join.set("side", None)
    join.set("kind", None)


def _texts(case: AnyCase) -> Iterator[AnyCase]:
    for i, view in enumerate(case.views):
        for sql in smaller_texts(view.sql):
            yield replace(case, views=(*case.views[:i], replace(view, sql=sql), *case.views[i + 1 :]))


def _columns(case: AnyCase) -> Iterator[AnyCase]:
    for table in case.tables:
        for place in range(len(table.columns) if len(table.columns) > 1 else 0):
            yield without_column(case, table, place)


PASSES: tuple[Pass, ...] = (*STREAM_PASSES[:3], _texts, *STREAM_PASSES[3:], _columns)
