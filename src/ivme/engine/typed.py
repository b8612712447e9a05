"""A query as the kernel wants it: constants as predicates, and every column in the type of its variable.

The kernel compares codes, and codes of different types are not comparable. So a column that joins a wider one is cast
to the type that both have in common, and a constant is compared before rows become codes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ivme.plan.leaves import payload_slots
from ivme.query.expression import Call, Expression, Literal, conjunction
from ivme.query.inference import head_types, type_of, variable_types
from ivme.query.model import Atom, Query
from ivme.query.types import Type

_SLOT_TYPES = {"int": "i128", "float": "f64"}
_NARROW_DIGITS = 19
"""Up to so many digits a decimal times any 64-bit count fits 128 bits."""


@dataclass(frozen=True, slots=True)
class TypedQuery:
    """A query over typed tables; `types` are those of its variables, `head` those of its columns.

    `slots` are the kernel's types for the sums in its payloads.
    """

    query: Query
    types: dict[str, Type]
    head: tuple[Type, ...]
    slots: tuple[str, ...]


def typed(query: Query) -> TypedQuery:
    """Checks the types of a query and makes them explicit; SchemaError where they do not fit."""
    types = variable_types(query)
    atoms = tuple(_typed_atom(atom, query, types) for atom in query.atoms)
    head = head_types(query)
    slots = tuple("i64" if f == "count" else _slot_type(types[v]) for f, v in payload_slots(query))
    return TypedQuery(replace(query, atoms=atoms), types, head, slots)


def _slot_type(type_: Type) -> str:
    """The kernel's type for sums: wide enough for the values of any group whose count fits 63 bits."""
    if type_.kind != "decimal":
        return _SLOT_TYPES[type_.kind]
    assert type_.precision is not None
    return "d128" if type_.precision <= _NARROW_DIGITS else "d192"


def _typed_atom(atom: Atom, query: Query, types: dict[str, Type]) -> Atom:
    table = query.table(atom.relation)
    tests = [] if atom.where is None else [atom.where]
    terms, columns = [], []
    for term, column in zip(atom.terms, atom.columns, strict=True):
        if isinstance(term, str):
            terms.append(term)
            columns.append(column if type_of(column, table) == types[term] else _cast(column, types[term]))
        else:
            tests.append(Call("eq", (column, Literal(term.value))))
    return replace(atom, terms=tuple(terms), columns=tuple(columns), where=conjunction(tests))


def _cast(column: Expression, type_: Type) -> Expression:
    if type_.kind == "decimal":
        return Call("cast_decimal", (column, Literal(type_.precision), Literal(type_.scale)))
    return Call(f"cast_{type_.kind}", (column,))
