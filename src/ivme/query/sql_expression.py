"""Scalar SQL expressions over one occurrence of a table, translated into `Expression`s.

Only the nodes named here are accepted, with only the arguments named here: everything else is refused, so that no
expression is computed differently from what its author wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp

from ivme.errors import DataError, SchemaError, UnsupportedError
from ivme.query.expression import Call, Expression, Literal, evaluate
from ivme.query.functions import FUNCTIONS
from ivme.query.inference import FLOAT, type_of
from ivme.query.model import Table
from ivme.query.one_type import cast_to, with_one_type
from ivme.query.sql_scope import Scope
from ivme.query.sql_text import DIALECT, SqlText, refuse_other_arguments
from ivme.query.types import Type, parse_type

MAXIMUM_DEPTH = 100
"""How deeply expressions may nest: far below what would exhaust the stack of the code that walks them."""

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.NullSafeEQ: "null_safe_eq",
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Div: "divide",
    exp.Mod: "modulo",
    exp.Nullif: "nullif",
    exp.DPipe: "concat",
}
_UNARY: dict[type[exp.Expr], str] = {
    exp.Not: "not",
    exp.Neg: "negate",
    exp.Abs: "abs",
    exp.Lower: "lower",
    exp.Upper: "upper",
    exp.Length: "length",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
    exp.Trim: "trim",
    exp.Year: "year",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
}
_NARROW = {
    **dict.fromkeys((exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT), ("integers", "BIGINT")),
    exp.DType.FLOAT: ("floats", "DOUBLE"),
}
"""Types that would round or overflow where ours do not: what values we have instead, and the type to write."""
_NO_NAMES = ("not", "in", "like", "case", "negate", "fails")
"""Functions that SQL does not write as a name with arguments, or does not have."""

_SUPPORTED = "use + - * / % ||, comparisons, AND OR NOT, IS NULL, IN, BETWEEN, LIKE, CASE, IF, CAST, " + ", ".join(
    name.upper() for name in FUNCTIONS if not FUNCTIONS[name].symbol and name not in _NO_NAMES and "_" not in name
)


def _as_float(argument: Expression, type_: Type | None) -> Expression:
    if isinstance(argument, Literal):
        return Literal(float(argument.value))
    return cast_to(argument, type_, FLOAT)


def read_type(source: SqlText, node: exp.DataType) -> Type:
    """The column type that a SQL type names; DECIMAL alone is DECIMAL(10, 0), as in Spark."""
    text = node.sql(dialect=DIALECT)
    try:
        return parse_type("decimal(10, 0)" if text.upper() == "DECIMAL" else text)
    except SchemaError as error:
        instead = "use BIGINT, DOUBLE, DECIMAL(p, s), STRING, BOOLEAN, DATE, TIMESTAMP or BINARY"
        raise source.unsupported(str(error), node, instead) from error


@dataclass(frozen=True, slots=True)
class Scalars:
    """Translates the expressions of one clause: `visible` are the occurrences that its names may mean."""

    scope: Scope
    visible: tuple[int, ...]

    @property
    def source(self) -> SqlText:
        return self.scope.source

    def occurrences(self, node: exp.Expr) -> list[int]:
        """The occurrences whose columns an expression reads."""
        found = {self.scope.resolve(column, self.visible).occurrence for column in node.find_all(exp.Column)}
        return sorted(found)

    def translate(self, node: exp.Expr, depth: int = 0) -> Expression:
        """The expression for a node; its columns are taken to be all of one occurrence."""
        if depth > MAXIMUM_DEPTH:
            raise self.source.unsupported(
                f"the expression nests deeper than {MAXIMUM_DEPTH}", node, "store part of it as a column"
            )
        binary, unary = _BINARY.get(type(node)), _UNARY.get(type(node))
        if binary is not None:
            self._only(
                node, "this", "expression", *(("typed", "safe") if isinstance(node, exp.Div | exp.DPipe) else ())
            )
            return self._call(binary, [node.this, node.expression], depth)
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
            return self._number(node.this, "-")
        if unary is not None:
            self._only(node, "this")
            return self._call(unary, [self._date(node.this)], depth)
        special = _SPECIAL.get(type(node))
        if special is None:
            raise self._refusal(node)
        return special(self, node, depth)

    def _date(self, node: exp.Expr) -> exp.Expr:
        """What YEAR, MONTH and DAY are of: sqlglot wraps it into a conversion that `evaluate` does by itself."""
        return node.this if isinstance(node, exp.TsOrDsToDate) and not node.args.get("safe") else node

    def _only(self, node: exp.Expr, *handled: str) -> None:
        refuse_other_arguments(self.source, node, handled, _SUPPORTED)

    def _call(self, function: str, nodes: list[exp.Expr | None], depth: int) -> Expression:
        arguments = tuple(self.translate(node, depth + 1) for node in nodes if node is not None)
        return Call(function, arguments)

    def _refusal(self, node: exp.Expr) -> Exception:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            name = f":{node.name}" if node.this else "?"
            instead = "compare it for equality with a column, as in WHERE column = :name"
            return self.source.unsupported(f"the parameter {name} cannot stand here", node, instead)
        if isinstance(node, exp.Window):
            return self.source.unsupported("window functions are not supported", node, "use GROUP BY")
        if isinstance(node, exp.AggFunc):
            instead = "use COUNT, SUM, AVG, MIN or MAX, each as a whole column of SELECT"
            return self.source.unsupported(f"{self._name(node)} cannot stand here", node, instead)
        return self.source.unsupported(f"{self._name(node)} is not supported", node, _SUPPORTED)

    def refuse_queries(self, node: exp.Expr) -> None:
        """Refuses subqueries, before any of their names is looked up in the wrong place."""
        query = node.find(exp.Query)
        if query is not None:
            instead = "join the tables, or make the subquery a view of its own"
            raise self.source.unsupported("a subquery is not supported", self.source.query(query), instead)

    def _name(self, node: exp.Expr) -> str:
        """What to call a node in a message: a function as its author wrote it."""
        start, end = node.meta.get("start"), node.meta.get("end")
        if isinstance(node, exp.Func) and start is not None and end is not None:
            return f"the function {self.source.text[start : end + 1].upper()}"
        return f"the expression {node.sql(dialect=DIALECT, comments=False)}"

    def _column(self, node: exp.Expr, _: int) -> Expression:
        assert isinstance(node, exp.Column)
        return self.scope.resolve(node, self.visible).expression

    def _paren(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this")
        return self.translate(node.this, depth + 1)

    def _connective(self, node: exp.Expr, depth: int) -> Expression:
        assert isinstance(node, exp.Connector)
        return self._call("and" if isinstance(node, exp.And) else "or", list(node.flatten()), depth)

    def _literal(self, node: exp.Expr, _: int) -> Expression:
        assert isinstance(node, exp.Literal)
        return Literal(node.this) if node.is_string else self._number(node)

    def _number(self, node: exp.Literal, sign: str = "") -> Expression:
        """1 is an integer, 1.5 a decimal and 1e3 a float, as in Spark; an integer beyond 64 bits is a decimal."""
        text = sign + node.this
        if text.lstrip("-").isdigit() and len(text) <= 38:
            value = int(text)
            return Literal(value if -(2**63) <= value < 2**63 else Decimal(value))
        try:
            number = float(text) if "e" in text.lower() else Decimal(text)
        except ArithmeticError:
            number = math.nan
        if not math.isfinite(number) or (isinstance(number, Decimal) and len(number.as_tuple().digits) > 38):
            raise self.source.unsupported("the number is out of range", node, "use at most 38 digits")
        return Literal(number)

    def _constant(self, node: exp.Expr, _: int) -> Expression:
        return Literal(None if isinstance(node, exp.Null) else bool(node.this))

    def _distinct_from(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expression")
        return Call("not", (self._call("null_safe_eq", [node.this, node.expression], depth + 1),))

    def _is(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expression")
        if isinstance(node.expression, exp.Null):
            return self._call("is_null", [node.this], depth)
        if isinstance(node.expression, exp.Boolean):
            return self._call("null_safe_eq", [node.this, node.expression], depth)
        raise self._refusal(node)

    def _in(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expressions")
        if not node.expressions:
            raise self.source.unsupported("IN needs a list of values", node, "write IN (1, 2, 3)")
        arguments = [self.translate(each, depth + 1) for each in (node.this, *node.expressions)]
        return Call("in", self._in_one_type(node, arguments))

    def _in_one_type(self, node: exp.Expr, arguments: list[Expression]) -> tuple[Expression, ...]:
        """The value and the list of an IN; with a float among numbers all are floats, as in Spark."""
        occurrences = self.occurrences(node)
        if len(occurrences) > 1:
            return tuple(arguments)
        try:
            found = self.scope.table(occurrences[0]) if occurrences else Table("constants", ())
            types = [type_of(argument, found) for argument in arguments]
        except SchemaError as error:
            raise self._no_common_type(error, node) from None
        if FLOAT not in types or not all(type_ is not None and type_.is_numeric for type_ in types):
            return tuple(arguments)
        return tuple(_as_float(argument, type_) for argument, type_ in zip(arguments, types, strict=True))

    def _between(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "low", "high")
        bounds = [
            self._call(name, [node.this, node.args[end]], depth + 1) for name, end in (("ge", "low"), ("le", "high"))
        ]
        return Call("and", tuple(bounds))

    def _like(self, node: exp.Expr, depth: int) -> Expression:
        escape = node.expression if isinstance(node, exp.Escape) else None
        inner = node.this if escape is not None else node
        if not isinstance(inner, exp.Like):
            raise self._refusal(inner)
        self._only(node, "this", "expression", "negate")
        self._only(inner, "this", "expression", "negate")
        matched = self._call("like", [inner.this, inner.expression, escape], depth + 1)
        return Call("not", (matched,)) if inner.args.get("negate") or node.args.get("negate") else matched

    def _case(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "ifs", "default")
        arguments: list[Expression] = []
        for branch in node.args["ifs"]:
            self._only(branch, "this", "true")
            chosen = self.translate(branch.this, depth + 1)
            if node.this is not None:
                chosen = Call("eq", (self.translate(node.this, depth + 1), chosen))
            arguments += [chosen, self.translate(branch.args["true"], depth + 1)]
        default = node.args.get("default")
        made = Call("case", (*arguments, *([] if default is None else [self.translate(default, depth + 1)])))
        return self._with_one_type(node, made)

    def _if(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "true", "false")
        made = self._call("case", [node.this, node.args.get("true"), node.args.get("false")], depth)
        return self._with_one_type(node, made)

    def _coalesce(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expressions")
        return self._with_one_type(node, self._call("coalesce", [node.this, *node.expressions], depth))

    def _with_one_type(self, node: exp.Expr, made: Expression) -> Expression:
        """A CASE or COALESCE each of whose values is cast to the type of the whole, as far as types are declared."""
        occurrences = self.occurrences(node)
        assert isinstance(made, Call)
        if len(occurrences) > 1:
            return made
        try:
            read = self.scope.table(occurrences[0]) if occurrences else Table("constants", ())
            return with_one_type(made, read)
        except SchemaError as error:
            raise self._no_common_type(error, node) from None

    def _no_common_type(self, error: SchemaError, node: exp.Expr) -> UnsupportedError:
        """The error of `inference`, whose text ends with what to do, at the place of a node."""
        message, _, instead = str(error).partition("; ")
        return self.source.unsupported(message, node, instead or "CAST one of them")

    def _substring(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "start", "length")
        if node.args.get("start") is None:
            raise self.source.unsupported("SUBSTRING needs a start", node, "write SUBSTRING(text, 1, 3)")
        return self._call("substring", [node.this, node.args["start"], node.args.get("length")], depth)

    def _round(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "decimals")
        return self._call("round", [node.this, node.args.get("decimals")], depth)

    def _concat(self, node: exp.Expr, depth: int) -> Expression:
        """CONCAT, or literals side by side: touching ones are one literal with a doubled quote, as in Spark 4."""
        self._only(node, "expressions", "safe")
        parts = node.expressions
        if not node.args.get("safe") and all(isinstance(part, exp.Literal) and part.is_string for part in parts):
            return Literal(self._side_by_side(node))
        return self._call("concat", list(parts), depth)

    def _side_by_side(self, node: exp.Expr) -> str:
        start = self.source.at(node)
        tokens = [token for token in self.source.tokens if start is not None and token.start >= start]
        value = str(node.expressions[0].this)
        for part, (before, after) in zip(node.expressions[1:], pairwise(tokens), strict=False):
            value += (self.source.text[after.start] if before.end + 1 == after.start else "") + part.this
        return value

    def _extract(self, node: exp.Expr, depth: int) -> Expression:
        self._only(node, "this", "expression")
        part = node.this.name.lower()
        if part not in ("year", "month", "day"):
            raise self.source.unsupported(
                f"EXTRACT({part.upper()}) is not supported", node, "extract YEAR, MONTH or DAY"
            )
        return self._call(part, [self._date(node.expression)], depth)

    def _anonymous(self, node: exp.Expr, depth: int) -> Expression:
        name = node.name.lower()
        if name not in ("isnull", "isnotnull") or len(node.expressions) != 1:
            raise self._refusal(node)
        tested = self._call("is_null", node.expressions, depth + 1)
        return tested if name == "isnull" else Call("not", (tested,))

    def _cast(self, node: exp.Expr, depth: int) -> Expression:
        """A cast; one of a literal is done here and now, so that a bad date is refused with its place."""
        self._only(node, "this", "to")
        narrow = _NARROW.get(node.args["to"].this)
        if narrow is not None:
            what, instead = narrow
            raise self.source.unsupported(f"ivme's {what} have 64 bits", node, f"write CAST(x AS {instead})")
        target = read_type(self.source, node.args["to"])
        if target.kind == "binary":
            raise self.source.unsupported("a CAST to BINARY is not supported", node, "store the column as BINARY")
        value = self.translate(node.this, depth + 1)
        scale = (Literal(target.precision), Literal(target.scale)) if target.kind == "decimal" else ()
        call = Call(f"cast_{target.kind}", (value, *scale))
        if not isinstance(value, Literal):
            return call
        try:
            return Literal(evaluate(call, {}))
        except DataError as error:
            raise self.source.unsupported(str(error), node, "write a value of that type") from error


_SPECIAL: dict[type[exp.Expr], Callable[[Scalars, exp.Expr, int], Expression]] = {
    exp.Column: Scalars._column,
    exp.Paren: Scalars._paren,
    exp.And: Scalars._connective,
    exp.Or: Scalars._connective,
    exp.Literal: Scalars._literal,
    exp.Null: Scalars._constant,
    exp.Boolean: Scalars._constant,
    exp.NullSafeNEQ: Scalars._distinct_from,
    exp.Is: Scalars._is,
    exp.In: Scalars._in,
    exp.Between: Scalars._between,
    exp.Like: Scalars._like,
    exp.Escape: Scalars._like,
    exp.Case: Scalars._case,
    exp.If: Scalars._if,
    exp.Coalesce: Scalars._coalesce,
    exp.Substring: Scalars._substring,
    exp.Round: Scalars._round,
    exp.Concat: Scalars._concat,
    exp.Extract: Scalars._extract,
    exp.Anonymous: Scalars._anonymous,
    exp.Cast: Scalars._cast,
    exp.TryCast: Scalars._cast,
}
