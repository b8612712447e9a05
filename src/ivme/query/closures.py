"""Closures in a query: a view that is a closure and nothing else, or closures that are joined like any relation.

A view over a single closure is maintained by a closure engine alone. In any other query a closure is a separate
relation with two columns: it is maintained once for all views that read it, and its changes reach them within the same
batch.
"""

from __future__ import annotations

from dataclasses import replace

from ivme.query.expression import ColumnRef
from ivme.query.inference import end_type
from ivme.query.model import Atom, ClosureOf, Column, Query, Table, plain_head


def is_closure(query: Query) -> bool:
    """Whether a query is all pairs of one closure: both ends free and shown or given, and no condition.

    >>> from ivme.query.rule import parse_rule
    >>> is_closure(parse_rule("Q(Y | X) = closure(edge)(X, Y)")), is_closure(parse_rule("Q(X) = closure(edge)(X, X)"))
    (True, False)
    """
    atom = query.atoms[0]
    if len(query.atoms) != 1 or not atom.closure or atom.where is not None or query.aggregates:
        return False
    shown = {column.source for column in query.head}
    return len(atom.variables) == 2 and set(query.free) == set(atom.variables) and shown.issuperset(query.output)


def closures_as_relations(query: Query, graph: str) -> Query:
    """The query with each closure as a relation of its own, unless it is nothing but a closure.

    >>> from ivme.query.rule import parse_rule
    >>> seen = closures_as_relations(parse_rule("Q(X) = closure(edge)(X, X)"), "digraph")
    >>> seen.atoms[0].relation, seen.tables[0].closure_of.relation
    ('closure(edge)', 'edge')
    """
    if is_closure(query) or not any(atom.closure for atom in query.atoms):
        return query
    atoms = tuple(_relation_atom(atom, query, graph) if atom.closure else atom for atom in query.atoms)
    made = [closure_table(atom, query.table(atom.relation), graph) for atom in query.atoms if atom.closure]
    read = {atom.relation for atom in atoms}
    tables = [table for table in query.tables if table.name in read]
    return replace(query, atoms=atoms, tables=(*tables, *dict.fromkeys(made)))


def closure_query(table: Table, edges: Table) -> Query:
    """The query whose rows are those of a closure that is seen as a relation."""
    found = table.closure_of
    assert found is not None
    atom = Atom(edges.name, found.columns, tuple(map(ColumnRef, found.columns)), closure=True)
    return Query(table.name, found.columns, (), (atom,), (edges,), plain_head(found.columns))


def closure_table(atom: Atom, edges: Table, graph: str) -> Table:
    """The relation that the closure of an atom is; both its columns have the type that the ends have in common."""
    first, last = (_column(column, edges) for column in atom.columns)
    type_ = end_type((first.type, last.type), edges.name)
    what = edges.name if len(edges.columns) == 2 else f"{edges.name}.{first.name}, {edges.name}.{last.name}"
    kind = "" if graph == "digraph" else f", {graph}"
    source = ClosureOf(edges.name, (first.name, last.name), graph)
    columns = (Column(first.name, type_), Column(last.name, type_))
    return Table(
        f"closure({what}{kind})", columns, append_only=edges.append_only, static=edges.static, closure_of=source
    )


def _column(expression: object, table: Table) -> Column:
    assert isinstance(expression, ColumnRef)
    found = table.column(expression.name)
    assert found is not None
    return found


def _relation_atom(atom: Atom, query: Query, graph: str) -> Atom:
    return replace(atom, relation=closure_table(atom, query.table(atom.relation), graph).name, closure=False)
