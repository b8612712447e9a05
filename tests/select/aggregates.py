"""Aggregates and window functions whose values do not depend on the order of equal rows."""

from __future__ import annotations

from tests.select.conditions import Conditions
from tests.select.words import Atom, Scope

_NUMBERS = ("int", "decimal")
_ELEMENTS = {"ints": "int", "strings": "string"}


class Aggregates(Conditions):
    """Whole aggregates as atoms, over which SELECT and HAVING compute."""

    def aggregate(self, scope: Scope, kind: str | None = None) -> Atom:
        """An aggregate over the rows of the scope; of the wanted kind, where there is one."""
        over = Scope(scope.atoms)  # an aggregate over columns of the outer query only would belong to that query
        wanted = kind or self.one_of(["int", "int", "float", *_ELEMENTS, *sorted({atom.kind for atom in scope.atoms})])
        drawn = self.pick(
            "aggregate",
            count_rows=3 if wanted == "int" else 0,
            count=2 if wanted == "int" else 0,
            count_distinct=1.5 if wanted == "int" else 0,
            sum=4 if wanted in _NUMBERS else 0,
            sum_distinct=0.6 if wanted in _NUMBERS else 0,
            avg=3 if wanted == "float" else 0,
            min=2,
            max=2,
            min_distinct=0.2,
            bool_or=2 if wanted == "bool" else 0,
            bool_and=2 if wanted == "bool" else 0,
            max_by=0.5,
            min_by=0.3,
            string_agg=0.5 if wanted == "string" else 0,
            array_agg=2 if wanted in _ELEMENTS else 0,
            array_agg_distinct=1 if wanted in _ELEMENTS else 0,
            array_agg_ordered=1.5 if wanted in _ELEMENTS else 0,
            collect_list=1 if wanted in _ELEMENTS else 0,
            collect_set=1 if wanted in _ELEMENTS else 0,
        )
        if "array" in drawn or "collect" in drawn:
            return Atom(self._array(drawn, _ELEMENTS[wanted], over), wanted)
        text = self._written(drawn, wanted, over)
        filtered = self.pick("aggregate filter", none=6, filter=1) == "filter"
        return Atom(f"{text} FILTER (WHERE {self._plain(over)})" if filtered else text, wanted)

    def _written(self, drawn: str, wanted: str, over: Scope) -> str:
        if drawn == "count rows":
            return "COUNT(*)"
        if drawn in ("count", "count distinct"):
            word = "DISTINCT " if drawn == "count distinct" else ""
            return f"COUNT({word}{self._argument(self.any_kind(over), over)})"
        if drawn == "avg":
            return f"AVG({self._argument('int', over)})"
        if drawn in ("max by", "min by"):
            return f"{drawn[:3].upper()}_BY({self._decided(wanted, over)})"
        argument = self._argument(wanted, over)
        if drawn == "string agg":
            return f"STRING_AGG({argument}, ',' ORDER BY {argument})"
        if drawn.endswith(" distinct"):
            return f"{drawn.partition(' ')[0].upper()}(DISTINCT {argument})"
        return f"{drawn.replace(' ', '_').upper()}({argument})"

    def _decided(self, wanted: str, over: Scope) -> str:
        """A value and what it is chosen by, which decides it: rows that tie have one value."""
        pairs = [(atom.text, atom.text) for atom in over.atoms if atom.kind == wanted]
        made = [(atom, self.computed(atom)) for atom in over.atoms]
        pairs += [(text, atom.text) for atom, (text, kind) in made if kind == wanted]
        first = self._plain_scalar(wanted, over)
        return ", ".join(self.one_of(pairs) if pairs else (first, first))

    def _array(self, drawn: str, element: str, over: Scope) -> str:
        """Values in an order that all of them decide, without NULLs; NULL and not empty if there are none.

        Spark's ARRAY_AGG leaves NULLs out and is empty of none, DuckDB's is NULL then.
        """
        argument = self._argument(element, over)
        if drawn.startswith("collect"):
            return f"{drawn.replace(' ', '_').upper()}({argument})"
        first = f"{self.one_of(over.atoms).text}{self.one_of(['', ' DESC'])}, " if drawn.endswith("ordered") else ""
        word = "DISTINCT " if drawn.endswith("distinct") else ""
        tested = f"{self._plain(over)} AND " if self.pick("array filter", none=3, filter=1) == "filter" else ""
        within = f"FILTER (WHERE {tested}{argument} IS NOT NULL)"
        listed = f"ARRAY_AGG({word}{argument} ORDER BY {first}{argument}) {within}"
        return f"CASE WHEN COUNT(*) {within} > 0 THEN {listed} END"

    def _argument(self, kind: str, over: Scope) -> str:
        """Mostly a column; otherwise an expression, which may read several tables. No subquery."""
        own = [atom.text for atom in over.atoms if atom.kind == kind]
        drawn = self.pick("aggregate of", column=4 if own else 0, expression=2)
        return self.one_of(own) if drawn == "column" else self._plain_scalar(kind, over)

    def _plain_scalar(self, kind: str, over: Scope) -> str:
        spared, self.budget = self.budget, 0
        text = self.scalar(kind, over, 2)
        self.budget = spared
        return text

    def _plain(self, over: Scope) -> str:
        spared, self.budget = self.budget, 0
        text = self.condition(over, 1)
        self.budget = spared
        return text

    def window(self, scope: Scope) -> Atom:
        """A window function; those that number rows are ordered by all columns, so that ties are equal rows."""
        kind = self.one_of([atom.kind for atom in scope.atoms])
        drawn = self.pick(
            "window",
            row_number=2,
            rank=1,
            dense_rank=1,
            sum=1,
            count=1,
            max=1,
            running_sum=1,
            lag=1,
            lead=1,
            first_value=1,
        )
        column = self.one_of([atom.text for atom in scope.atoms if atom.kind == kind])
        some = self.one_of(scope.atoms).text
        parts = f"PARTITION BY {some} " if self.chance(0.7) else ""
        whole = "ORDER BY " + ", ".join(atom.text for atom in scope.atoms)
        peers = f"ORDER BY {column}{self.one_of(['', ' DESC'])}"
        number = self._plain_scalar("int", Scope(scope.atoms))
        written = {
            "row number": ("ROW_NUMBER()", whole, "int"),
            "rank": ("RANK()", peers, "int"),
            "dense rank": ("DENSE_RANK()", peers, "int"),
            "sum": (f"SUM({number})", "", "int"),
            "count": ("COUNT(*)", "", "int"),
            "max": (f"MAX({column})", "", kind),
            "running sum": (f"SUM({number})", peers, "int"),
            "lag": (f"LAG({column})", whole, kind),
            "lead": (f"LEAD({column})", whole, kind),
            "first value": (f"FIRST_VALUE({column})", whole, kind),
        }
        function, order, result = written[drawn]
        return Atom(f"{function} OVER ({parts}{order})".replace(" )", ")"), result)
