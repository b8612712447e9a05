"""Whole queries: WITH, SELECT with its clauses, set operations, ORDER BY and LIMIT."""

from __future__ import annotations

import re

from tests.select.grouping import Grouping
from tests.select.sources import From
from tests.select.words import LISTED, Atom, Output, Query, Scope

_SETS = {
    "union": "UNION",
    "union_all": "UNION ALL",
    "except": "EXCEPT",
    "except_all": "EXCEPT ALL",
    "intersect": "INTERSECT",
    "intersect_all": "INTERSECT ALL",
}


class Queries(Grouping):
    """The grammar's start symbol is `statement`."""

    def statement(self) -> Query:
        """A query as a user writes it for a view."""
        made = self._with(3)
        return self._ordered(made, nested=False)

    def query(self, depth: int, outer: tuple[Atom, ...], kinds: tuple[str, ...] | None = None) -> Query:
        made = self._body(depth, outer, kinds)
        if not outer and depth > 0 and self.budget > 0 and self.pick("subquery", bare=8, own_with=1) == "own with":
            made = self._with(depth, kinds)
        if self.pick("nested order", none=12, order=0.5, limit=1) == "none":
            return made
        return self._ordered(made, nested=True)

    def one_value(self, kind: str, depth: int, outer: tuple[Atom, ...]) -> str:
        drawn = self.pick("one value", aggregate=6, first_row=1, without_from=0.7)
        if drawn == "without from":
            return f"SELECT {self.scalar(kind, Scope(outer), 1)}"
        if drawn == "first row":
            made = self._select(depth, outer, (kind,))
            name = made.columns[0].name
            return f"{made.text} ORDER BY {name} LIMIT 1"
        source = self.from_clause(depth, outer)
        scope = Scope(source.atoms, outer)
        where = self._where(source, scope, depth)
        total = self.aggregate(scope, kind).text
        with_default = self.chance(0.3)
        if kind == "decimal":
            total = f"CAST({total} AS DECIMAL(20, 4))"
        over = f"COALESCE({total}, {self.literal(kind)})" if with_default else total
        return f"SELECT {over} AS {self.fresh('c')} FROM {source.text}{where}"

    # WITH

    def _with(self, depth: int, kinds: tuple[str, ...] | None = None) -> Query:
        drawn = self.pick(
            "with", none=6, one=2 if self.budget > 0 else 0, several=1 if self.budget > 1 else 0, recursive=0.15
        )
        if drawn == "none":
            return self._body(depth, (), kinds)
        known = dict(self.ctes)
        parts = [self._closure()] if drawn == "recursive" else []
        for _ in range({"one": 1, "several": self.random.randint(2, 3)}.get(drawn, 0)):
            self.spend()
            parts.append(self._cte(depth, parts))
        made = self._body(depth, (), kinds)
        self.ctes = known
        word = "WITH RECURSIVE" if drawn == "recursive" else "WITH"
        return Query(f"{word} {', '.join(parts)} {made.text}", made.columns, compound=True)

    def _cte(self, depth: int, before: list[str]) -> str:
        """A query of WITH, whose name none of those before it in its clause has."""
        name = self._cte_name()
        if any(each.startswith((f"{name} ", f"{name}(")) for each in before):
            name = self.fresh("w")
        with self.apart():
            made = self._body(depth - 1, ())
        columns, listed = made.columns, ""
        if self.pick("cte columns", kept=4, renamed=1) == "renamed":
            columns = tuple(Output(self.fresh("n"), kind) for kind in made.kinds)
            listed = f"({', '.join(c.name for c in columns)})"
        self.ctes[name] = columns
        return f"{name}{listed} AS ({made.text})"

    def _cte_name(self) -> str:
        """A new name, or one that hides a table or another query of WITH, which the query itself still reads."""
        if self.pick("cte name", new=6, hides=1) == "new":
            return self.fresh("w")
        return self.one_of([*self.relations, *self.ctes])

    def _closure(self) -> str:
        """Reachability over two integer columns, where a table has them."""
        edges = {table: [c.name for c in columns if c.kind == "int"][:2] for table, columns in self.relations.items()}
        found = [(table, names) for table, names in edges.items() if len(names) == 2 and table not in self.ctes]
        if not found:
            return self._cte(1, [])
        table, (start, end) = self.one_of(found)
        name, one, two = self.fresh("w"), self.fresh("n"), self.fresh("n")
        self.ctes[name] = (Output(one, "int"), Output(two, "int"))
        return (
            f"{name}({one}, {two}) AS (SELECT {start}, {end} FROM {table} UNION "
            f"SELECT p.{one}, e.{end} FROM {name} p JOIN {table} e ON p.{two} = e.{start})"
        )

    # Set operations

    def _body(self, depth: int, outer: tuple[Atom, ...], kinds: tuple[str, ...] | None = None) -> Query:
        sets = 1.2 if self.budget > 0 and depth > 0 else 0
        drawn = self.pick("body", select=8, set_operation=sets, constants=0.15)
        if drawn == "select":
            return self._select(depth, outer, kinds)
        if drawn == "constants":
            return self._constant_row(kinds or (self.one_of(LISTED),))
        self.spend()
        left = self._operand(depth - 1, outer, kinds)
        sign = _SETS[self.pick("set", **dict.fromkeys(_SETS, 1.0)).replace(" ", "_")]
        columns = left.columns
        if self.pick("operands", alike=9, widened=1) == "widened":
            columns = tuple(Output(c.name, "decimal" if c.kind == "int" else c.kind) for c in columns)
        right = self._operand(depth - 1, outer, tuple(c.kind for c in columns))
        return Query(f"{_in_parentheses(left)} {sign} {_in_parentheses(right)}", columns, compound=True)

    def _constant_row(self, kinds: tuple[str, ...]) -> Query:
        """SELECT without FROM."""
        items = [(self.literal(kind), Output(self.fresh("c"), kind)) for kind in kinds]
        return Query(f"SELECT {', '.join(f'{t} AS {c.name}' for t, c in items)}", tuple(c for _, c in items))

    def _operand(self, depth: int, outer: tuple[Atom, ...], kinds: tuple[str, ...] | None) -> Query:
        if self.pick("operand", select=6, any=1) == "select":
            return self._select(depth, outer, kinds)
        return self._body(depth, outer, kinds)

    # SELECT

    def _select(self, depth: int, outer: tuple[Atom, ...], kinds: tuple[str, ...] | None = None) -> Query:
        source = self.from_clause(depth, outer)
        scope = Scope(source.atoms, outer)
        where = self._where(source, scope, depth)
        star = kinds is None and len(set(source.names)) == len(source.names)
        drawn = self.pick(
            "select",
            columns=7,
            distinct=2,
            grouped=6,
            one_group=1.5,
            windowed=0.8 if kinds is None else 0,
            star=1 if star else 0,
        )
        if drawn == "star":
            return self._star(source, where)
        if drawn in ("grouped", "one group"):
            return self.grouped(source, scope, where, kinds, has_keys=drawn == "grouped")
        if drawn == "windowed":
            scope = Scope((*scope.atoms, self.window(scope)), outer)
        items = self._items(scope, kinds, must=scope.atoms[-1] if drawn == "windowed" else None)
        word = "SELECT DISTINCT" if drawn == "distinct" else "SELECT"
        return Query(f"{word} {', '.join(t for t, _ in items)} FROM {source.text}{where}", tuple(c for _, c in items))

    def _star(self, source: From, where: str) -> Query:
        columns = tuple(Output(name, atom.kind) for name, atom in zip(source.names, source.atoms, strict=True))
        drawn = self.pick("star", all=2, of_table=1 if source.is_single else 0, and_more=1)
        text = f"{source.alias}.*" if drawn == "of table" else "*"
        if drawn == "and more":
            extra, column = self.item(self.scalar("int", Scope(source.atoms), 1), "int", set())
            text, columns = f"{text}, {extra}", (*columns, column)
        return Query(f"SELECT {text} FROM {source.text}{where}", columns)

    def _items(self, scope: Scope, kinds: tuple[str, ...] | None, must: Atom | None) -> list[tuple[str, Output]]:
        taken: set[str] = set()
        if kinds is not None:
            return [self.item(self.scalar(kind, scope, 1), kind, taken) for kind in kinds]
        made = [self.item(must.text, must.kind, taken)] if must else []
        for _ in range(self.random.randint(1, 3)):
            earlier = self._earlier(scope, made)
            drawn = self.pick("item", column=6, expression=2, constant=0.6, of_earlier=1 if earlier.atoms else 0)
            if drawn == "of earlier":
                kind = self.any_kind(earlier)
                made.append(self.item(self.scalar(kind, earlier, 2), kind, taken))
                continue
            kind = self.any_kind(scope)
            own = [atom.text for atom in scope.atoms if atom.kind == kind]
            if drawn == "column" and own:
                text = self.one_of(own)
            else:
                text = self.literal(kind) if drawn == "constant" else self.scalar(kind, scope, 2)
            made.append(self.item(text, kind, taken))
        return made

    def _earlier(self, scope: Scope, made: list[tuple[str, Output]]) -> Scope:
        """The columns of a SELECT so far, under names that none of its tables has."""
        names = {atom.text.rpartition(".")[2].lower() for atom in scope.atoms}
        return Scope(tuple(Atom(c.name, c.kind, "") for _, c in made if c.name.lower() not in names))

    def _where(self, source: From, scope: Scope, depth: int) -> str:
        parts = list(source.pending)
        if scope.outer and self.chance(0.85):
            parts.append(self.correlating(scope))
        if self.pick("where", none=5, condition=5) == "condition":
            parts.append(self.condition(scope, min(depth, 2)))
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    # Order

    def _ordered(self, made: Query, *, nested: bool) -> Query:
        """ORDER BY and LIMIT. Inside a query all columns are ordered by, so that LIMIT leaves one bag of rows."""
        names = [column.name for column in made.columns]
        if nested:
            drawn = self.pick("nested limit", all_columns=1)
        else:
            expression = 0 if made.compound or "int" not in made.kinds else 0.4
            drawn = self.pick("order", none=8, some_columns=2, all_columns=1.5, positions=0.7, expression=expression)
        if drawn == "none":
            if self.pick("limit", none=20, alone=0.5) == "none":
                return made
            return Query(f"{made.text} LIMIT {self.random.randint(0, 4)}", made.columns, compound=True)
        chosen = list(range(len(names)))
        self.random.shuffle(chosen)
        chosen = chosen if drawn == "all columns" else chosen[: self.random.randint(1, 2)]
        keys = [str(i + 1) if drawn == "positions" else names[i] for i in chosen]
        if drawn == "expression":
            name = names[made.kinds.index("int")]
            keys = [name if _names_two_columns(made.text, name) else f"{name} % 3"]
        order = ", ".join(f"{key}{self._direction()}" for key in keys)
        limit = self.pick("limit after order", none=1, limit=2, limit_and_offset=1, zero=0.1)
        tail = {"none": "", "limit": f" LIMIT {self.random.randint(1, 5)}", "zero": " LIMIT 0"}.get(limit)
        if tail is None:
            tail = f" LIMIT {self.random.randint(1, 4)} OFFSET {self.random.randint(0, 3)}"
        return Query(f"{made.text} ORDER BY {order}{tail}", made.columns, compound=True)

    def _direction(self) -> str:
        drawn = self.pick("direction", plain=3, desc=2, nulls_last=0.5, desc_nulls_first=0.5)
        return {"plain": "", "desc": " DESC", "nulls last": " NULLS LAST"}.get(drawn, " DESC NULLS FIRST")


def _in_parentheses(query: Query) -> str:
    return f"({query.text})" if query.compound else query.text


def _names_two_columns(text: str, name: str) -> bool:
    """Whether a name may be that of a column in FROM, too: in an expression DuckDB takes that one, Spark the output."""
    return f" AS {name}" in text and len(re.findall(rf"\b{name}\b", text)) > 1
