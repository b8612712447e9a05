"""What the rules of translation ask about a query of another system: types of its parts, and what cannot be NULL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from ivme.errors import UnsupportedError
from ivme.query.model import Table
from ivme.query.sql_types import type_node

_MARK = "ivme"
_DECIMAL = (exp.DType.DECIMAL, exp.DType.DECIMAL256, exp.DType.BIGDECIMAL)
_TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPTZ)


@dataclass(frozen=True)
class Asked:
    """A query of another system, before its translation."""

    text: str
    dialect: str
    tables: tuple[Table, ...]
    wide: bool
    """Whether all integers have 64 bits there, of which a sum is a decimal in PostgreSQL."""
    original: exp.Query
    """The query as it came: its nodes have the marks of those that are rewritten."""

    @cached_property
    def typed(self) -> dict[int, exp.Expr]:
        """The nodes that have types, by their marks."""
        return _typed(self.original, self.dialect, self.tables)

    def kind(self, node: exp.Expr | None) -> str:
        """The kind of a node's values: int, decimal, float, date, timestamp, other, or unknown."""
        type_ = self._type(node)
        if type_ is None or type_.is_type(exp.DType.UNKNOWN, exp.DType.NULL):
            return "unknown"
        if type_.is_type(*exp.DataType.INTEGER_TYPES):
            return "int"
        if type_.is_type(*_DECIMAL):
            return "decimal"
        if type_.is_type(*exp.DataType.REAL_TYPES):
            return "float"
        return "timestamp" if type_.is_type(*_TIMES) else "date" if type_.is_type(exp.DType.DATE) else "other"

    def is_bool(self, node: exp.Expr) -> bool:
        """Whether a node is known to be true or false."""
        type_ = self._type(node)
        return type_ is not None and type_.is_type(exp.DType.BOOLEAN)

    def _type(self, node: exp.Expr | None) -> exp.DataType | None:
        if node is None:
            return None
        found = self.typed.get(node.meta.get(_MARK, -1))
        if found is None and node.parent is not None and node.arg_key is not None:  # a column that became another
            around = self.typed.get(node.parent.meta.get(_MARK, -1))
            part = around.args.get(node.arg_key) if around is not None else None
            found = part[node.index] if isinstance(part, list) and node.index is not None else part
        return found.type if isinstance(found, exp.Expr) else None

    def is_filled(self, node: exp.Expr) -> bool:
        """Whether an aggregate's argument is NULL in no row that it sees."""
        return isinstance(node, exp.Literal | exp.Boolean) or node.sql() in set(self._filled(node))

    def _filled(self, node: exp.Expr) -> Iterator[str]:
        """The texts of what IS NOT NULL in the conditions around a node, or as a column of its table."""
        select, kept = node.find_ancestor(exp.Select), node.find_ancestor(exp.Filter)
        for where in (kept.expression if kept else None, select.args.get("where") if select else None):
            for part in where.this.flatten() if where and isinstance(where.this, exp.And) else [where and where.this]:
                negated = part.this if isinstance(part, exp.Not) else part
                is_not = isinstance(part, exp.Not) or (part is not None and part.args.get("negate"))
                if is_not and isinstance(negated, exp.Is) and isinstance(negated.expression, exp.Null):
                    yield negated.this.sql()
        if select and isinstance(node, exp.Column):
            yield from self._promised(select, node)

    def _promised(self, select: exp.Select, node: exp.Column) -> Iterator[str]:
        """The text of a column that its table promises to be filled, if nothing between could make it NULL."""
        joins = select.args.get("joins") or ()
        read = [each.this for each in (select.args.get("from_"), *joins) if each]
        if any(join.side for join in joins) or not all(isinstance(each, exp.Table) for each in read):
            return
        names = {each.name.lower() for each in read}
        promised = [table for table in self.tables if table.name.lower() in names]
        if len(promised) != len(read) or select.root().find(exp.CTE):
            return
        columns = [column.name.lower() for table in promised for column in table.columns]
        filled = {name.lower() for table in promised for name in (*table.not_null, *(table.primary_key or ()))}
        if node.name.lower() in filled and columns.count(node.name.lower()) == 1:
            yield node.sql()

    def refusal(self, message: str, instead: str) -> UnsupportedError:
        return UnsupportedError(message, text=self.text, instead=instead)

    def unknown(self, node: exp.Expr) -> UnsupportedError:
        """The refusal of a function that nobody compared."""
        return self.refusal(
            f"{self.sql(node)} is not translated from {self.dialect}: nobody compared it with Spark's",
            "leave dialect= out, and write the query with the functions of docs/sql_functions.md",
        )

    def sql(self, node: exp.Expr) -> str:
        return node.sql(self.dialect)


def asked(text: str, statement: exp.Query, dialect: str, tables: Iterable[Table], *, wide: bool = False) -> Asked:
    """The query with the types of its parts, as far as they are known; its nodes are marked."""
    declared = tuple(tables)
    for number, node in enumerate(statement.walk()):
        node.meta[_MARK] = number
    return Asked(text, dialect, declared, wide, statement.copy())


def _typed(statement: exp.Query, dialect: str, tables: Iterable[Table]) -> dict[int, exp.Expr]:
    schema = MappingSchema(dialect=dialect)
    for table in tables:
        if all(column.type is not None for column in table.columns):
            columns = {column.name: type_node(column.type) for column in table.columns if column.type is not None}
            schema.add_table(table.name, columns, dialect=dialect, match_depth=False)
    try:
        qualified = qualify(statement, schema=schema, dialect=dialect, validate_qualify_columns=False)
        typed = annotate_types(qualified, schema=schema, dialect=dialect)
    except SqlglotError:
        return {}  # names that are not there: the view is refused for them, with their place
    return {node.meta[_MARK]: node for node in typed.walk() if _MARK in node.meta}
