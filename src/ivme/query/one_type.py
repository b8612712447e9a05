"""Equalities between columns of different types: they join on a computed key, and each column stays as it is.

Values of two types are compared as Spark compares them: an int with a float as doubles, an int with a decimal as
decimals, a decimal with a float as doubles, a date with a timestamp as timestamps. 2^53 and 2^53 + 1 both equal the
double 2^53, and remain two integers. So a variable stands for columns of one type only. Where a rule has a variable in
columns of several types, the variable is its first column; a column of another type is compared with that one, by a
variable of its own: the key, which both atoms have as a column cast to the type that they are compared in.
"""

from __future__ import annotations

from dataclasses import replace

from ivme.errors import SchemaError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.inference import FLOAT, common_type, type_of
from ivme.query.model import Atom, Query, Table
from ivme.query.types import Type

Place = tuple[int, int]
"""An atom's number, and the number of one of its columns."""


def cast_to(expression: Expression, own: Type | None, wanted: Type) -> Expression:
    """The expression in a type; itself if it has that type."""
    if own == wanted:
        return expression
    if wanted.kind == "decimal":
        return Call("cast_decimal", (expression, Literal(wanted.precision), Literal(wanted.scale)))
    if wanted.is_nested:
        return Call("cast_nested", (expression, Literal(str(wanted))))
    return Call(f"cast_{wanted.kind}", (expression,))


def as_float(expression: Expression, own: Type | None) -> Expression:
    """The expression as a float; a constant is converted at once."""
    if isinstance(expression, Literal):
        return Literal(float(expression.value))
    return cast_to(expression, own, FLOAT)


_EMPTY = Literal(())
"""ARRAY(), whose type is that of the values beside it."""


def with_one_type(call: Call, table: Table) -> Call:
    """A CASE or COALESCE whose values all have the type of the whole: 1 among decimals is one of them.

    >>> from ivme.query.model import table
    >>> prices = table("prices", {"price": "decimal(8, 2)"})
    >>> str(with_one_type(Call("coalesce", (ColumnRef("price"), Literal(0))), prices))
    'coalesce(price, CAST(0 AS DECIMAL(8, 2)))'
    """
    wanted = type_of(call, table)
    if wanted is None:
        return call
    conditions = range(0, len(call.arguments) - 1, 2) if call.function == "case" else ()
    types = [type_of(argument, table) for argument in call.arguments]
    return Call(
        call.function,
        tuple(
            argument
            if place in conditions or (type_ is None and argument != _EMPTY)
            else cast_to(argument, type_, wanted)
            for place, (argument, type_) in enumerate(zip(call.arguments, types, strict=True))
        ),
    )


def one_type_each(query: Query) -> Query:
    """The query with every variable in columns of one type, as far as types are declared.

    >>> from ivme.query.model import table
    >>> from ivme.query.rule import parse_rule
    >>> tables = [table("R", {"a": "int"}), table("S", {"a": "float", "b": "int"})]
    >>> print(one_type_each(parse_rule("Q(A, SUM(B)) = R(A), S(A, B)", tables)))
    Q(A, SUM(B), A_float | .) = R(A, A_float), S(A_float, B)
    """
    if any(atom.closure for atom in query.atoms):
        return query
    atoms, taken = list(query.atoms), {variable.lower() for variable in query.variables}
    for variable, places in _places(query).items():
        first, type_ = places[0]
        keys = {type_: variable}
        for place, other in places[1:]:
            if other != type_:
                wanted = _compared_in(variable, type_, other, query)
                if wanted not in keys:
                    keys[wanted] = _fresh(f"{variable}_{wanted.kind}", taken)
                    atoms[first[0]] = _with_key(atoms[first[0]], first[1], type_, wanted, keys[wanted])
                atoms[place[0]] = _keyed(atoms[place[0]], place[1], other, wanted, keys[wanted])
    made = replace(query, atoms=tuple(atoms))
    return replace(made, output=(*made.output, *_determined(made)))


def _places(query: Query) -> dict[str, list[tuple[Place, Type]]]:
    """Where each variable stands, and the types there, as far as they are known."""
    found: dict[str, list[tuple[Place, Type]]] = {}
    for number, atom in enumerate(query.atoms):
        table = query.table(atom.relation)
        for i, (term, column) in enumerate(zip(atom.terms, atom.columns, strict=True)):
            type_ = type_of(column, table)
            if isinstance(term, str) and type_ is not None:
                found.setdefault(term, []).append(((number, i), type_))
    return found


def _compared_in(variable: str, left: Type, right: Type, query: Query) -> Type:
    try:
        found = common_type((left, right))
    except SchemaError as error:
        raise SchemaError(f"variable {variable} of {query.name}: {error}") from None
    assert found is not None
    return found


def _fresh(name: str, taken: set[str]) -> str:
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _with_key(atom: Atom, position: int, own: Type, wanted: Type, key: str) -> Atom:
    """The atom with one more column: the key of one that it has."""
    column = cast_to(atom.columns[position], own, wanted)
    return replace(atom, terms=(*atom.terms, key), columns=(*atom.columns, column))


def _keyed(atom: Atom, position: int, own: Type, wanted: Type, key: str) -> Atom:
    """The atom with the key in place of a column."""
    terms, columns = list(atom.terms), list(atom.columns)
    terms[position], columns[position] = key, cast_to(columns[position], own, wanted)
    return replace(atom, terms=tuple(terms), columns=tuple(columns))


def _determined(query: Query) -> list[str]:
    """Variables that are free columns cast: where the column is given, so is its key, and no row comes twice for it.

    As a free variable it costs nothing, and the query is easier to maintain. A group of all rows stays one.
    """
    if not query.output:
        return []
    found: dict[str, None] = {}
    for atom in query.atoms:
        free = {str(c).lower() for c, term in zip(atom.columns, atom.terms, strict=True) if term in query.free}
        for term, column in zip(atom.terms, atom.columns, strict=True):
            if isinstance(term, str) and term not in query.free and _casts(column, free):
                found[term] = None
    return list(found)


def _casts(column: Expression, plain: set[str]) -> bool:
    if not isinstance(column, Call) or not column.function.startswith("cast_"):
        return False
    return isinstance(column.arguments[0], ColumnRef) and column.arguments[0].name.lower() in plain
