"""SQL to `Query`, in Spark's dialect.

What is read: SELECT of columns, scalar expressions over one table, COUNT, SUM, AVG, MIN, MAX and DISTINCT; FROM
with inner joins; WHERE with equalities between tables, predicates over one table, and parameters `:name` compared
for equality, which become input variables; GROUP BY; and WITH RECURSIVE where it says reachability. Everything
else is refused with its place in the text and with what to write instead: nothing is approximated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlglot import exp

from ivme.query.aggregates import AGGREGATES
from ivme.query.expression import ColumnRef, conjunction
from ivme.query.functions import Function
from ivme.query.model import Aggregate, Atom, HeadColumn, Query, Table
from ivme.query.recursion import read_closures
from ivme.query.sql_defaults import read_defaults
from ivme.query.sql_from import read_from
from ivme.query.sql_head import Head, Item, read_head
from ivme.query.sql_lists import check_list
from ivme.query.sql_parameters import take_lists
from ivme.query.sql_scope import Key, KnownTables
from ivme.query.sql_strictness import refuse_gaps, refuse_odd_names
from ivme.query.sql_text import Origin, SqlText, is_set, read_statements, refuse_other_arguments
from ivme.query.sql_variables import variable_names
from ivme.query.sql_where import Body, read_conditions
from ivme.query.sql_windows import WHEN_READING
from ivme.query.written import name_columns

_SELECT = "write one SELECT ... FROM ... [WHERE ...] [GROUP BY ...]"
_READ = "sort, limit or filter the rows when reading the view"
_CLAUSES = {
    "having": ("HAVING", _READ),
    "order": ("ORDER BY", _READ),
    "sort": ("SORT BY", _READ),
    "cluster": ("CLUSTER BY", _READ),
    "distribute": ("DISTRIBUTE BY", _READ),
    "limit": ("LIMIT", _READ),
    "offset": ("OFFSET", _READ),
    "qualify": ("QUALIFY", WHEN_READING),
    "windows": ("WINDOW", WHEN_READING),
    "laterals": ("LATERAL", "store the exploded rows as a separate table"),
    "sample": ("TABLESAMPLE", "sample the rows when reading the view"),
    "locks": ("FOR UPDATE", "leave locks out; reading a view takes none"),
    "into": ("INTO", "write CREATE TABLE name AS SELECT ..., or CREATE VIEW name AS SELECT ..."),
}


def parse_sql(text: str, tables: Mapping[str, Table] | Iterable[Table] = (), name: str = "Q") -> Query:
    """The query that a SQL text says, over the declared tables, or over tables inferred from the text if none are.

    >>> query = parse_sql("SELECT o.item, SUM(o.price) AS total FROM orders o JOIN customers c "
    ...                   "ON o.customer = c.id WHERE c.city = :city GROUP BY o.item")
    >>> print(query, query.parameters)
    Q(item, SUM(price) | city) = orders(item, price, customer), customers(customer, city) ('city',)
    """
    source, node = one_statement(text)
    return read_query(source, node, tables, name)


def one_statement(
    text: str, origin: Origin | None = None, functions: Mapping[str, Function] = MappingProxyType({})
) -> tuple[SqlText, exp.Expr]:
    """The only statement of a text, in which lists of parameters are one member each."""
    source, written = whole_statement(text, origin, functions)
    node, lists = take_lists(written)
    for name, equality in lists.items():
        source.lists[name] = check_list(source, node, name, equality)
    return source, node


def whole_statement(
    text: str, origin: Origin | None = None, functions: Mapping[str, Function] = MappingProxyType({})
) -> tuple[SqlText, exp.Expr]:
    """The only statement of a text, as it is written."""
    source, statements = read_statements(
        text, ("SELECT", "WITH", "FROM", "("), _SELECT, origin, functions, has_defaults=True
    )
    if len(statements) != 1:
        if not statements:
            raise source.broken("the text is empty", None, _SELECT)
        position = source.query(statements[1])
        raise source.unsupported("the text has several statements", position, "give each view its own text")
    if origin is not None:
        name_columns(statements[0], origin.word)
    refuse_gaps(source, statements)
    refuse_odd_names(source, statements)
    return source, statements[0]


def read_query(source: SqlText, node: exp.Expr, tables: Mapping[str, Table] | Iterable[Table], name: str) -> Query:
    """The query that a SELECT says."""
    try:
        return _read_query(source, node, tables, name)
    except RecursionError:
        raise source.broken("the SQL is nested too deeply", None, "use fewer parentheses") from None


def _read_query(source: SqlText, node: exp.Expr, tables: Mapping[str, Table] | Iterable[Table], name: str) -> Query:
    select = _only_select(source, node)
    catalog = KnownTables(source, tables)
    closures = read_closures(source, select, catalog)
    read = read_from(source, select, catalog, closures)
    body = read_conditions(read, select)
    head = read_head(body, select)
    _refuse_path_counts(source, body, head)
    return _query(body, head, source.text, name)


def _refuse_path_counts(source: SqlText, body: Body, head: Head) -> None:
    """UNION ALL has a row for each path, the closure one for each pair: they must show the same rows."""
    aggregates = [item.aggregate for item in head.items if item.aggregate is not None]
    insensitive = head.distinct or (aggregates and not any(AGGREGATES[each].counts_rows for each in aggregates))
    if not insensitive and any(found.closure is not None and found.closure.bag for found in body.scope.occurrences):
        message = "UNION ALL would give a row for each path, and reachability has one for each pair"
        raise source.unsupported(message, source.keyword(["UNION ALL"]), "write UNION, or SELECT DISTINCT")


def _only_select(source: SqlText, node: exp.Expr) -> exp.Select:
    if isinstance(node, exp.SetOperation):
        word = node.key.upper()
        instead = "make each SELECT a separate view"
        raise source.unsupported(f"{word} is not supported", source.keyword([word]), instead)
    if not isinstance(node, exp.Select):
        raise source.unsupported("the statement is not a SELECT", node, _SELECT)
    for argument, (word, instead) in _CLAUSES.items():
        if is_set(node.args.get(argument)):
            position = source.keyword([word])
            raise source.unsupported(f"{word} is not supported", node if position is None else position, instead)
    handled = ("with_", "expressions", "distinct", "from_", "joins", "where", "group")
    refuse_other_arguments(source, node, handled, _SELECT)
    return node


def _query(body: Body, head: Head, text: str, name: str) -> Query:
    scope, classes = body.scope, body.classes
    for occurrence, found in enumerate(scope.occurrences):
        if found.closure is not None:
            for key in scope.keys_of(occurrence):
                classes.add(key)
    variables = variable_names(classes, scope)
    inputs = tuple(variables[key] for key in classes.parameters.values())
    plain = [item.key for item in head.items if item.aggregate is None and item.key is not None]
    free = dict.fromkeys(variables[key] for key in (*plain, *(head.group or ())))
    relations = dict.fromkeys(found.relation for found in scope.occurrences)
    return Query(
        name=name,
        output=tuple(variable for variable in free if variable not in inputs),
        input=inputs,
        atoms=tuple(_atom(body, variables, occurrence) for occurrence in range(len(scope.occurrences))),
        tables=tuple(scope.catalog.table(relation) for relation in relations),
        head=tuple(HeadColumn(item.name, _source(item, variables)) for item in head.items),
        distinct=head.distinct,
        parameters=tuple(classes.parameters),
        text=text,
        null_safe=tuple(variables[root] for root in classes.null_safe()),
        defaults=read_defaults(scope, classes.parameters),
        lists=tuple((name, across) for name, across in scope.source.lists.items() if name in classes.parameters),
    )


def _source(item: Item, variables: Mapping[Key, str]) -> str | Aggregate:
    variable = None if item.key is None else variables[item.key]
    if item.aggregate is not None:
        partner = None if item.partner is None else variables[item.partner]
        return Aggregate(item.aggregate, variable, partner, item.options, item.text)
    assert variable is not None
    return variable


def _atom(body: Body, variables: Mapping[Key, str], occurrence: int) -> Atom:
    """The occurrence as an atom: plain columns in the table's order, then computed ones as they were mentioned."""
    found = body.scope.occurrences[occurrence]
    mentioned = [key for key in variables if key.occurrence == occurrence]
    order = [key for key in body.scope.keys_of(occurrence) if key in mentioned]
    keys = order + [key for key in mentioned if not isinstance(key.expression, ColumnRef)]
    return Atom(
        relation=found.relation,
        terms=tuple(variables[key] for key in keys),
        columns=tuple(key.expression for key in keys),
        where=conjunction(body.predicates.get(occurrence, [])),
        alias=found.alias,
        closure=found.closure is not None,
    )
