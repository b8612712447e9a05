"""Random scalar expressions over the columns of one table, each written for ivme and for DuckDB at once."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from ivme.query.types import Type
from tests.fuzz.dialect import RULES, Rule
from tests.fuzz.values import POOLS, Column, value

INT, FLOAT, STRING, BOOL = Type("int"), Type("float"), Type("string"), Type("bool")
_MOST = 10**9
"""No number that is computed gets larger, so that nothing overflows and doubles hold every integer."""


@dataclass(frozen=True, slots=True)
class Expr:
    """An expression: its text in both dialects, its type, and simpler ones of the same type for the shrinker."""

    spark: str
    duck: str
    type: Type
    bound: int | None = None
    exact: bool = True
    simpler: tuple[Expr, ...] = ()
    features: tuple[str, ...] = ()
    plain: bool = False


def reference(alias: str, column: Column) -> Expr:
    """A column, named by its table's alias."""
    text = f"{alias}.{column.name}"
    return Expr(text, text, column.type, column.bound, column.exact, plain=True)


def literal(found: Any, type_: Type) -> Expr:
    """A constant; the same text serves both dialects but for types that a literal does not tell."""
    spark = duck = written(found)
    if isinstance(found, str):
        spark = spark.replace("\\", "\\\\").replace("\n", "\\n")
    if isinstance(found, float):
        duck = f"CAST('{found}' AS DOUBLE)"
        spark = f"{found}e0" if "e" not in repr(found) else repr(found)
    number: Any = found if isinstance(found, int | float | Decimal) else None
    bound = abs(int(number)) + 1 if number is not None and abs(number) < 10**12 else None
    return Expr(spark, duck, type_, bound, plain=False)


def written(found: Any) -> str:
    """A value as an SQL literal."""
    if found is None:
        return "NULL"
    if isinstance(found, bool):
        return str(found).upper()
    if isinstance(found, str):
        return "'" + found.replace("'", "''") + "'"
    if isinstance(found, datetime.datetime):
        return f"TIMESTAMP '{found.isoformat(' ')}'"
    if isinstance(found, datetime.date):
        return f"DATE '{found.isoformat()}'"
    return format(found, "f") if isinstance(found, Decimal) else str(found)


class Grower:
    """Grows expressions over the columns of one alias."""

    def __init__(self, random: Random, alias: str, columns: Sequence[Column]) -> None:
        self.random = random
        self.alias = alias
        self.columns = [column for column in columns if column.exact]

    def any(self, depth: int) -> Expr | None:
        """A value of any type that reads a column."""
        if not self.columns:
            return None
        column = self.random.choice(self.columns)
        if depth and self.random.random() < 0.5 and column.type.kind == "decimal":
            return self._decimal(column)
        if depth and self.random.random() < 0.45:
            kinds = ["int", "float", "string", "bool", "same"]
            rules = [rule for rule in RULES if rule.arguments[0] == column.type.kind]
            if not rules or self.random.random() < 0.4:
                rules = [rule for rule in RULES if rule.result == self.random.choice(kinds)]
            grown = self._applied(self.random.choice(rules), column.type, depth) if rules else None
            if grown is not None and reads(grown, self.alias):
                return grown
        return reference(self.alias, column)

    def condition(self, depth: int) -> Expr | None:
        """A predicate that reads a column."""
        for _ in range(6):
            rules = [rule for rule in RULES if rule.result == "bool"]
            if not self.columns:
                return None
            grown = self._applied(self.random.choice(rules), self.random.choice(self.columns).type, depth)
            if grown is not None and reads(grown, self.alias):
                return grown
        return None

    def _applied_to(self, type_: Type) -> Expr | None:
        """A function of a column, of the given type."""
        rules = [rule for rule in RULES if rule.result in (type_.kind, "same") and rule.result != "bool"]
        grown = self._applied(self.random.choice(rules), type_, 1)
        return grown if grown is not None and reads(grown, self.alias) else None

    def _applied(self, rule: Rule, same: Type, depth: int) -> Expr | None:
        arguments = [self._argument(kind, same, depth, number) for number, kind in enumerate(rule.arguments)]
        given = [argument for argument in arguments if argument is not None]
        if len(given) < len(arguments):
            return None
        type_ = same if rule.result == "same" else Type(rule.result)
        bound = _bound(rule, given)
        if type_.kind in ("int", "float") and rule.result != "same" and (bound is None or bound > _MOST):
            return None
        texts = {dialect: rule.written(dialect, [operand(each, dialect) for each in given]) for dialect in DIALECTS}
        simpler = tuple(each for each in given if each.type == type_)
        features = (f"function:{rule.name}", *(name for each in given for name in each.features))
        return Expr(texts["spark"], texts["duck"], type_, bound, simpler=simpler, features=features)

    def _argument(self, kind: str, same: Type, depth: int, number: int) -> Expr | None:
        if kind == "divisor":
            return literal(self.random.choice([2, 3, -4]), INT)
        if kind == "digits":
            found = [column for column in self.columns if column.type == STRING and column.bound is not None]
            return reference(self.alias, self.random.choice(found)) if found else None
        if kind == "any":
            return reference(self.alias, self.random.choice(self.columns))
        if kind == "bool":
            return self.condition(depth - 1) if depth > 0 else self._leaf(BOOL, bounded=False)
        if kind == "decimal":
            found = [column for column in self.columns if column.type.kind == "decimal"]
            return reference(self.alias, self.random.choice(found)) if found else None
        type_ = same if kind == "same" else Type(kind)
        bounded = kind in ("int", "float")
        if depth > 1 and self.random.random() < 0.35 and type_.kind != "decimal":
            rules = [rule for rule in RULES if rule.result in (type_.kind, "same") and rule.result != "bool"]
            grown = self._applied(self.random.choice(rules), type_, depth - 1)
            if grown is not None and not (bounded and grown.bound is None):
                return grown
        constant = number > 0 and self.random.random() < 0.6
        return self._constant(type_) if constant else self._leaf(type_, bounded=bounded) or self._constant(type_)

    def _leaf(self, type_: Type, *, bounded: bool) -> Expr | None:
        found = [c for c in self.columns if c.type == type_ and not (bounded and c.bound is None)]
        return reference(self.alias, self.random.choice(found)) if found else None

    def _constant(self, type_: Type) -> Expr | None:
        names = [name for name, (kind, _, _) in POOLS.items() if kind == str(type_) and name not in ("wild", "huge")]
        if not names or type_.kind == "binary":
            return None
        return literal(value(self.random, self.random.choice(names), nulls=False), type_)

    def _decimal(self, column: Column) -> Expr | None:
        """Arithmetic on decimals, where Spark's rule for precision and scale needs at most 38 digits."""
        whole = reference(self.alias, column)
        precision, scale = column.type.precision or 0, column.type.scale or 0
        other = self.random.choice([c for c in self.columns if c.type.kind == "decimal"])
        p2, s2 = other.type.precision or 0, other.type.scale or 0
        right = reference(self.alias, other)
        kind = self.random.choice(["add", "subtract", "multiply", "divide", "negate", "floor", "round", "cast", "int"])
        widest = max(scale, s2)
        total = max(precision - scale, p2 - s2) + widest + 1
        if kind in ("add", "subtract") and total <= 38:
            sign = "+" if kind == "add" else "-"
            sides = [f"CAST({each} AS DECIMAL(38, {widest}))" for each in (whole.duck, right.duck)]
            return self._made(
                f"decimal {kind}", f"({whole.spark} {sign} {right.spark})", f" {sign} ".join(sides), total, widest
            )
        if kind == "multiply" and precision + p2 + 1 <= 38:
            text = f"({whole.spark} * {right.spark})"
            return self._made("decimal multiply", text, text, precision + p2 + 1, scale + s2)
        if kind == "divide":
            result = max(6, scale + 1 + 1)
            if precision - scale + result <= 38:
                duck = f"CAST(spark_divide(CAST({whole.duck} AS VARCHAR), '3', {result}) AS DECIMAL(38, {result}))"
                return self._made("decimal divide", f"({whole.spark} / 3)", duck, precision - scale + result, result)
        if kind == "negate":
            return self._made("decimal negate", f"(- {whole.spark})", f"(- {whole.duck})", precision, scale)
        if kind == "floor" and precision < 38:
            function = self.random.choice(["FLOOR", "CEIL"])
            text = f"{function}({whole.spark})"
            return self._made(f"decimal {function.lower()}", text, text, precision - scale + 1, 0)
        if kind == "round" and scale > 1 and precision < 38:
            text = f"ROUND({whole.spark}, 1)"
            return self._made("decimal round", text, text, precision - scale + 2, 1)
        if kind == "cast" and precision - scale <= 20:
            text = f"CAST({whole.spark} AS DECIMAL(22, 1))"
            return self._made("cast decimal", text, text, 22, 1)
        if kind == "int" and precision - scale <= 18:
            return Expr(
                f"CAST({whole.spark} AS BIGINT)",
                f"CAST(TRUNC({whole.duck}) AS BIGINT)",
                INT,
                features=("function:cast int of decimal",),
            )
        return whole

    def _made(self, name: str, spark: str, duck: str, precision: int, scale: int) -> Expr:
        return Expr(spark, f"({duck})", Type("decimal", precision, scale), features=(f"function:{name}",))


DIALECTS = ("spark", "duck")


def operand(expression: Expr, dialect: str) -> str:
    """An argument; conditions in parentheses, since the dialects need not agree on what binds more tightly."""
    text: str = getattr(expression, dialect)
    return f"({text})" if expression.type == BOOL and not expression.plain and " " in text else text


def reads(expression: Expr, alias: str) -> bool:
    return f"{alias}." in expression.spark


_BOUNDED = ("length", "text search")
"""Functions of text, whose values are small."""


def _bound(rule: Rule, arguments: list[Expr]) -> int | None:
    """How large the value can be: the product is an upper bound for each function there is."""
    if rule.name in _BOUNDED or rule.arguments[0] in ("date", "timestamp"):
        return 10_000_000 if rule.name == "difference of moments" else 10_000
    if rule.name == "checked cast":
        return arguments[0].bound or 99
    found = 1
    numbers = [each for each in arguments if each.type.kind in ("int", "float", "string") and each.bound is not None]
    if rule.result == "same" and arguments[0].type.kind in ("int", "float"):
        sides = [each.bound for each in arguments if each.type == arguments[0].type]
        return None if None in sides else max(side or 0 for side in sides)
    for each in numbers:
        found *= max(each.bound or 1, 2) + 1
    return found
