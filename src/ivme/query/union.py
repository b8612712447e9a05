"""UNION ALL of one-table SELECTs: a relation that has no rows of its own, and passes on those of others.

Its branches compute and filter rows, and may repeat them by a weight. Between the blocks of a view it is the sum of
deltas: what LEFT JOIN pads, what NOT EXISTS and EXCEPT compare, and what users write as UNION ALL and VALUES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ivme.errors import SchemaError
from ivme.query.expression import Expression
from ivme.query.inference import common_type, type_of
from ivme.query.model import Column, Table
from ivme.query.one_type import cast_to
from ivme.query.types import Type

NO_COLUMNS = Table("nothing", ())
"""What the expressions of a branch without FROM are over."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Rows of a relation, or one row of constants where it is None, as the union has them; `weight` repeats each."""

    relation: str | None
    columns: tuple[Expression, ...]
    where: Expression | None = None
    weight: Expression | None = None


@dataclass(frozen=True, slots=True)
class Union:
    """The rows of all branches. `tables` describes the relations that they read."""

    name: str
    columns: tuple[str, ...]
    branches: tuple[Branch, ...]
    tables: tuple[Table, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that it reads, each once."""
        return tuple(dict.fromkeys(each.relation for each in self.branches if each.relation is not None))


def typed_union(union: Union) -> tuple[Union, Table]:
    """The union with the columns of all branches in one type each, and the table that it looks like."""
    known = {table.name: table for table in union.tables}
    types = [_types(branch, known) for branch in union.branches]
    wanted = [_common(union, number, [each[number] for each in types]) for number in range(len(union.columns))]
    branches = tuple(
        replace(branch, columns=tuple(map(_cast, branch.columns, own, wanted)))
        for branch, own in zip(union.branches, types, strict=True)
    )
    columns = tuple(Column(name, type_) for name, type_ in zip(union.columns, wanted, strict=True))
    return replace(union, branches=branches), Table(union.name, columns, static=not union.relations)


def _types(branch: Branch, tables: Mapping[str, Table]) -> list[Type | None]:
    table = NO_COLUMNS if branch.relation is None else tables[branch.relation]
    return [type_of(column, table) for column in branch.columns]


def _common(union: Union, number: int, types: list[Type | None]) -> Type:
    try:
        found = common_type([each for each in types if each is not None])
    except SchemaError as error:
        raise SchemaError(f"{_called(union.columns[number])}: {error}") from None
    if found is None:
        raise SchemaError(f"{_called(union.columns[number])} is NULL everywhere and has no type")
    return found


def _called(name: str) -> str:
    """A column, in words of users: they have not named the keys that blocks compare."""
    return "what is compared" if name.startswith("#") else f"column {name}"


def _cast(column: Expression, own: Type | None, wanted: Type) -> Expression:
    return cast_to(column, own, wanted)
