"""Scalar expressions, written so that ivme (as Spark) and DuckDB agree on their values.

Where the two differ, the form that both read alike is drawn: no division of decimals (DuckDB's is a double), no
CONCAT (DuckDB's skips NULL), no COUNT_IF and no rounding of doubles; the day of a NULL is a double to DuckDB, and a
choice of decimals has the digits of its widest sum, so that both are cast; dates are only moved back, since the year
10000 has no date in Python. Divisors are never zero. Sums of doubles are those of small integers, which are exact.
Arrays and structs have no NULLs in them, which DuckDB orders otherwise.
"""

from __future__ import annotations

from tests.select.words import LISTED, TYPES, Atom, Scope, Words

_LITERALS = {
    "int": ("0", "1", "2", "3", "-3", "7"),
    "string": ("'a'", "'b'", "'ab'", "''", "'A'"),
    "decimal": ("1.50", "0.00", "-2.25", "3.00"),
    "date": ("DATE '2024-02-29'", "DATE '1969-12-31'", "DATE '2026-11-15'"),
    "bool": ("TRUE", "FALSE"),
    "float": ("CAST(2 AS DOUBLE)", "CAST(1.5 AS DOUBLE)", "CAST(0 AS DOUBLE)"),
    "timestamp": ("TIMESTAMP '2024-02-29 00:00:00'", "TIMESTAMP '1969-12-31 23:59:59.5'"),
    "ints": ("ARRAY[1]", "ARRAY[1, 2]", "ARRAY[-3, 0, 7]"),
    "strings": ("ARRAY['a']", "ARRAY['a', 'b']", "ARRAY['', 'ab']"),
    "place": ("CAST(NULL AS STRUCT(x BIGINT, y VARCHAR))",),
}

FUNCTIONS: dict[str, tuple[tuple[str, tuple[str, ...], str], ...]] = {
    "int": (
        ("add", ("int", "int"), "({0} + {1})"),
        ("subtract", ("int", "int"), "({0} - {1})"),
        ("multiply", ("int", "int"), "({0} * {1})"),
        ("modulo", ("int",), "({0} % 3)"),
        ("modulo by a column", ("int", "int"), "({0} % NULLIF({1}, 0))"),
        ("negate", ("int",), "(- {0})"),
        ("abs", ("int",), "ABS({0})"),
        ("length", ("string",), "LENGTH({0})"),
        ("position", ("string",), "POSITION('b' IN {0})"),
        ("year", ("date",), "YEAR({0})"),
        ("month", ("date",), "MONTH({0})"),
        ("extract", ("timestamp",), "CAST(EXTRACT(DAY FROM {0}) AS BIGINT)"),
        ("cast bool to int", ("bool",), "CAST({0} AS BIGINT)"),
        ("floor", ("int",), "CAST(FLOOR({0} / 2) AS BIGINT)"),
        ("greatest", ("int", "int"), "GREATEST({0}, {1})"),
    ),
    "string": (
        ("upper", ("string",), "UPPER({0})"),
        ("lower", ("string",), "LOWER({0})"),
        ("trim", ("string",), "TRIM({0})"),
        ("concat", ("string", "string"), "({0} || {1})"),
        ("substring", ("string",), "SUBSTRING({0}, 1, 1)"),
        ("replace", ("string",), "REPLACE({0}, 'a', 'x')"),
        ("left", ("string",), "LEFT({0}, 1)"),
        ("lpad", ("string",), "LPAD({0}, 3, '-')"),
        ("reverse", ("string",), "REVERSE({0})"),
        ("cast to string", ("int",), "CAST({0} AS STRING)"),
        ("cast to string", ("date",), "CAST({0} AS STRING)"),
    ),
    "decimal": (
        ("add decimals", ("decimal", "decimal"), "({0} + {1})"),
        ("subtract decimals", ("decimal", "decimal"), "({0} - {1})"),
        ("multiply a decimal", ("decimal",), "({0} * 2)"),
        ("discount", ("decimal",), "({0} * (1 - 0.25))"),
        ("negate a decimal", ("decimal",), "(- {0})"),
        ("round", ("decimal",), "ROUND({0}, 1)"),
        ("cast to decimal", ("int",), "CAST({0} AS DECIMAL(9, 2))"),
    ),
    "date": (
        ("minus interval", ("date",), "CAST({0} - INTERVAL 1 MONTH AS DATE)"),
        ("minus days", ("date",), "CAST({0} - INTERVAL 3 DAY AS DATE)"),
        ("date trunc", ("date",), "CAST(DATE_TRUNC('month', {0}) AS DATE)"),
        ("cast to date", ("timestamp",), "CAST({0} AS DATE)"),
        ("least", ("date", "date"), "LEAST({0}, {1})"),
    ),
    "float": (
        ("divide", ("int",), "({0} / 2)"),
        ("divide by a column", ("int", "int"), "({0} / NULLIF({1}, 0))"),
        ("cast to double", ("int",), "CAST({0} AS DOUBLE)"),
        ("power", ("int",), "POWER(2, {0} % 8)"),
    ),
    "timestamp": (("cast to timestamp", ("date",), "CAST({0} AS TIMESTAMP)"),),
    "bool": (("cast to bool", ("int",), "CAST({0} AS BOOLEAN)"),),
    "ints": (("greatest array", ("ints", "ints"), "GREATEST({0}, {1})"),),
    "strings": (("least array", ("strings", "strings"), "LEAST({0}, {1})"),),
    "place": (("greatest struct", ("place", "place"), "GREATEST({0}, {1})"),),
}
"""For each kind of a value: the name of the rule, the kinds of the arguments, and how it is written."""

_CHOICES = (
    ("coalesce", "COALESCE({0}, {1})"),
    ("nullif", "NULLIF({0}, {1})"),
    ("case", "CASE WHEN {2} THEN {0} ELSE {1} END"),
    ("case without else", "CASE WHEN {2} THEN {0} END"),
    ("if", "IF({2}, {0}, {1})"),
)


class Scalars(Words):
    """Expressions of a wanted kind over a scope."""

    def scalar(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """An expression that has values of this kind."""
        own = [atom for atom in scope.atoms if atom.kind == kind]
        outer = [atom for atom in scope.outer if atom.kind == kind]
        drawn = self.pick(
            "scalar",
            column=8 if own else 0,
            outer_column=0.7 if outer else 0,
            constant=2 if own else 5,
            null=0.25,
            function=3 if depth > 0 else 0,
            choice=1 if depth > 0 else 0,
            subquery=0.35 if depth > 0 and self.budget > 0 else 0,
        )
        if drawn == "column":
            return self._lettered(self.one_of(own).text)
        if drawn == "outer column":
            return self.one_of(outer).text
        if drawn == "constant":
            return self.literal(kind)
        if drawn == "null":
            return f"CAST(NULL AS {TYPES[kind]})"
        if drawn == "function":
            return self._function(kind, scope, depth)
        return self._choice(kind, scope, depth) if drawn == "choice" else self._subquery(kind, scope)

    def _lettered(self, text: str) -> str:
        """A column in capitals now and then, which SQL reads as the same one."""
        if not text.replace(".", "_").isidentifier() or self.pick("letters", as_declared=30, capitals=1) != "capitals":
            return text
        return text.upper()

    def literal(self, kind: str) -> str:
        return self.one_of(_LITERALS[kind])

    def computed(self, atom: Atom) -> tuple[str, str]:
        """An expression over one atom, for a group key; with its kind."""
        made = [(kind, rule) for kind, rules in FUNCTIONS.items() for rule in rules if rule[1] == (atom.kind,)]
        if not made:
            return f"COALESCE({atom.text}, {self.literal(atom.kind)})", atom.kind
        kind, (name, _, template) = self.one_of(made)
        self.pick("function", **{name.replace(" ", "_"): 1})
        return template.format(atom.text), kind

    def any_kind(self, scope: Scope) -> str:
        """A kind that the scope has, mostly."""
        found = [atom.kind for atom in scope.atoms]
        return self.one_of(found) if found and self.chance(0.9) else self.one_of(LISTED)

    def _function(self, kind: str, scope: Scope, depth: int) -> str:
        rules = FUNCTIONS[kind]
        drawn = self.pick("function", **{name.replace(" ", "_"): 1 for name, _, _ in rules})
        _, arguments, template = self.one_of([rule for rule in rules if rule[0] == drawn])
        return template.format(*(self.scalar(argument, scope, depth - 1) for argument in arguments))

    def _choice(self, kind: str, scope: Scope, depth: int) -> str:
        drawn = self.pick("choice", **{name.replace(" ", "_"): 1 for name, _ in _CHOICES})
        template = dict(_CHOICES)[drawn]
        sides = [self.scalar(kind, scope, depth - 1) for _ in range(2)]
        if kind == "decimal":
            sides = [f"CAST({side} AS DECIMAL(20, 4))" for side in sides]
        return template.format(*sides, self.condition(scope, depth - 1) if "{2}" in template else "")

    def _subquery(self, kind: str, scope: Scope) -> str:
        self.spend()
        if scope.seen and self.pick("scalar subquery", alone=1, correlated=1) == "correlated":
            return f"({self.one_value(kind, 1, scope.seen)})"
        with self.apart():
            return f"({self.one_value(kind, 1, ())})"

    def condition(self, scope: Scope, depth: int = 2) -> str:
        raise NotImplementedError
