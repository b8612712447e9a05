"""FROM: tables, derived tables, CTEs, VALUES, and joins of every kind in any nesting."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tests.select.aggregates import Aggregates
from tests.select.words import LISTED, Atom, Output, Scope


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause: its text, what can be read of it, and whether `*` lists it in the order of the atoms."""

    text: str
    atoms: tuple[Atom, ...]
    alias: str = ""
    names: tuple[str, ...] = ()
    pending: tuple[str, ...] = field(default=())

    @property
    def is_single(self) -> bool:
        return bool(self.alias)


_MADE = re.compile(r"[cn]\d+")
"""Names of columns that no table has."""

_ORDERED = ("int", "string", "decimal", "date", "timestamp")
"""The kinds that ASOF joins compare."""


class Sources(Aggregates):
    """Draws FROM clauses over the relations that are known."""

    def __init__(self, random: Random, relations: Mapping[str, tuple[Output, ...]]) -> None:
        super().__init__(random)
        self.relations = dict(relations)
        self.ctes: dict[str, tuple[Output, ...]] = {}

    def from_clause(self, depth: int, outer: tuple[Atom, ...]) -> From:
        """`pending` are conditions that a list with commas leaves to WHERE."""
        drawn = self.pick("from", one=4, joins=5, commas=1.5 if self.budget > 0 else 0)
        left = self._source(depth, outer)
        if drawn == "one":
            return self._unqualified(left)
        for _ in range(self.one_of([1, 1, 1, 2, 2, 3])):
            if not self.spend():
                break
            left = self._join(left, depth, outer) if drawn == "joins" else self._comma(left, depth, outer)
        return left

    def _unqualified(self, source: From) -> From:
        if not source.is_single or self.pick("columns are", qualified=2, bare=1) == "qualified":
            return source
        atoms = tuple(Atom(a.text.rpartition(".")[2], a.kind, a.qualified) for a in source.atoms)
        return From(source.text, atoms, source.alias, source.names)

    # Sources

    def _source(self, depth: int, outer: tuple[Atom, ...]) -> From:
        deeper = depth > 0 and self.budget > 0
        drawn = self.pick(
            "source",
            table=8,
            cte=6 if self.ctes else 0,
            derived=2 if deeper else 0,
            values=0.5,
            select_without_from=0.4,
            nested_join=0.7 if deeper else 0,
        )
        if drawn == "nested join":
            self.spend()
            inner = self._join(self._source(depth - 1, outer), depth - 1, outer)
            return From(f"({inner.text})", inner.atoms, names=inner.names)
        alias = self.fresh("t")
        if drawn in ("table", "cte"):
            known = self.ctes if drawn == "cte" else self.relations
            name = self.one_of(list(known))
            return self._named(name, alias, self.ctes.get(name, known[name]))
        if drawn == "derived":
            self.spend()
            return self._derived(depth, alias)
        return self._values(alias) if drawn == "values" else self._constants(alias)

    def _named(self, text: str, alias: str, columns: tuple[Output, ...]) -> From:
        atoms = tuple(Atom(f"{alias}.{c.name}", c.kind, f"{alias}.{c.name}") for c in columns)
        return From(f"{text} {alias}", atoms, alias, tuple(c.name for c in columns))

    def _derived(self, depth: int, alias: str) -> From:
        with self.apart():
            made = self.query(depth - 1, ())
        drawn = self.pick("derived columns", kept=4, renamed=1, without_alias=1)
        if drawn == "without alias" and all(_MADE.fullmatch(c.name) for c in made.columns):
            atoms = tuple(Atom(c.name, c.kind, c.name) for c in made.columns)
            return From(f"({made.text})", atoms, names=tuple(c.name for c in made.columns))
        if drawn != "renamed":
            return self._named(f"({made.text})", alias, made.columns)
        columns = tuple(Output(self.fresh("n"), kind) for kind in made.kinds)
        found = self._named("", alias, columns)
        listed = ", ".join(c.name for c in columns)
        return From(f"({made.text}) AS {alias}({listed})", found.atoms, alias, found.names)

    def _values(self, alias: str) -> From:
        kinds = [self.one_of(LISTED) for _ in range(self.random.randint(1, 2))]
        rows = [f"({', '.join(self.literal(kind) for kind in kinds)})" for _ in range(self.random.randint(1, 3))]
        columns = tuple(Output(self.fresh("n"), kind) for kind in kinds)
        listed = ", ".join(c.name for c in columns)
        return From(
            f"(VALUES {', '.join(rows)}) AS {alias}({listed})",
            self._named("", alias, columns).atoms,
            alias,
            tuple(c.name for c in columns),
        )

    def _constants(self, alias: str) -> From:
        columns = tuple(Output(self.fresh("n"), self.one_of(LISTED)) for _ in range(self.random.randint(1, 2)))
        items = ", ".join(f"{self.literal(c.kind)} AS {c.name}" for c in columns)
        return self._named(f"(SELECT {items})", alias, columns)

    # Joins

    def _comma(self, left: From, depth: int, outer: tuple[Atom, ...]) -> From:
        right = self._source(depth, outer)
        pending = (self._on(left, right),) if self.pick("comma", condition_in_where=4, product=0.3) != "product" else ()
        return From(
            f"{left.text}, {right.text}",
            (*left.atoms, *right.atoms),
            names=(*left.names, *right.names),
            pending=(*left.pending, *pending),
        )

    def _join(self, left: From, depth: int, outer: tuple[Atom, ...]) -> From:
        drawn = self.pick(
            "join", inner=5, left=4, right=1.5, full=1.5, semi=0.8, anti=0.8, cross=0.6, using=1.2, natural=1,
            lateral=0.6 if depth > 0 and self.budget > 0 else 0, asof=0.8,
        )  # fmt: skip
        if drawn == "lateral":
            return self._lateral(left, depth)
        if drawn == "asof":
            found = self._asof(left)
            if found is not None:
                return found
            drawn = "inner"
        right = self._source(depth, outer)
        if drawn in ("using", "natural"):
            shared = _shared(drawn, left, right)
            if shared:
                return self._by_names(drawn, left, right, shared)
            drawn = "inner"
        if drawn == "cross":
            return self._joined(f"{left.text} CROSS JOIN {right.text}", left, right)
        text = (
            f"{left.text} {'' if drawn == 'inner' else drawn.upper() + ' '}JOIN {right.text} ON {self._on(left, right)}"
        )
        if drawn in ("semi", "anti"):
            return From(text, left.atoms, names=left.names)
        return self._joined(text, left, right)

    def _joined(self, text: str, left: From, right: From) -> From:
        return From(text, (*left.atoms, *right.atoms), names=(*left.names, *right.names))

    def _by_names(self, drawn: str, left: From, right: From, shared: list[str]) -> From:
        """USING and NATURAL: the shared columns are read without a table, or by either side."""
        side = self.pick(f"{drawn} join", inner=2, left=1, right=0.6, full=1)
        word = "" if side == "inner" else f"{side.upper()} "
        used = shared if drawn == "natural" else self.some_of(shared, 2)
        tail = "" if drawn == "natural" else f" USING ({', '.join(used)})"
        text = f"{left.text} {'NATURAL ' * (drawn == 'natural')}{word}JOIN {right.text}{tail}"
        kinds = {a.text.rpartition(".")[2]: a.kind for a in left.atoms}
        merged = tuple(Atom(name, kinds[name]) for name in used)
        return From(text, (*merged, *left.atoms, *right.atoms), names=("*", "*"))

    def _lateral(self, left: From, depth: int) -> From:
        self.spend()
        alias = self.fresh("t")
        visible = tuple(a for a in left.atoms if a.qualified)
        made = self.query(depth - 1, visible)
        found = self._named("", alias, made.columns)
        word = {"comma": "CROSS JOIN", "inner": "JOIN", "left": "LEFT JOIN"}[
            self.pick("lateral join", comma=1, inner=1, left=1)
        ]
        on = "" if word == "CROSS JOIN" else " ON TRUE"
        return self._joined(f"{left.text} {word} LATERAL ({made.text}) {alias}{on}", left, found)

    def _asof(self, left: From) -> From | None:
        """An ASOF join with groups of a table, so that no two partners are equally near: there DuckDB takes either."""
        name = self.one_of(list(self.relations))
        columns = self.ctes.get(name, self.relations[name])
        known = [atom for atom in left.atoms if atom.qualified and atom.kind in _ORDERED]
        pairs = [(atom, c) for atom in known for c in columns if atom.kind == c.kind]
        shown = [c for c in columns if c.kind in _ORDERED]
        if not pairs:
            return None
        (first, near), (second, key) = self.one_of(pairs), self.one_of(pairs)
        alias, value = self.fresh("t"), self.one_of(shown)
        made = [Output(self.fresh("n"), each.kind) for each in (near, key, value)]
        items = f"{near.name} AS {made[0].name}, {key.name} AS {made[1].name}, MAX({value.name}) AS {made[2].name}"
        if self.pick("asof by", key=2, order_alone=1) == "order alone":
            del made[1]
            items = f"{near.name} AS {made[0].name}, MAX({value.name}) AS {made[1].name}"
        grouped = ", ".join(dict.fromkeys([near.name, *([key.name] if len(made) == 3 else [])]))
        equal = f" AND {second.text} = {alias}.{made[1].name}" if len(made) == 3 else ""
        right = self._named(f"(SELECT {items} FROM {name} GROUP BY {grouped})", alias, tuple(made))
        word = "ASOF JOIN" if self.pick("asof join", inner=1, left=1) == "inner" else "ASOF LEFT JOIN"
        sign = self.one_of([">=", ">", "<=", "<"])
        on = f"{first.text} {sign} {alias}.{made[0].name}{equal}"
        return self._joined(f"{left.text} {word} {right.text} ON {on}", left, right)

    def _on(self, left: From, right: From) -> str:
        pairs = [(a, b) for a in left.atoms for b in right.atoms if a.kind == b.kind and a.qualified and b.qualified]
        both = Scope((*left.atoms, *right.atoms))
        drawn = self.pick(
            "on",
            equality=8 if pairs else 0,
            equality_and_residual=2 if pairs else 0,
            equality_and_one_side=2 if pairs else 0,
            two_equalities=1 if pairs else 0,
            inequality=1 if pairs else 0,
            equality_and_inequality=1 if pairs else 0,
            between=0.7 if pairs else 0,
            equality_or=0.6 if pairs else 0,
            one_of_equalities=0.6 if pairs else 0,
            null_safe=0.4 if pairs else 0,
            computed=0.7,
            anything=0.6,
        )
        if drawn == "anything":
            return self._plain(both)
        if drawn == "computed":
            kind = self.one_of(["int", "string"])
            return f"{self._plain_scalar(kind, Scope(left.atoms))} = {self._plain_scalar(kind, Scope(right.atoms))}"
        first, second = self.one_of(pairs)
        equal = f"{first.text} = {second.text}"
        if drawn == "inequality":
            return f"{first.text} {self.one_of(['<', '<=', '>', '<>'])} {second.text}"
        if drawn == "equality and inequality":
            third, fourth = self.one_of(pairs)
            return f"{equal} AND {third.text} {self.one_of(['<', '<=', '>', '>='])} {fourth.text}"
        if drawn == "between":
            others = [b for b in right.atoms if b.kind == first.kind and b.qualified]
            return f"{first.text} BETWEEN {self.one_of(others).text} AND {self.one_of(others).text}"
        if drawn == "null safe":
            return f"{first.text} IS NOT DISTINCT FROM {second.text}"
        if drawn in ("two equalities", "one of equalities"):
            third, fourth = self.one_of(pairs)
            other = f"{third.text} = {fourth.text}"
            return f"{equal} AND {other}" if drawn == "two equalities" else f"({equal} OR {other})"
        if drawn == "equality and residual":
            return f"{equal} AND {self._plain(both)}"
        if drawn == "equality and one side":
            return f"{equal} AND {self._plain(Scope(self.one_of([left, right]).atoms))}"
        return f"({equal} OR {self._plain(both)})" if drawn == "equality or" else equal


def _shared(drawn: str, left: From, right: From) -> list[str]:
    """The columns by which two sources can be joined by name; NATURAL takes all, so that all must have one kind."""
    if not (left.is_single and right.is_single):
        return []
    kinds = {name: atom.kind for name, atom in zip(left.names, left.atoms, strict=True)}
    both = [(name, atom.kind) for name, atom in zip(right.names, right.atoms, strict=True) if name in kinds]
    alike = [name for name, kind in both if kinds[name] == kind]
    return alike if drawn == "using" or len(alike) == len(both) else []
