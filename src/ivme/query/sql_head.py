"""SELECT and GROUP BY: what the columns of a row are, and which variables are free."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from sqlglot import exp

from ivme.query.expression import ColumnRef, Expression, columns_of
from ivme.query.inference import type_of
from ivme.query.sql_aggregates import WHOLE, counts_rows, is_aggregate, maintained, read_call, refuse_by_name
from ivme.query.sql_expression import Scalars
from ivme.query.sql_scope import Key, rename_one, same_name
from ivme.query.sql_text import DIALECT, SqlText, refuse_other_arguments
from ivme.query.sql_where import Body, refuse_computed_closure
from ivme.query.sql_windows import window_refusal
from ivme.query.union import NO_COLUMNS
from ivme.query.written import spelled

_ONE_TABLE = "select or aggregate expressions over the columns of one table each, and combine them when reading"


@dataclass(frozen=True, slots=True)
class Item:
    """A column of SELECT: a key, or an aggregate over one (over rows, for COUNT(*)), or over it and a partner."""

    name: str
    key: Key | None
    aggregate: str | None
    node: exp.Expr
    partner: Key | None = None
    options: tuple[Any, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """The columns of SELECT, the keys of GROUP BY (None without one), and whether duplicates go."""

    items: tuple[Item, ...]
    group: tuple[Key, ...] | None
    distinct: bool


def read_head(body: Body, select: exp.Select) -> Head:
    """Reads SELECT and GROUP BY; every key they mention joins the body's classes."""
    scalars = Scalars(body.scope, tuple(range(len(body.scope.occurrences))))
    items = tuple(item for node in select.expressions for item in _items(body, scalars, node))
    if not items:
        raise scalars.source.unsupported("SELECT lists no columns", select, "name the columns")
    _check_names(scalars.source, items)
    group = _group(body, scalars, select, items)
    if group is not None or any(item.aggregate for item in items):
        _check_grouped(body, scalars.source, items, group or ())
        _refuse_constants(scalars.source, items, group or ())
    return Head(items, group, _distinct(scalars.source, body, select, items, group))


def _items(body: Body, scalars: Scalars, node: exp.Expr) -> list[Item]:
    if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
        return _star(body, scalars, node)
    name, inner = None, node
    if isinstance(node, exp.Alias):
        refuse_other_arguments(scalars.source, node, ("this", "alias"), "write expression AS name")
        name, inner = node.alias, node.this
    inner = inner.unnest()
    if is_aggregate(inner):
        return [_aggregate(body, scalars, inner, name)]
    key = _key(body, scalars, inner)
    plain = isinstance(key.expression, ColumnRef)
    default = body.scope.visible_name(key) if plain else inner.sql(dialect=DIALECT, comments=False)
    return [Item(name or default, key, None, node)]


def _star(body: Body, scalars: Scalars, node: exp.Expr) -> list[Item]:
    star = node if isinstance(node, exp.Star) else node.this
    refuse_other_arguments(scalars.source, star, (), "name the columns that you want")
    if isinstance(node, exp.Column):
        refuse_other_arguments(scalars.source, node, ("this", "table"), "give the table an alias, and use it")
        occurrences = [body.scope.occurrence_named(node.args["table"], scalars.visible)]
        keys = body.scope.keys_of(occurrences[0])
    else:
        occurrences, keys = list(scalars.visible), body.scope.layout
    body.scope.star(node, occurrences)
    return [Item(body.scope.visible_name(key), body.classes.add(key), None, node) for key in keys]


def _key(body: Body, scalars: Scalars, node: exp.Expr) -> Key:
    """The key of an expression of SELECT or GROUP BY, which must be over one table."""
    source = scalars.source
    scalars.refuse_queries(node)
    _refuse_aggregates(source, node)
    occurrences = scalars.occurrences(node)
    if len(occurrences) > 1:
        raise source.unsupported(f"the expression {spelled(node)} mixes columns of several tables", node, _ONE_TABLE)
    expression = scalars.translate(node)
    key = Key(occurrences[0] if occurrences else _any_occurrence(body, node, expression), expression)
    body.check_kinds(key, node)
    refuse_computed_closure(body.scope, key, node)
    return body.classes.add(key)


def _any_occurrence(body: Body, node: exp.Expr, constant: Expression) -> int:
    """The table that computes a constant: any that is not a closure."""
    source = body.scope.source
    if type_of(constant, NO_COLUMNS) is None:
        raise source.unsupported("NULL alone has no type", node, "write CAST(NULL AS type)")
    tables = (i for i, found in enumerate(body.scope.occurrences) if found.closure is None)
    found = next(tables, None)
    if found is None:
        raise source.unsupported("a constant beside a recursive query only is not supported", node, "leave it out")
    return found


def _refuse_aggregates(source: SqlText, node: exp.Expr) -> None:
    """Refuses what aggregates rows within an expression that must be computed from one row."""
    window = node.find(exp.Window)
    if window is not None:
        raise window_refusal(source, window)
    if node.find(exp.Filter):
        instead = "aggregate a condition: SUM(CASE WHEN condition THEN 1 ELSE 0 END)"
        raise source.unsupported("FILTER is not supported", node, instead)
    refuse_by_name(source, node)
    inside = node.find(exp.AggFunc)
    if inside is not None:
        raise source.unsupported("an aggregate cannot be part of an expression here", inside, WHOLE)


def _aggregate(body: Body, scalars: Scalars, node: exp.Expr, name: str | None) -> Item:
    call = read_call(scalars.source, node)
    if counts_rows(scalars, call):
        return Item(name or call.text, None, "count", node)
    found = maintained(body, scalars, call, partial(_key, body, scalars))
    own_text = call.own_text if found.partner is None else call.text
    return Item(name or call.text, found.key, found.function, node, found.partner, found.options, own_text)


def _check_names(source: SqlText, items: tuple[Item, ...]) -> None:
    seen: set[str] = set()
    for item in items:
        if item.name.lower() in seen:
            raise source.unsupported(f"two columns are named {item.name!r}", item.node, rename_one(source))
        seen.add(item.name.lower())


def _group(body: Body, scalars: Scalars, select: exp.Select, items: tuple[Item, ...]) -> tuple[Key, ...] | None:
    group = select.args.get("group")
    if group is None:
        return None
    instead = "group by columns, expressions, positions or aliases"
    refuse_other_arguments(scalars.source, group, ("expressions", "all"), instead)
    plain = [item.key for item in items if item.aggregate is None and item.key is not None]
    if group.args.get("all"):
        refuse_other_arguments(scalars.source, group, ("all",), "write GROUP BY ALL, or list the keys")
        return tuple(dict.fromkeys(plain))
    keys = [_group_key(body, scalars, node.unnest(), items) for node in group.expressions]
    return tuple(dict.fromkeys(keys))


def _group_key(body: Body, scalars: Scalars, node: exp.Expr, items: tuple[Item, ...]) -> Key:
    if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
        word = node.sql(dialect=DIALECT).split(" (")[0]
        raise scalars.source.unsupported(f"{word} is not supported", node, "make each grouping a separate view")
    item = _referenced(body, scalars, node, items)
    if item is None:
        return _key(body, scalars, node)
    if item.aggregate is not None or item.key is None:
        raise scalars.source.unsupported("GROUP BY cannot name an aggregate", node, "group by a column")
    return item.key


def _referenced(body: Body, scalars: Scalars, node: exp.Expr, items: tuple[Item, ...]) -> Item | None:
    """The column of SELECT that a position or an alias means; columns of tables come before aliases."""
    if isinstance(node, exp.Literal) and not node.is_string:
        if not node.this.isdigit() or not 1 <= int(node.this[:9]) <= len(items):
            instead = f"SELECT has columns 1 to {len(items)}"
            raise scalars.source.unknown(f"GROUP BY {node.this} is not a position", node, instead)
        return items[int(node.this[:9]) - 1]
    if not isinstance(node, exp.Column) or node.args.get("table") or not isinstance(node.this, exp.Identifier):
        return None
    known = [name for occurrence in scalars.visible for name in body.scope.column_names(occurrence)]
    if any(same_name(node.this, name) for name in known):
        return None
    return next((item for item in items if same_name(node.this, item.name)), None)


def _check_grouped(body: Body, source: SqlText, items: tuple[Item, ...], group: tuple[Key, ...]) -> None:
    """Each plain item must be a function of the GROUP BY keys, as Spark demands."""
    roots = {body.classes.root(key) for key in group}
    for item in items:
        if item.aggregate is not None or item.key is None or body.classes.root(item.key) in roots:
            continue
        parts = [Key(item.key.occurrence, ColumnRef(name)) for name in columns_of(item.key.expression)]
        if not all(part in body.classes.links and body.classes.root(part) in roots for part in parts):
            message = f"{body.scope.visible_name(item.key)} is neither aggregated nor in GROUP BY"
            raise source.unsupported(message, item.node, "add it to GROUP BY, or aggregate it")


def _refuse_constants(source: SqlText, items: tuple[Item, ...], group: tuple[Key, ...]) -> None:
    """Aggregates of all rows have one row, where there are none, too: a constant of the rows would be missing then."""
    for item in items:
        if not group and item.key is not None and item.aggregate is None:
            raise source.unsupported("a constant beside aggregates of all rows", item.node, "leave it out")


def _distinct(
    source: SqlText, body: Body, select: exp.Select, items: tuple[Item, ...], group: tuple[Key, ...] | None
) -> bool:
    """Whether the rows are a set. GROUP BY without aggregates is DISTINCT; with them, the groups are distinct."""
    distinct = select.args.get("distinct")
    if distinct is not None:
        refuse_other_arguments(source, distinct, (), "use SELECT DISTINCT over all its columns")
    inputs = {body.classes.root(key) for key in body.classes.parameters.values()}
    shown = {body.classes.root(item.key) for item in items if item.key is not None and item.aggregate is None}
    keys = {body.classes.root(key) for key in group or ()}
    aggregates = any(item.aggregate for item in items)
    position = source.keyword(["GROUP BY"])
    if keys and keys <= inputs and not shown:
        message = "the groups are fixed by parameters, and SELECT shows none of their keys"
        raise source.unsupported(message, position, "select a GROUP BY key too, or leave GROUP BY out")
    hidden = keys - shown - inputs
    if hidden and (distinct is not None or not aggregates):
        raise source.unsupported(
            "a GROUP BY key that is not selected makes rows repeat", position, "select every GROUP BY key"
        )
    return not aggregates and (distinct is not None or group is not None)
