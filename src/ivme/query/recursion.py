"""WITH RECURSIVE, where it says reachability: the transitive closure of a table of edges.

Recognised, up to names, the order of the joins and how they are written:

    WITH RECURSIVE r(x, y) AS (
        SELECT src, dst FROM edge
        UNION
        SELECT r.x, e.dst FROM r JOIN edge e ON r.y = e.src      -- left-linear
        SELECT e.src, r.y FROM edge e JOIN r ON e.dst = r.x      -- or right-linear
        SELECT a.x, b.y FROM r a JOIN r b ON a.y = b.x           -- or doubling
    )

The closure is a set of pairs with a path of at least one edge. UNION ALL, Spark's only spelling,
means a row for each path; it is accepted where that makes no difference: under SELECT DISTINCT, MIN, MAX and
COUNT(DISTINCT).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ivme.query.sql_scope import Closure, KnownTables, same_name
from ivme.query.sql_text import SqlText, is_set, refuse_other_arguments

_RECOGNISED = (
    "only reachability is recognised: WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM edge UNION "
    "SELECT r.x, e.dst FROM r JOIN edge e ON r.y = e.src) SELECT ... FROM r"
)
_OTHER_START = (
    "make the closure of {steps} a view, join it with {start}, and add by UNION what {start} reaches without one, as "
    '"Who may read what" in docs/gallery.md does; ' + _RECOGNISED
)
_VIEW = "make the subquery a separate view; of WITH, " + _RECOGNISED


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A relation of pairs in the step: its alias, and the names of its first and last column."""

    alias: str
    columns: tuple[str, str]
    recursive: bool


def is_recursive(cte: exp.CTE) -> bool:
    """Whether a query of WITH reads itself."""
    name = cte.args["alias"].this
    return any(not table.args.get("db") and same_name(name, table.name) for table in cte.this.find_all(exp.Table))


def read_closures(source: SqlText, select: exp.Select, catalog: KnownTables) -> dict[str, Closure]:
    """The closures that the WITH clause of a query defines, by lower-cased name."""
    clause = select.args.get("with_")
    if clause is None:
        return {}
    refuse_other_arguments(source, clause, ("expressions", "recursive"), _RECOGNISED)
    if not clause.args.get("recursive"):
        raise source.unsupported("WITH is not supported", source.keyword(["WITH"]), _VIEW)
    closures: dict[str, Closure] = {}
    for cte in clause.expressions:
        refuse_other_arguments(source, cte, ("this", "alias"), _RECOGNISED)
        if cte.alias.lower() in closures:
            raise source.unsupported(f"two queries of WITH are called {cte.alias!r}", cte, "rename one")
        closures[cte.alias.lower()] = _closure(source, cte, catalog)
    return closures


def _closure(source: SqlText, cte: exp.CTE, catalog: KnownTables) -> Closure:
    union, alias = cte.this, cte.args["alias"]
    refuse_other_arguments(source, alias, ("this", "columns"), _RECOGNISED)
    if not isinstance(union, exp.Union):
        raise source.unsupported(f"the query {cte.alias} of WITH is not recursive", cte, _VIEW)
    refuse_other_arguments(source, union, ("this", "expression", "distinct"), _RECOGNISED)
    edge, ends, names = _base(source, union.this.unnest(), catalog)
    names = _renamed(source, alias, names)
    closure = Closure(edge, ends, names, bag=not union.args.get("distinct"))
    _check_step(source, union.expression.unnest(), alias.this, closure, catalog)
    return closure


def _renamed(
    source: SqlText, alias: exp.TableAlias, names: tuple[exp.Identifier, exp.Identifier]
) -> tuple[exp.Identifier, exp.Identifier]:
    columns = alias.args.get("columns") or names
    if len(columns) != 2 or columns[0].name.lower() == columns[1].name.lower():
        raise source.unsupported("a recursive query needs two columns of different names", alias, _RECOGNISED)
    return columns[0], columns[1]


def _plain_select(source: SqlText, node: exp.Expr, handled: tuple[str, ...]) -> list[exp.Expr]:
    """The two columns of a part of the recursion, which must have no other clauses than the handled ones."""
    if not isinstance(node, exp.Select):
        raise source.unsupported("this part of the recursion is not a SELECT", node, _RECOGNISED)
    refuse_other_arguments(source, node, ("expressions", "distinct", "from_", *handled), _RECOGNISED)
    if is_set(node.args.get("distinct")):
        refuse_other_arguments(source, node.args["distinct"], (), _RECOGNISED)
    if len(node.expressions) != 2 or node.args.get("from_") is None:
        raise source.unsupported("a part of the recursion must select two columns of tables", node, _RECOGNISED)
    for item in node.expressions:
        column = item.unalias()
        if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
            raise source.unsupported("a recursive query selects plain columns only", item, _RECOGNISED)
    return list(node.expressions)


def _base(
    source: SqlText, node: exp.Expr, catalog: KnownTables
) -> tuple[str, tuple[str, str], tuple[exp.Identifier, exp.Identifier]]:
    """The edges: their table, its two columns, and the names that the base gives them."""
    items = _plain_select(source, node, ())
    table = _table(source, node.args["from_"].this)
    relation = catalog.relation(table)
    ends = []
    for item in items:
        column = item.unalias()
        qualifier = column.args.get("table")
        found = catalog.column(relation, column.this)
        alias = table.alias_or_name
        if found is None or (qualifier is not None and not same_name(qualifier, alias)) or column.args.get("db"):
            raise source.unknown(f"{column.sql()} is not a column of {alias}", column, f"name columns of {alias}")
        ends.append(found)
    names = [item.args["alias"] if isinstance(item, exp.Alias) else item.this for item in items]
    if ends[0] == ends[1]:
        raise source.unsupported("edges need a source and a target column", node, _RECOGNISED)
    return relation, (ends[0], ends[1]), (names[0], names[1])


def _table(source: SqlText, node: exp.Expr) -> exp.Table:
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise source.unsupported("a recursive query reads plain tables only", node, _RECOGNISED)
    refuse_other_arguments(source, node, ("this", "db", "catalog", "alias"), _RECOGNISED)
    alias = node.args.get("alias")
    if alias is not None:
        refuse_other_arguments(source, alias, ("this",), _RECOGNISED)
    return node


def _check_step(source: SqlText, node: exp.Expr, name: exp.Identifier, closure: Closure, catalog: KnownTables) -> None:
    """The step must compose two relations of pairs, at least one of them the recursive one, end to end."""
    items = _plain_select(source, node, ("joins", "where"))
    nodes, conditions = _joined(source, node)
    pairs = [_pairs(source, table, name, closure, catalog) for table in nodes]
    if len(pairs) != 2 or not any(pair.recursive for pair in pairs):
        raise source.unsupported("the step must join two tables, the recursive one among them", node, _RECOGNISED)
    if len(conditions) != 1 or not isinstance(conditions[0], exp.EQ):
        place = conditions[-1] if conditions else node
        raise source.unsupported("the step must have one condition, an equality", place, _RECOGNISED)
    sides = [conditions[0].this.unnest(), conditions[0].expression.unnest()]
    met = {_end(source, side, pairs) for side in sides}
    first, last = (_end(source, item.unalias(), pairs) for item in items)
    for one, other in ((0, 1), (1, 0)):
        if (first, last) == ((one, 0), (other, 1)) and met == {(one, 1), (other, 0)}:
            return
    raise source.unsupported("the step does not extend paths end to end", node, _RECOGNISED)


def _joined(source: SqlText, node: exp.Expr) -> tuple[list[exp.Table], list[exp.Expr]]:
    """The tables that the step joins, and the conditions of its ON and WHERE."""
    tables, conditions = [_table(source, node.args["from_"].this)], []
    for join in node.args.get("joins") or ():
        kind = join.args.get("kind") or ""
        if kind not in ("", "INNER", "CROSS"):
            raise source.unsupported(f"{kind} JOIN in a recursive query is not supported", join, _RECOGNISED)
        refuse_other_arguments(source, join, ("this", "on", "kind"), _RECOGNISED)
        tables.append(_table(source, join.this))
        conditions.append(join.args.get("on"))
    if node.args.get("where") is not None:
        conditions.append(node.args["where"].this)
    told = [condition.unnest() for condition in conditions if condition is not None]
    return tables, [condition for condition in told if condition != exp.true()]


def _pairs(source: SqlText, node: exp.Table, name: exp.Identifier, closure: Closure, catalog: KnownTables) -> _Pairs:
    if node.args.get("db") is None and same_name(name, node.name):
        return _Pairs(node.alias_or_name, (closure.names[0].name, closure.names[1].name), True)
    relation = catalog.relation(node)
    if relation != closure.relation:
        message = f"the step reads {relation}, the base {closure.relation}"
        raise source.unsupported(message, node, _OTHER_START.format(steps=relation, start=closure.relation))
    return _Pairs(node.alias_or_name, closure.columns, False)


def _end(source: SqlText, column: exp.Expr, pairs: list[_Pairs]) -> tuple[int, int]:
    """Which end (0: first, 1: last) of which relation a column of the step is."""
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        raise source.unsupported("a recursive query compares plain columns only", column, _RECOGNISED)
    qualifier = column.args.get("table")
    found = [
        (number, end)
        for number, pair in enumerate(pairs)
        for end in (0, 1)
        if same_name(column.this, pair.columns[end]) and (qualifier is None or same_name(qualifier, pair.alias))
    ]
    if len(found) != 1:
        what = "is ambiguous" if found else "is not an end of an edge or of a path"
        raise source.unknown(f"the column {column.sql()} {what}", column, _RECOGNISED)
    return found[0]
