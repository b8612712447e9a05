"""A query as the kernel wants it: constants as predicates, and every variable in columns of one type.

The kernel compares codes, and codes of different types are not comparable. So columns of different types join on a
computed key (`one_type`), and a constant is compared before rows become codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ivme.query.aggregates import payload_slots, slot_type
from ivme.query.can_fail import can_fail
from ivme.query.expression import Call, Expression, Literal, columns_of, conjunction
from ivme.query.inference import head_types, type_of, variable_types
from ivme.query.model import Atom, Query
from ivme.query.one_type import cast_to, one_type_each
from ivme.query.types import Type


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """A query over typed tables; `types` are those of its variables, `head` those of its columns.

    `slots` are the kernel's types for the sums in its payloads; `written` is the query as it was before.
    """

    query: Query
    types: dict[str, Type]
    head: tuple[Type, ...]
    slots: tuple[str, ...]
    written: Query


def typed(query: Query) -> TypedQuery:
    """Checks the types of a query and makes them explicit; SchemaError where they do not fit."""
    made = one_type_each(query)
    types = variable_types(made)
    atoms = tuple(_typed_atom(atom, made, types) for atom in made.atoms)
    head = head_types(made)
    slots = tuple(slot_type(slot, types[variable]) for slot, variable, *_ in payload_slots(made))
    return TypedQuery(replace(made, atoms=atoms), types, head, slots, query)


def is_declared(query: Query) -> bool:
    """Whether all columns that a query reads have types."""
    columns = (
        query.table(atom.relation).column(name)
        for atom in query.atoms
        for expression in (*atom.columns, *(() if atom.where is None else (atom.where,)))
        for name in columns_of(expression)
    )
    return all(column is not None and column.type is not None for column in columns)


def _typed_atom(atom: Atom, query: Query, types: dict[str, Type]) -> Atom:
    table = query.table(atom.relation)
    tests = [] if atom.where is None else [atom.where]
    if any(isinstance(column, Call) for column in atom.columns) or any(can_fail(test, table) for test in tests):
        tests = [*_repeated(atom, query.null_safe), *tests]
    terms, columns = [], []
    for term, column in zip(atom.terms, atom.columns, strict=True):
        if isinstance(term, str):
            terms.append(term)
            columns.append(cast_to(column, type_of(column, table), types[term]))
        else:
            tests.append(Call("eq", (column, Literal(term.value))))
    return replace(atom, terms=tuple(terms), columns=tuple(columns), where=conjunction(tests))


def _repeated(atom: Atom, null_safe: tuple[str, ...]) -> Iterator[Expression]:
    """That columns of one variable are equal, as a predicate: rows where they are not must not be computed with."""
    for position, term in enumerate(atom.terms):
        first = atom.terms.index(term)
        if first != position and isinstance(term, str):
            yield Call("null_safe_eq" if term in null_safe else "eq", (atom.columns[position], atom.columns[first]))
