"""A case: small tables, SELECTs over them from the grammar, and a stream of changes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import sqlglot
from sqlglot import exp

from tests.fuzz.cases import CaseOf, TableSpec
from tests.fuzz.steps import Step
from tests.fuzz.streams import StreamMaker
from tests.fuzz.values import column
from tests.select.queries import Queries
from tests.select.words import Output, kind_of

_COLUMNS = [*["i", "j", "k", "s"] * 3, "i", "j", "d2", "d0", "dt", "b", "ts", "d2", "dt", "u", "li", "ls", "st"]
_ENGINES = (
    ("native",),
    ("native",),
    ("native",),
    ("pure",),
    ("native", "pure"),
    ("native on disk",),
    ("pure on disk",),
)
_PARAMETER = re.compile(
    r"((?:DATE |TIMESTAMP )?'[^']*'|ARRAY\[[^\]]*\]|-?[\d.]+|TRUE|FALSE|CAST\([\d.]+ AS DOUBLE\)) /\* parameter \*/"
)


@dataclass(frozen=True, slots=True)
class SelectView:
    """A view that is a text; ivme and DuckDB read the same, but for parameters, whose values DuckDB's has."""

    name: str
    sql: str
    rules: frozenset[str] = frozenset()
    options: tuple[tuple[str, Any], ...] = ()
    parameters: tuple[Any, ...] = ()

    def text(self) -> str:
        """The text for ivme: equal literals that are parameters are one."""
        names = list(self.literals)
        return _PARAMETER.sub(lambda found: f":p{names.index(found[1])}", self.sql)

    @property
    def literals(self) -> tuple[str, ...]:
        """The literals that are parameters p0, p1, ..."""
        return tuple(dict.fromkeys(found[1] for found in _PARAMETER.finditer(self.sql)))

    def duck_text(self) -> str:
        return self.sql

    @property
    def relations(self) -> frozenset[str]:
        """Every table and view that the text names, CTEs left out."""
        return shape(self.sql).relations


@dataclass(frozen=True, slots=True)
class Shape:
    """What comparing rows needs to know of a text.

    `order` are the places of the columns that the rows are ordered by, None where a key is not such a column;
    `unlimited` is the text without LIMIT and OFFSET, empty where there is none to take away.
    """

    relations: frozenset[str]
    order: tuple[int, ...] | None
    unlimited: str


class SelectCase(CaseOf[SelectView]):
    """A case whose views are texts."""

    __slots__ = ()


@cache
def shape(sql: str) -> Shape:
    tree = sqlglot.parse_one(sql)
    ctes = {cte.alias for cte in tree.find_all(exp.CTE) if cte.alias.startswith("w")}  # others hide what they read
    relations = frozenset(table.name for table in tree.find_all(exp.Table) if table.name not in ctes)
    is_limited = bool(tree.args.get("limit") or tree.args.get("offset"))
    return Shape(relations, _order(tree), _before_limit(sql) if is_limited else "")


def _before_limit(sql: str) -> str:
    """The text up to its own LIMIT, which is the last one that no parenthesis encloses."""
    return sql[: sql.rindex(" LIMIT ")]


def _order(tree: exp.Expr) -> tuple[int, ...] | None:
    order = tree.args.get("order")
    if order is None:
        return ()
    items = tree.selects if isinstance(tree, exp.Query) else []
    names = [] if any(item.is_star for item in items) else [item.alias_or_name for item in items]
    places: list[int] = []
    for key in order.expressions:
        subject = key.this
        if isinstance(subject, exp.Literal) and not subject.is_string:
            places.append(int(subject.this) - 1)
        elif isinstance(subject, exp.Column) and not subject.table and names.count(subject.name) == 1:
            places.append(names.index(subject.name))
        else:
            return None
    return tuple(places)


def make_case(seed: int) -> SelectCase:
    """The case of a seed; the same each time."""
    random = Random(seed)
    tables = tuple(_table(random, f"r{number}") for number in range(random.choice([2, 2, 3, 4])))
    relations = {t.name: tuple(Output(c.name, kind_of(c.type)) for c in t.columns) for t in tables}
    views = []
    for number in range(random.choice([1, 1, 2, 3])):
        grammar = Queries(random, relations)
        made = grammar.statement()
        view = SelectView(f"v{number}", made.text, frozenset(grammar.rules))
        views.append(view)
        if _is_one_bag(view) and random.random() < 0.5:
            relations[view.name] = made.columns
    return SelectCase(seed, tables, tuple(views), _steps(random, tables, views), random.choice(_ENGINES), _few(random))


def _is_one_bag(view: SelectView) -> bool:
    """Whether its rows do not depend on how ties at a LIMIT are broken, so that other views may read it."""
    return not shape(view.sql).unlimited and not view.literals


def _table(random: Random, name: str) -> TableSpec:
    names = list(dict.fromkeys(random.choice(_COLUMNS) for _ in range(random.choice([2, 3, 3, 4]))))
    key = tuple(names[: random.choice([1, 1, 2])]) if random.random() < 0.2 else ()
    return TableSpec(name, tuple(map(column, names)), primary_key=key)


def _steps(random: Random, tables: tuple[TableSpec, ...], views: list[SelectView]) -> tuple[Step, ...]:
    return StreamMaker(random, tables, views).steps()


def _few(random: Random) -> int:
    return random.choice([0, 2, 16, 16])
