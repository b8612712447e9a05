"""Rows of two relations that meet in an inequality: what the block between them knows.

    SELECT l.id, r.price FROM orders AS l RANGE JOIN prices AS r ON l.item = r.item AND l.day >= r.day

Both sides have *keys*, which are equal in a pair, and a *bound* each, which the comparison is of; the right side may
have two, which the left one's is between. With ASOF a left row has one partner, the one whose bound is nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ivme.errors import SchemaError
from ivme.query.expression import Expression
from ivme.query.inference import common_type, type_of
from ivme.query.model import Column, Table
from ivme.query.one_type import cast_to
from ivme.query.types import Type
from ivme.query.union import Branch

Comparison = Literal["<", "<=", ">", ">="]
FLIPPED: Mapping[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}

_MOST_DIGITS = 38
_SUMMED_DIGITS = 18
"""Decimals of up to so many digits are their own codes."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a pairing. `columns` are what it shows; of those in `summed` only sums and counts are taken.

    `of_keys` says of each shown column which key it is, None if it is not a key or has another type.
    """

    relation: str
    keys: tuple[Expression, ...]
    bounds: tuple[Expression, ...]
    columns: tuple[Expression, ...]
    where: Expression | None
    summed: frozenset[int]
    of_keys: tuple[int | None, ...] = ()

    @property
    def branch(self) -> Branch:
        """Its rows: keys, then bounds, then columns."""
        return Branch(self.relation, (*self.keys, *self.bounds, *self.columns), self.where)

    @property
    def is_added_up(self) -> bool:
        """Whether nothing is read of its rows but keys, counts and sums: then a range of them need not be listed."""
        return all(
            place in self.summed or key is not None
            for place, key in zip(range(len(self.columns)), self.of_keys, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Pairing:
    """The pairs of rows of two relations that `comparisons` hold for: the left bound with each of the right ones.

    With `first` only the nearest right row counts, and a left row without one is padded with NULLs if it `pads`.
    `types` are those of keys, bounds (one type for all of them) and columns, of both sides one after the other.
    """

    name: str
    columns: tuple[str, ...]
    left: Side
    right: Side
    comparisons: tuple[Comparison, ...]
    tables: tuple[Table, ...]
    first: bool = False
    pads: bool = False
    key_types: tuple[Type, ...] = ()
    bound_type: Type | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that it reads, each once."""
        return tuple(dict.fromkeys((self.left.relation, self.right.relation)))


class PairingTypeError(SchemaError):
    """Sides of a comparison that have no type in common: the condition's number, keys first, and the types of both."""

    def __init__(self, condition: int, types: tuple[Type, Type]) -> None:
        self.condition = condition
        self.types = types
        super().__init__(f"condition {condition + 1} compares {' with '.join(map(str, types))}")


def typed_pairing(pairing: Pairing) -> tuple[Pairing, Table]:
    """The pairing with both sides of each comparison in one type, and the table that it looks like."""
    known = {table.name: table for table in pairing.tables}
    tables = known[pairing.left.relation], known[pairing.right.relation]
    sides = pairing.left, pairing.right
    keys = [
        _common(number, [_type(side.keys[number], table) for side, table in zip(sides, tables, strict=True)])
        for number in range(len(pairing.left.keys))
    ]
    bounds = [_type(each, table) for side, table in zip(sides, tables, strict=True) for each in side.bounds]
    bound = _common(len(keys), bounds, is_ordered=True)
    made = [_typed_side(side, table, keys, bound) for side, table in zip(sides, tables, strict=True)]
    types = [_type(each, table) for side, table in zip(sides, tables, strict=True) for each in side.columns]
    columns = tuple(Column(name, type_) for name, type_ in zip(pairing.columns, types, strict=True))
    result = replace(pairing, left=made[0], right=made[1], key_types=tuple(keys), bound_type=bound)
    return result, Table(pairing.name, columns)


def _typed_side(side: Side, table: Table, keys: list[Type], bound: Type) -> Side:
    own = [_type(each, table) for each in side.keys]
    alike = {each: place for place, each in enumerate(side.keys) if own[place] == keys[place]}
    summed = frozenset(place for place in side.summed if _is_added_by_code(_type(side.columns[place], table)))
    return replace(
        side,
        keys=tuple(cast_to(each, type_, wanted) for each, type_, wanted in zip(side.keys, own, keys, strict=True)),
        bounds=tuple(cast_to(each, _type(each, table), bound) for each in side.bounds),
        summed=summed,
        of_keys=tuple(None if place in summed else alike.get(each) for place, each in enumerate(side.columns)),
    )


def _type(expression: Expression, table: Table) -> Type:
    found = type_of(expression, table)
    if found is None:
        raise SchemaError("NULL cannot be compared in a join")
    return found


def _is_added_by_code(type_: Type) -> bool:
    return type_.kind == "int" or (type_.kind == "decimal" and (type_.precision or 0) <= _SUMMED_DIGITS)


def _common(condition: int, types: list[Type], *, is_ordered: bool = False) -> Type:
    """The type in which the first of the types is compared with the others, by conditions from this number on.

    Decimals that are put in an order, as sums of them are, have no digit behind the point cut off. One that has more
    than 38 digits then is refused when it comes.
    """
    found = types[0]
    for number, other in enumerate(types[1:]):
        try:
            common = common_type([found, other])
        except SchemaError:
            if not is_ordered or {found.kind, other.kind} != {"decimal"}:
                raise PairingTypeError(condition + number, (types[0], other)) from None
            common = Type("decimal", _MOST_DIGITS, max(found.scale or 0, other.scale or 0))
        assert common is not None
        found = common
    return found
