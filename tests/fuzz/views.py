"""What a view of a case is: its parts, which the shrinker takes away one by one, and its text in both dialects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ivme.query.types import Type
from tests.fuzz.aggregates import FLOAT, FOLDS
from tests.fuzz.expressions import Expr, operand
from tests.fuzz.values import Column

GUARD, GUARDED = "guard of another table", "query:guarded by another table"
"""Features of a condition that keeps rows out of a view, and of an expression over another table that fails there."""


@dataclass(frozen=True, slots=True)
class Closure:
    """WITH RECURSIVE: the pairs of a table of edges with a path between them."""

    relation: str
    ends: tuple[str, str]
    step: str
    union: str = "UNION"

    def text(self, dialect: str) -> str:
        first, last = self.ends
        step = {
            "left": f"SELECT p.x, e.{last} FROM p JOIN {self.relation} e ON p.y = e.{first}",
            "right": f"SELECT e.{first}, p.y FROM {self.relation} e, p WHERE e.{last} = p.x",
            "double": "SELECT a.x, b.y FROM p a JOIN p b ON a.y = b.x",
        }
        told = step[self.step] if dialect == "spark" or self.step != "double" else step["left"]
        union = self.union if dialect == "spark" else "UNION"
        return f"WITH RECURSIVE p(x, y) AS (SELECT {first}, {last} FROM {self.relation} {union} {told}) "


@dataclass(frozen=True, slots=True)
class Source:
    """A relation of FROM; `join` is how it is written: a comma, JOIN (with ON or USING) or CROSS JOIN."""

    relation: str
    alias: str
    join: str = ","
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Condition:
    """A conjunct of WHERE, or of the ON of the last of its aliases."""

    expression: Expr
    aliases: tuple[str, ...]
    on: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A column of SELECT: an expression, or an aggregate over one (over rows if there is none)."""

    name: str
    alias: str
    expression: Expr | None
    function: str = ""

    @property
    def type(self) -> Type:
        """The type of the column, by Spark's rules; sums and averages of decimals have 38 digits here."""
        inner = None if self.expression is None else self.expression.type
        if self.function in ("count", "count_if", "count_distinct") or inner is None:
            return Type("int")
        if self.function in FOLDS:
            return FOLDS[self.function].type or inner
        function = self.function.removesuffix("_distinct")
        if function in ("sum", "avg") and inner.kind == "decimal":
            return Type("decimal", 38, min((inner.scale or 0) + (4 if function == "avg" else 0), 38))
        return FLOAT if function in ("avg", *DEVIATIONS) else inner

    @property
    def rounded(self) -> bool:
        """Whether the value is a sum of floats."""
        kind = None if self.expression is None else self.expression.type.kind
        return self.function.removesuffix("_distinct") in ("sum", "avg", *DEVIATIONS) and kind == "float"

    @property
    def column(self) -> Column:
        kept = self.function in ("", "min", "max", "any_value", "mode", "max_by") and self.expression is not None
        bound = self.expression.bound if kept and self.expression is not None else None
        return Column(self.name, self.type, bound, not self.rounded)


DEVIATIONS = ("var_samp", "stddev_samp", "var_pop", "stddev_pop")
MOST_SQUARED_DIGITS = 19
"""Decimals of more digits have to be cast before they are squared."""

_SPELLED = {
    **{f"{name}_distinct": f"{name.upper()}(DISTINCT {{}})" for name in ("count", "sum", "avg")},
    **{name: fold.spelled for name, fold in FOLDS.items()},
}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    alias: str
    expression: Expr


@dataclass(frozen=True, slots=True)
class ViewSpec:
    """A view: the parts of its SELECT, and the options that it is made with."""

    name: str
    sources: tuple[Source, ...]
    items: tuple[Item, ...]
    conditions: tuple[Condition, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    group: tuple[tuple[str, Expr], ...] | None = None
    grouping: str = "expressions"
    distinct: bool = False
    star: bool = False
    closure: Closure | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def aggregates(self) -> bool:
        return any(item.function for item in self.items)

    @property
    def is_set(self) -> bool:
        asked = self.distinct or dict(self.options).get("semantics") == "set"
        return not self.aggregates and (asked or self.group is not None)

    @property
    def relations(self) -> frozenset[str]:
        """The tables and views that it reads."""
        closed = frozenset() if self.closure is None else frozenset({self.closure.relation})
        return closed | {source.relation for source in self.sources if source.relation != "p"}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(item.column for item in self.items)

    def text(self) -> str:
        """The view as ivme reads it."""
        listed = "*" if self.star else ", ".join(_item(item) for item in self.items)
        with_ = "" if self.closure is None else self.closure.text("spark")
        parameters = [f"{operand(each.expression, 'spark')} = :{each.name}" for each in self.parameters]
        text = f"{with_}SELECT {'DISTINCT ' * self.distinct}{listed} {self._body('spark', parameters)}"
        return text + self._group_text()

    def duck_text(self) -> str:
        """The rows that are joined, for DuckDB: the parameters' expressions, then the items', then the groups'."""
        with_ = "" if self.closure is None else self.closure.text("duck")
        asked = [each.expression.duck for each in self.parameters]
        items = [_argument(item) for item in self.items]
        groups = [expression.duck for _, expression in self.group or ()]
        return f"{with_}SELECT {', '.join([*asked, *items, *groups])} {self._body('duck', [])}"

    def _body(self, dialect: str, more: list[str]) -> str:
        text = "FROM "
        for number, source in enumerate(self.sources):
            table = f"{source.relation} {source.alias}"
            if not number:
                text += table
                continue
            on = [c for c in self.conditions if c.on and c.aliases[-1] == source.alias]
            if source.using:
                text += f" JOIN {table} USING ({', '.join(source.using)})"
            elif on:
                text += f" JOIN {table} ON {' AND '.join(_written(c, dialect) for c in on)}"
            else:
                text += f", {table}" if source.join == "," else f" CROSS JOIN {table}"
        where = [_written(c, dialect) for c in self.conditions if not c.on] + more
        return text + (f" WHERE {' AND '.join(where)}" if where else "")

    def _group_text(self) -> str:
        if self.group is None:
            return ""
        if self.grouping == "all":
            return " GROUP BY ALL"
        texts = {item.expression.spark: (i, item.name) for i, item in self._plain()}
        parts = []
        for _, expression in self.group:
            found = texts.get(expression.spark)
            if found is None or self.grouping == "expressions":
                parts.append(expression.spark)
            else:
                parts.append(str(found[0] + 1) if self.grouping == "positions" else found[1])
        return f" GROUP BY {', '.join(parts)}"

    def _plain(self) -> Iterator[tuple[int, Any]]:
        return ((i, item) for i, item in enumerate(self.items) if item.expression is not None and not item.function)

    def features(self) -> Iterator[str]:
        """What the view exercises, for the coverage report."""
        yield from _shape(self)
        for item in self.items:
            if item.function:
                yield f"aggregate:{item.function}"
                yield f"aggregate:{item.function} of {'rows' if item.expression is None else item.expression.type.kind}"
            yield f"output:{item.type.kind}"
        for expression in self.expressions():
            yield from expression.features
        for name, value in self.options:
            yield f"option:{name}={value if isinstance(value, str) else type(value).__name__}"

    @property
    def is_guarded(self) -> bool:
        """Whether nothing fails for a row of the view: expressions that could are there with the guard only."""
        features = {name for expression in self.expressions() for name in expression.features}
        return GUARDED not in features or GUARD in features

    def expressions(self) -> Iterator[Expr]:
        yield from (item.expression for item in self.items if item.expression is not None)
        yield from (condition.expression for condition in self.conditions)
        yield from (parameter.expression for parameter in self.parameters)
        yield from (expression for _, expression in self.group or ())


def _shape(view: ViewSpec) -> Iterator[str]:
    relations = [source.relation for source in view.sources]
    yield f"query:{len(relations)} tables"
    if len(set(relations)) < len(relations):
        yield "query:self-join"
    if view.group is not None:
        yield f"query:GROUP BY {view.grouping}"
        shown = {item.expression.spark for _, item in view._plain()}
        if any(expression.spark not in shown for _, expression in view.group):
            yield "query:group that is not selected"
    elif view.aggregates:
        yield "query:global aggregate"
    if view.distinct:
        yield "query:DISTINCT"
    if view.star:
        yield "query:*"
    if view.closure is not None:
        yield f"query:closure {view.closure.step} {view.closure.union}"
        yield "query:closure joined" if len(relations) > 1 or view.aggregates else "query:closure"
    if view.parameters:
        yield f"query:{len(view.parameters)} parameters"
        yield "query:parameters and aggregates" if view.aggregates else "query:parameters and rows"
    if any(source.using for source in view.sources):
        yield "query:USING"
    joins = [c for c in view.conditions if len(c.aliases) > 1]
    connected = {frozenset(c.aliases) for c in joins}
    if len(relations) > 1 and len(connected) < len(relations) - 1 and not any(s.using for s in view.sources):
        yield "query:cross product"
    if len(connected) >= len(relations) > 2:
        yield "query:cyclic join"
    if any("join:" in name for c in joins for name in c.expression.features):
        yield from (name for c in joins for name in c.expression.features if name.startswith("join:"))
    if any(c.on for c in view.conditions):
        yield "query:ON"
    if any(len(c.aliases) == 1 for c in view.conditions):
        yield "query:filter"


def _item(item: Item) -> str:
    if item.expression is None:
        return f"COUNT(*) AS {item.name}"
    inner = item.expression.spark
    if item.function:
        return f"{_SPELLED.get(item.function, item.function.upper() + '({})').format(inner)} AS {item.name}"
    return inner if item.expression.plain and inner.endswith(f".{item.name}") else f"{inner} AS {item.name}"


def _argument(item: Item) -> str:
    return "1" if item.expression is None else item.expression.duck


def _written(condition: Condition, dialect: str) -> str:
    text: str = getattr(condition.expression, dialect)
    return text if len(condition.aliases) > 1 else f"({text})"
