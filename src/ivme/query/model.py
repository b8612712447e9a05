"""What a query is, once its text has been read: tables, atoms, a head, an access pattern.

A `Query` is a conjunctive query with free access patterns, `Q(O | I) = R1(X1), ..., Rn(Xn)` (source 003,
section 2.2), whose head may also carry aggregates. Both parsers, `rule` and `sql`, make one; every later stage
reads nothing else. All of it is frozen, and validated when made.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from ivme.errors import SchemaError
from ivme.query.aggregate_function import AggregateFunction
from ivme.query.aggregates import AGGREGATES
from ivme.query.expression import ColumnRef, Expression, columns_of
from ivme.query.names import check_name
from ivme.query.percentile import Percentile
from ivme.query.table import ClosureOf, Column, ForeignKey, Table, check_table, table

__all__ = [
    "ORDER_AGGREGATES",
    "Aggregate",
    "Atom",
    "ClosureOf",
    "Column",
    "Constant",
    "ForeignKey",
    "HeadColumn",
    "Query",
    "Table",
    "Term",
    "Value",
    "check_head",
    "check_table",
    "column_refs",
    "plain_head",
    "table",
]

Value = int | float | Decimal | str | bool | datetime.date | datetime.datetime | bytes | None
"""A value of any column type; None is SQL's NULL."""

ORDER_AGGREGATES = tuple(name for name, each in AGGREGATES.items() if each.is_ordered)
"""Aggregates that are not rings: their column counts as free when widths are computed."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant in an atom, as in `R(A, 3, 'x')`."""

    value: Value

    def __str__(self) -> str:
        """As rule notation has it; a float bears an exponent, since `1.5` is a decimal there."""
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        if isinstance(self.value, float):
            text = repr(self.value)
            return text if "e" in text else f"{text}e0"
        return "NULL" if self.value is None else str(self.value)


Term = str | Constant
"""A variable, by its name, or a constant."""


@dataclass(frozen=True, slots=True)
class Atom:
    """One occurrence of a relation in the body.

    `terms[i]` is the variable or constant that stands for `columns[i]`, an expression over the columns of the
    relation's table (a plain `ColumnRef`, or a computed column); `where` keeps only the rows for which it is true.
    Columns that the query does not mention have no term: they are summed away when rows are read.
    With `closure` set the atom ranges over the transitive closure of the relation, a table of edges.
    """

    relation: str
    terms: tuple[Term, ...]
    columns: tuple[Expression, ...]
    where: Expression | None = None
    alias: str | None = None
    closure: bool = False
    variables: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The atom's distinct variables, in the order of first occurrence."""

    def __post_init__(self) -> None:
        variables = dict.fromkeys([term for term in self.terms if isinstance(term, str)])
        object.__setattr__(self, "variables", tuple(variables))
        if len(self.terms) != len(self.columns):
            raise SchemaError(f"atom {self.relation} has {len(self.terms)} terms for {len(self.columns)} columns")
        if self.closure and len(self.terms) != 2:
            raise SchemaError(f"closure({self.relation}) has two columns, not {len(self.terms)}")

    def __str__(self) -> str:
        name = f"closure({self.relation})" if self.closure else self.relation
        return f"{name}({', '.join(map(str, self.terms))})"


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate on the head; `variable` is None for COUNT(*).

    `partner` is the other variable of an aggregate of two (CORR), and `options` are its constants (the fraction of a
    percentile). `text` is how the user wrote it.
    """

    function: str
    variable: str | None = None
    partner: str | None = None
    options: tuple[Value, ...] = ()
    text: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.function not in AGGREGATES:
            raise SchemaError(f"unknown aggregate {self.function!r}")
        if self.variable is None and self.function != "count":
            raise SchemaError(f"{self.function.upper()} needs an argument")

    @property
    def is_part(self) -> bool:
        """Whether it is an exact total that shards send each other."""
        return self.function.startswith("exact_")

    @property
    def definition(self) -> AggregateFunction:
        """What the function does."""
        return AGGREGATES[self.function]

    @property
    def reads(self) -> str:
        """What it reads of its values in order: as its definition says, of a percentile with its constants."""
        if self.definition.reads != "percentile":
            return self.definition.reads
        fraction, is_descending = self.options
        assert isinstance(fraction, Decimal | int | float)
        return str(Percentile(self.function, float(fraction), bool(is_descending)))

    def __str__(self) -> str:
        if self.text:
            return self.text
        if self.function == "count_distinct":
            return f"COUNT(DISTINCT {self.variable})"
        argument = "" if self.variable is None else f"({self.variable})"
        return f"{self.function.upper()}{argument}"


@dataclass(frozen=True, slots=True)
class HeadColumn:
    """A column of the view's rows: a free variable, or an aggregate over the bound ones."""

    name: str
    source: str | Aggregate


@dataclass(frozen=True, slots=True)
class Query:
    """A conjunctive query with free access patterns, and aggregates.

    `output` and `input` partition the free variables. `head` lists the columns of a row in the requested order;
    by default the output variables. With aggregates, rows are grouped by the output variables.
    `parameters[i]` is the user's name for `input[i]` (the `:name` in SQL; the variable itself in rule notation).
    `tables` describes every relation of the body. In a variable of `null_safe` NULL equals NULL, as `<=>` has it;
    in all others that join, rows with NULL are left out.

    `known[i]`, if it is not empty, is the block of all values that `input[i]` is compared with: a request for any other
    value is one for NULL. `defaults` are the values of parameters that a request leaves out, and `lists` the parameters
    that are lists, each with whether aggregates run across its members: a request has the rows of all of them. `ends`
    are the parameters of a view whose requests are ranges of rows, each with whether it is the end of a range, which
    may be a value that no row has; the others are equal to a column.
    """

    name: str
    output: tuple[str, ...]
    input: tuple[str, ...]
    atoms: tuple[Atom, ...]
    tables: tuple[Table, ...]
    head: tuple[HeadColumn, ...]
    distinct: bool = False
    parameters: tuple[str, ...] = ()
    text: str = field(default="", compare=False)
    null_safe: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    defaults: tuple[tuple[str, Value], ...] = ()
    lists: tuple[tuple[str, bool], ...] = ()
    ends: tuple[tuple[str, bool], ...] = ()

    def __post_init__(self) -> None:
        if not self.parameters:
            object.__setattr__(self, "parameters", self.input)
        self._check_variables()
        self._check_head()
        self._check_atoms()

    def _check_variables(self) -> None:
        if not self.atoms:
            raise SchemaError(f"query {self.name} has no atoms; its body needs at least one relation")
        free = self.output + self.input
        for variable in free:
            if free.count(variable) > 1:
                raise SchemaError(f"variable {variable} occurs twice in the head of {self.name}")
            if variable not in self.variables:
                raise SchemaError(f"variable {variable} is in the head of {self.name} but in no atom of its body")
        if len(self.parameters) != len(self.input):
            raise SchemaError(f"query {self.name} has {len(self.input)} inputs but {len(self.parameters)} parameters")

    def _check_head(self) -> None:
        names = [column.name for column in self.head]
        for column in self.head:
            if names.count(column.name) > 1:
                raise SchemaError(f"two columns of {self.name} are named {column.name!r}; rename one with AS")
            if isinstance(column.source, str):
                if column.source not in self.free:
                    raise SchemaError(f"column {column.name} of {self.name} is not a free variable")
            elif {column.source.variable, column.source.partner} - {None, *self.variables}:
                raise SchemaError(f"{column.source} in {self.name} is over a variable that no atom has")
        if self.distinct and self.aggregates:
            raise SchemaError(f"query {self.name} has both DISTINCT and aggregates; its groups are distinct anyway")

    def _check_atoms(self) -> None:
        by_name = {table.name: table for table in self.tables}
        if len(by_name) != len(self.tables):
            raise SchemaError(f"query {self.name} describes a table twice")
        for atom in self.atoms:
            table = by_name.get(atom.relation)
            if table is None:
                raise SchemaError(f"query {self.name} does not describe the table {atom.relation}")
            expressions = atom.columns if atom.where is None else (*atom.columns, atom.where)
            for expression in expressions:
                for column in columns_of(expression):
                    if table.column(column) is None:
                        raise SchemaError(f"table {table.name} has no column {column!r}")

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, in the order of first occurrence in the body."""
        return tuple(dict.fromkeys([variable for atom in self.atoms for variable in atom.variables]))

    @property
    def free(self) -> tuple[str, ...]:
        return self.input + self.output

    @property
    def bound(self) -> tuple[str, ...]:
        free = set(self.free)
        return tuple([variable for variable in self.variables if variable not in free])

    @property
    def never_null(self) -> frozenset[str]:
        """The variables whose rows with NULL are left out: those that join, and inputs."""
        uses = Counter([term for atom in self.atoms for term in atom.terms if isinstance(term, str)])
        return frozenset([v for v in uses if uses[v] > 1 or v in self.input]).difference(self.null_safe)

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates of the head, in order."""
        return tuple(dict.fromkeys([c.source for c in self.head if isinstance(c.source, Aggregate)]))

    @property
    def has_closures(self) -> bool:
        """Whether it reads the transitive closure of a relation."""
        return any(a.closure for a in self.atoms) or any(t.closure_of is not None for t in self.tables)

    @property
    def has_self_joins(self) -> bool:
        """Whether a relation symbol repeats; lower bounds need that none does (erratum 15)."""
        relations = [(atom.relation, atom.closure) for atom in self.atoms]
        return len(set(relations)) < len(relations)

    def table(self, name: str) -> Table:
        """The table of that exact name."""
        for each in self.tables:
            if each.name == name:
                return each
        raise KeyError(name)

    def with_tables(self, tables: Iterable[Table]) -> Query:
        """The same query over tables that promise more (keys, append-only, static, statistics)."""
        known = {table.name: table for table in tables}
        return replace(self, tables=tuple(known.get(table.name, table) for table in self.tables))

    def __str__(self) -> str:
        def listed(names: Iterable[object]) -> str:
            return ", ".join(map(str, names)) or "."

        shown = [column.source for column in self.head if column.source not in self.input]
        hidden = [variable for variable in self.output if variable not in shown]
        outputs = listed(dict.fromkeys([*shown, *hidden]))
        head = f"{self.name}({'DISTINCT ' if self.distinct else ''}{outputs} | {listed(self.input)})"
        return f"{head} = {', '.join(map(str, self.atoms))}"


def check_head(query: Query) -> None:
    """Refuses a new view with a column or parameter whose name cannot be one."""
    for column in query.head:
        check_name(column.name, f"a column of {query.name} (rename it with AS)")
    for parameter in query.parameters:
        check_name(parameter, f"a parameter of {query.name}")


def plain_head(output: Iterable[str], aggregates: Iterable[Aggregate] = ()) -> tuple[HeadColumn, ...]:
    """The default head: the output variables, then the aggregates under their own text as names."""
    return tuple(HeadColumn(variable, variable) for variable in output) + tuple(
        HeadColumn(str(aggregate), aggregate) for aggregate in aggregates
    )


def column_refs(names: Iterable[str]) -> tuple[Expression, ...]:
    """Plain references to columns, as an atom without computed columns has them."""
    return tuple(ColumnRef(name) for name in names)
