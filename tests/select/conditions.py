"""Conditions: comparisons, AND, OR and NOT, and subqueries of every kind."""

from __future__ import annotations

from tests.select.scalars import Scalars
from tests.select.words import PARAMETER, Query, Scope

_COMPARISONS = {
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_or_equal": "<=",
    "greater": ">",
    "not_distinct_from": "IS NOT DISTINCT FROM",
    "distinct_from": "IS DISTINCT FROM",
}
_MIXED = {"int": ("decimal", "float"), "decimal": ("int",), "float": ("int",)}
"""The kinds that numbers are compared with beside their own."""

_FLAT = ("column", "constant", "parameter")
"""Conditions that have nothing in them."""

_ORDERED = {"equal": "=", "not_equal": "<>", "less": "<", "greater_or_equal": ">="}


class Conditions(Scalars):
    """What WHERE, ON, HAVING, FILTER and CASE ask."""

    def condition(self, scope: Scope, depth: int = 2) -> str:
        """A condition over the scope; with a subquery where the budget allows one."""
        subqueries = 1.0 if depth > 0 and self.budget > 0 else 0.0
        drawn = self.pick(
            "condition",
            comparison=8,
            is_null=1,
            is_true=0.4,
            in_list=1,
            between=1,
            like=0.7,
            column=0.7 if any(atom.kind == "bool" for atom in scope.atoms) else 0,
            constant=0.2,
            parameter=0.5 if scope.atoms else 0,
            and_=2 if depth > 0 else 0,
            or_=2 if depth > 0 else 0,
            not_=1 if depth > 0 else 0,
            in_subquery=subqueries,
            row_in_subquery=subqueries * 0.3,
            exists=subqueries,
            quantified=subqueries * 0.6,
        )
        make = getattr(self, f"_{drawn.replace(' ', '_')}")
        return str(make(scope) if drawn in _FLAT else make(scope, depth))

    def _comparison(self, scope: Scope, depth: int) -> str:
        kind = self.any_kind(scope)
        sign = _COMPARISONS[self.pick("comparison", **dict.fromkeys(_COMPARISONS, 1.0)).replace(" ", "_")]
        own = [atom.text for atom in scope.atoms if atom.kind == kind]
        left = self.one_of(own) if own else self.scalar(kind, scope, 0)
        other = (
            self.one_of(_MIXED[kind]) if kind in _MIXED and self.pick("sides", alike=9, mixed=1) == "mixed" else kind
        )
        right = self.scalar(other, scope, min(depth, 1))
        return f"{left} {sign} {self.literal(kind) if right == left else right}"

    def _is_null(self, scope: Scope, depth: int) -> str:
        subject = self.scalar(self.any_kind(scope), scope, min(depth, 1))
        return f"{subject} IS {self.one_of(['NULL', 'NOT NULL'])}"

    def _is_true(self, scope: Scope, depth: int) -> str:
        return f"({self._comparison(scope, depth - 1)}) IS {self.one_of(['TRUE', 'NOT TRUE', 'NOT FALSE', 'FALSE'])}"

    def _in_list(self, scope: Scope, depth: int) -> str:
        kind = self.any_kind(scope)
        values = [self.literal(kind) for _ in range(self.random.randint(1, 3))]
        values += ["NULL"] * self.chance(0.15)
        return f"{self.scalar(kind, scope, min(depth, 1))} {self.one_of(['IN', 'NOT IN'])} ({', '.join(values)})"

    def _between(self, scope: Scope, depth: int) -> str:
        kind = self.any_kind(scope)
        low, high = (self.scalar(kind, scope, 0) for _ in range(2))
        return f"{self.scalar(kind, scope, min(depth, 1))} {self.one_of(['BETWEEN', 'NOT BETWEEN'])} {low} AND {high}"

    def _like(self, scope: Scope, depth: int) -> str:
        pattern = self.one_of(["'a%'", "'%b'", "'_'", "'%'"])
        return f"{self.scalar('string', scope, min(depth, 1))} {self.one_of(['LIKE', 'NOT LIKE'])} {pattern}"

    def _column(self, scope: Scope) -> str:
        return self.one_of([atom.text for atom in scope.atoms if atom.kind == "bool"])

    def _constant(self, _scope: Scope) -> str:
        return self.one_of(["TRUE", "FALSE", "1 = 1", "CAST(NULL AS BOOLEAN)"])

    def _parameter(self, scope: Scope) -> str:
        """An equality with a value that ivme gets as a parameter, and DuckDB as it stands here."""
        atom = self.one_of(scope.atoms)
        mark = "" if atom.kind == "place" else f" {PARAMETER}"
        literal = self.one_of(["0.00", "3.00"]) if atom.kind == "decimal" else self.literal(atom.kind)  # of any scale
        return f"{atom.text} = {literal}{mark}"

    def _and(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth - 1)} AND {self.condition(scope, depth - 1)})"

    def _or(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth - 1)} OR {self.condition(scope, depth - 1)})"

    def _not(self, scope: Scope, depth: int) -> str:
        return f"(NOT ({self.condition(scope, depth - 1)}))"

    # Subqueries

    def _in_subquery(self, scope: Scope, depth: int) -> str:
        self.spend()
        kind = self.any_kind(scope)
        sign = self.pick("in", in_=1, not_in=1).upper()
        found = self._inside("in subquery", scope, depth, (kind,))
        return f"{self.scalar(kind, scope, 1)} {sign} ({found.text})"

    def _row_in_subquery(self, scope: Scope, depth: int) -> str:
        self.spend()
        kinds = (self.any_kind(scope), self.any_kind(scope))
        sign = self.pick("row in", in_=1, not_in=0.5).upper()
        with self.apart():
            found = self.query(depth - 1, (), kinds)
        return f"({', '.join(self.scalar(kind, scope, 0) for kind in kinds)}) {sign} ({found.text})"

    def _exists(self, scope: Scope, depth: int) -> str:
        self.spend()
        sign = self.pick("exists", exists=1, not_exists=1).upper()
        return f"{sign} ({self._inside('exists', scope, depth).text})"

    def _quantified(self, scope: Scope, depth: int) -> str:
        self.spend()
        kind = self.any_kind(scope)
        sign = _ORDERED[self.pick("quantified by", **dict.fromkeys(_ORDERED, 1.0)).replace(" ", "_")]
        word = self.pick("quantifier", any=1, all=1).upper()
        found = self._inside("quantified", scope, depth, (kind,))
        return f"{self.scalar(kind, scope, 0)} {sign} {word} ({found.text})"

    def _inside(self, symbol: str, scope: Scope, depth: int, kinds: tuple[str, ...] | None = None) -> Query:
        if self.pick(f"{symbol} is", alone=1, correlated=2 if scope.seen else 0) == "correlated":
            return self.query(depth - 1, scope.seen, kinds)
        with self.apart():
            return self.query(depth - 1, (), kinds)

    def correlating(self, scope: Scope) -> str:
        """A condition that ties a subquery to the query around it."""
        pairs = [(a, b) for a in scope.atoms for b in scope.outer if a.kind == b.kind]
        if not pairs:
            return self.condition(scope, 0)
        own, outer = self.one_of(pairs)
        drawn = self.pick("correlation", equality=6, two_equalities=1, inequality=1, equality_or=0.7, null_safe=0.5)
        if drawn == "inequality":
            return f"{own.text} {self.one_of(['<', '>=', '<>'])} {outer.text}"
        if drawn == "two equalities":
            again, more = self.one_of(pairs)
            return f"{own.text} = {outer.text} AND {again.text} = {more.text}"
        if drawn == "equality or":
            return f"({own.text} = {outer.text} OR {self.condition(Scope(scope.atoms), 0)})"
        return f"{own.text} {'=' if drawn == 'equality' else 'IS NOT DISTINCT FROM'} {outer.text}"
