"""The constraints of CREATE TABLE: keys, NOT NULL and foreign keys, of a column or of the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.query.sql_text import DIALECT, SqlText, refuse_other_arguments
from ivme.query.table import ForeignKey


@dataclass(slots=True)
class Constraints:
    """What the constraints of a table say."""

    keys: list[tuple[str, ...]] = field(default_factory=list)
    unique: list[tuple[str, ...]] = field(default_factory=list)
    not_null: list[str] = field(default_factory=list)
    references: list[ForeignKey] = field(default_factory=list)

    @property
    def primary_key(self) -> tuple[str, ...] | None:
        return self.keys[0] if self.keys else None


def constraints_of(source: SqlText, schema: exp.Schema, usage: str) -> Constraints:
    """The constraints of a table; those that nothing reads are refused."""
    found = Constraints()
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            _read_column(source, part, found, usage)
        elif isinstance(part, exp.Identifier):
            raise source.unsupported(f"the column {part.name} has no type", part, usage)
        else:
            for constraint in part.expressions if isinstance(part, exp.Constraint) else [part]:
                _read_constraint(source, constraint, part, found, usage)
    if len(found.keys) > 1:
        raise source.unsupported("the table has two primary keys", schema, "write PRIMARY KEY (a, b) once")
    return found


_VALUED = (
    exp.AutoIncrementColumnConstraint,
    exp.GeneratedAsIdentityColumnConstraint,
    exp.ComputedColumnConstraint,
)
"""Constraints that give a column a value by themselves."""

_CHECKED = "leave it out; CREATE VIEW broken AS SELECT * FROM table WHERE NOT (condition) shows the rows that break it"


def _read_column(source: SqlText, node: exp.ColumnDef, found: Constraints, usage: str) -> None:
    for kind in (constraint.args.get("kind") for constraint in node.args.get("constraints") or ()):
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            found.keys.append((node.name,))
        elif isinstance(kind, exp.UniqueColumnConstraint) and not kind.args.get("nulls"):
            found.unique.append((node.name,))
        elif isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
            found.not_null.append(node.name)
        elif isinstance(kind, exp.Reference):
            found.references.append(_reference(source, (node.name,), kind, usage))
        elif not isinstance(kind, exp.CommentColumnConstraint | exp.DefaultColumnConstraint):
            told = "a constraint" if kind is None else kind.sql(dialect=DIALECT)
            instead = "leave it out, and give the value in INSERT" if isinstance(kind, _VALUED) else usage
            instead = _CHECKED if isinstance(kind, exp.CheckColumnConstraint) else instead
            raise source.unsupported(f"{told} of the column {node.name} is not supported", node, instead)


def _read_constraint(source: SqlText, node: exp.Expr, part: exp.Expr, found: Constraints, usage: str) -> None:
    if isinstance(node, exp.PrimaryKey):
        refuse_other_arguments(source, node, ("expressions", "include"), usage)
        found.keys.append(tuple(_names(node.expressions)))
    elif isinstance(node, exp.UniqueColumnConstraint) and isinstance(node.this, exp.Schema):
        found.unique.append(tuple(_names(node.this.expressions)))
    elif isinstance(node, exp.ForeignKey):
        refuse_other_arguments(source, node, ("expressions", "reference"), usage)
        columns = tuple(_names(node.expressions))
        found.references.append(_reference(source, columns, node.args["reference"], usage))
    else:
        instead = _CHECKED if isinstance(node, exp.CheckColumnConstraint) else usage
        raise source.unsupported(f"{node.sql(dialect=DIALECT)} is not supported", part, instead)


def _reference(source: SqlText, columns: tuple[str, ...], node: exp.Expr, usage: str) -> ForeignKey:
    refuse_other_arguments(source, node, ("this",), usage)
    target = node.this
    table = target.this if isinstance(target, exp.Schema) else target
    there = tuple(_names(target.expressions)) if isinstance(target, exp.Schema) else ()
    if there and len(there) != len(columns):
        raise source.unsupported("a foreign key references as many columns as it has", node, usage)
    return ForeignKey(columns, ".".join(part.name for part in table.parts), there)


def _names(columns: Iterable[exp.Expr]) -> Iterator[str]:
    for column in columns:
        yield column.name
