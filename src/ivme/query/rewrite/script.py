"""A query as a script: named SELECTs, each over tables and earlier ones, as WITH would list them.

Each SELECT of a script is in the language that `query.sql` reads: conjunctive, with whole aggregates as columns and
expressions over one table each. The passes of this package get any SELECT there, pass by pass. They work on sqlglot's
nodes, whose offsets stay, so that a refusal of any block points into the user's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from ivme.query.exact_text import exact_text
from ivme.query.order import Order
from ivme.query.rewrite.domains import VALUE, Domains, Undecided, in_order
from ivme.query.sql_scope import KnownTables, rename_one, same_name
from ivme.query.sql_text import SqlText
from ivme.query.sql_union import WEIGHT, is_union
from ivme.query.written import in_place_of

BLOCK = "block"
"""What the names of blocks begin with; no user's table can be called so, as they have a number sign in them."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """The rows of a block, in an order, as far as it has them."""

    rows: str
    order: Order


Saved = tuple[dict[str, exp.Expr], dict[str, tuple[str, ...]], dict[str, Ordered], dict[str, str], list[str]]


@dataclass(slots=True)
class Script:
    """The SELECTs so far. Equal ones are one."""

    source: SqlText
    tables: KnownTables
    selects: dict[str, exp.Expr] = field(default_factory=dict)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    orders: dict[str, Ordered] = field(default_factory=dict)
    domains: Domains = field(init=False)
    _by_text: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.domains = Domains(self.source)

    def add(self, select: exp.Expr) -> str:
        """The name of a block for a SELECT that is in the language of blocks, or for a union."""
        self.refuse_parameters(select)
        text = exact_text(select)
        name = self._by_text.get(text)
        if name is None:
            name = self._by_text[text] = f"{BLOCK}#{len(self.selects) + 1}"
            self.selects[name] = select
            first = select.expressions[0] if is_union(select) else select
            shown = [item for item in first.expressions if item.alias != WEIGHT]
            refuse_repeated(shown, self.source)
            self.columns[name] = tuple(item.alias_or_name for item in shown)
        return name

    def refuse_parameters(self, select: exp.Expr) -> None:
        """A block has no parameters, but for the view itself."""
        parameter = select.find(exp.Placeholder)
        if parameter is not None:
            message = f"the parameter :{parameter.name} is not supported in this place"
            instead = "compare it with a column by =, joined to the other conditions by AND"
            error = self.source.unsupported(message, parameter.parent, instead)
            raise Undecided(parameter.name, error)

    def add_ordered(self, rows: str, order: Order) -> str:
        """The name of a block for those rows of another that LIMIT, or a rank, leaves."""
        select = self.rows_of(rows)
        columns = order.shown(self.columns[rows])
        shown = [item for item in select.expressions if item.alias in columns]
        shown += [aliased(column("r", name), name) for name in order.added]
        select.set("expressions", shown)
        text = f"{exact_text(select)} {order.text}"
        name = self._by_text.get(text)
        if name is None:
            name = self._by_text[text] = f"{BLOCK}#{len(self.selects) + 1}"
            self.selects[name] = select
            self.columns[name] = tuple(item.alias for item in shown)
            self.orders[name] = Ordered(rows, order)
        return name

    def values_of(self, parameter: str, alias: str) -> exp.Table:
        """The values that a parameter is compared with, in a FROM clause."""
        name = self.domains.use(parameter)
        self.columns[name] = (VALUE,)
        return self.reference(name, alias)

    def blocks(self) -> dict[str, exp.Expr]:
        """All SELECTs, each behind those that it reads."""
        found = {**self.selects, **self.domains.selects()}
        return in_order(self.source, found, {name: each.rows for name, each in self.orders.items()})

    def saved(self) -> Saved:
        """What there is now, for a failed attempt to go back to."""
        return dict(self.selects), dict(self.columns), dict(self.orders), dict(self._by_text), list(self.domains.used)

    def restore(self, saved: Saved) -> None:
        """Forgets the blocks that were added since."""
        self.selects, self.columns, self.orders, self._by_text, self.domains.used = saved

    def reference(self, name: str, alias: str) -> exp.Table:
        """A block in a FROM clause."""
        return exp.Table(this=quoted(name), alias=exp.TableAlias(this=quoted(alias)))

    def rows_of(self, name: str, alias: str = "r") -> exp.Select:
        """All columns of a block."""
        select = self.selects[name]
        written = (select.expressions[0] if is_union(select) else select).expressions
        items = [
            aliased(in_place_of(column(alias, each), item.unalias()), each)
            for each, item in zip(self.columns[name], written, strict=False)
        ]
        return select_from(self.reference(name, alias), items)

    def columns_of(self, table: exp.Table) -> tuple[str, ...] | None:
        """The columns of a table or block; None for an undeclared table."""
        if table.name in self.columns:
            return self.columns[table.name]
        relation = self.tables.relation(table)
        return None if self.tables.is_inferred(relation) else tuple(self.tables.columns(relation))


def refuse_repeated(items: Iterable[exp.Expr], source: SqlText) -> None:
    """Refuses columns that another query reads if two of them have one name."""
    seen: set[str] = set()
    for item in items:
        if item.alias_or_name.lower() in seen:
            message = f"two columns are named {item.alias_or_name!r}"
            raise source.unsupported(message, item.unalias(), rename_one(source))
        seen.add(item.alias_or_name.lower())


def select_all(query: exp.Expr) -> exp.Select:
    """The rows of a query, read as a derived table."""
    rows = exp.Subquery(this=query.copy(), alias=exp.TableAlias(this=quoted("rows")))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=rows))


def select_from(table: exp.Expr, items: Iterable[exp.Expr]) -> exp.Select:
    """A SELECT of one table; plain columns keep their names."""
    named = [item if isinstance(item, exp.Alias) else aliased(item, item.name) for item in items]
    return exp.Select(expressions=named, from_=exp.From(this=table))


_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def quoted(name: str) -> exp.Identifier:
    """An identifier that means exactly this name; names of one scope differ in more than their case."""
    return exp.Identifier(this=name, quoted=_PLAIN.fullmatch(name) is None)


def column(alias: str, name: str) -> exp.Column:
    return exp.Column(this=quoted(name), table=quoted(alias))


def aliased(node: exp.Expr, name: str) -> exp.Expr:
    return exp.Alias(this=node, alias=quoted(name))


def fresh_name(wanted: str, taken: Iterable[str]) -> str:
    """A name like the wanted one that is not in use, whatever the case."""
    used = {name.lower() for name in taken}
    return next(name for name in _numbered(wanted) if name.lower() not in used)


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def named(identifier: exp.Identifier, names: Iterable[str]) -> str | None:
    """The name among these that an identifier means."""
    return next((name for name in names if same_name(identifier, name)), None)
