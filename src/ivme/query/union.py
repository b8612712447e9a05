"""UNION ALL of one-table SELECTs: a relation that has no rows of its own, and passes on those of others.

Its branches compute and filter rows, and may repeat them by a weight. Between the blocks of a view it is the sum of
deltas: what LEFT JOIN pads, what NOT EXISTS and EXCEPT compare, and what users write as UNION ALL and VALUES.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ivme.errors import SchemaError
from ivme.query.expression import ColumnRef, Expression
from ivme.query.inference import common_type, type_of
from ivme.query.model import Column, Table
from ivme.query.one_type import cast_to
from ivme.query.types import Type

NO_COLUMNS = Table("nothing", ())
"""What the expressions of a branch without FROM are over."""


class UnionTypeError(SchemaError):
    """A column of a union that has no type. `branches` are the numbers of those that disagree; none if all are NULL."""

    def __init__(self, column: int, branches: tuple[int, ...], types: tuple[Type, ...]) -> None:
        self.column = column
        self.branches = branches
        self.types = types
        super().__init__(f"column {column + 1} of a union has no type: {', '.join(map(str, types)) or 'NULL'}")


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
    wanted = [_common(number, [each[number] for each in types]) for number in range(len(union.columns))]
    branches = tuple(
        replace(branch, columns=tuple(map(_cast, branch.columns, own, wanted)))
        for branch, own in zip(union.branches, types, strict=True)
    )
    columns = tuple(Column(name, type_) for name, type_ in zip(union.columns, wanted, strict=True))
    return replace(union, branches=branches), Table(union.name, columns, static=not union.relations)


def few_rows_keys(union: Union) -> tuple[tuple[str, ...], ...]:
    """Columns that agree in no more different rows of the union than it has branches; none if they are not known.

    They contain a key of each branch. That is no key of the union, but counts its rows up to a constant factor.
    """
    known = {table.name: table for table in union.tables}
    found: set[int] = set()
    for branch in union.branches:
        if branch.relation is None:
            continue
        table = known[branch.relation]
        keys = [*table.keys, *([] if table.primary_key is None else [table.primary_key])]
        shown = {each.name.lower(): place for place, each in enumerate(branch.columns) if isinstance(each, ColumnRef)}
        named = [{name.lower() for name in key} for key in keys]
        kept = [{shown[name] for name in key} for key in named if key <= shown.keys()]
        if not kept:
            return ()
        found |= min(kept, key=lambda places: len(places - found))
    return (tuple(union.columns[place] for place in sorted(found)),)


def _types(branch: Branch, tables: Mapping[str, Table]) -> list[Type | None]:
    table = NO_COLUMNS if branch.relation is None else tables[branch.relation]
    return [type_of(column, table) for column in branch.columns]


def _common(number: int, types: list[Type | None]) -> Type:
    """The type of a column, in which all branches have theirs."""
    found: Type | None = None
    for branch, type_ in enumerate(types):
        try:
            found = common_type([each for each in (found, type_) if each is not None])
        except SchemaError:
            assert found is not None
            assert type_ is not None
            first = next(place for place, each in enumerate(types) if each is not None)
            raise UnionTypeError(number, (first, branch), (found, type_)) from None
    if found is None:
        raise UnionTypeError(number, (), ())
    return found


def _cast(column: Expression, own: Type | None, wanted: Type) -> Expression:
    return cast_to(column, own, wanted)
