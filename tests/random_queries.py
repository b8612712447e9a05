"""Hypothesis strategies for queries in rule notation, for updates to their tables, and for renamings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from ivme.query.model import Aggregate, HeadColumn, Query, Term, Value
from ivme.query.rule import parse_rule
from tests.oracle import Row

Update = tuple[str, Row, int]
"""A relation, a row of it, and the weight that is added to the row's multiplicity."""

ARITIES = (2, 1, 3, 2, 1, 3, 2, 4, 2, 0)


@dataclass(frozen=True, slots=True)
class Renaming:
    """A query under other names: `query`, and the new name of each variable and of each relation."""

    query: Query
    variables: dict[str, str]
    relations: dict[str, str]


@st.composite
def rule_texts(
    draw: st.DrawFn,
    max_atoms: int = 6,
    max_variables: int = 7,
    self_joins: bool = True,
    aggregates: bool = False,
    constants: bool = False,
) -> str:
    """Rules with every access pattern over connected and unconnected bodies; they shrink to `Q(. | .) = R0(A)`.

    With `aggregates` there is at least one on the head; with `constants` a term is sometimes one of 0, 1, 2.
    """
    variables = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: draw(st.integers(1, max_variables))]
    arities: list[int] = []
    atoms: list[list[str]] = []
    body: list[str] = []
    for _ in range(draw(st.integers(1, max_atoms))):
        fresh = not arities or not self_joins or draw(st.integers(0, 3)) < 3
        relation = len(arities) if fresh else draw(st.integers(0, len(arities) - 1))
        if fresh:
            arities.append(draw(st.sampled_from(ARITIES)))
        terms = draw(_terms(variables, arities[relation], constants))
        atoms.append(terms)
        body.append(f"R{relation}({', '.join(terms)})")
    used = sorted({term for terms in atoms for term in terms if term in variables})
    return f"{draw(_heads(used, aggregates))} = {', '.join(body)}"


@st.composite
def _terms(draw: st.DrawFn, variables: str, arity: int, constants: bool) -> list[str]:
    """The terms of an atom: one time in eight variables may repeat, or must as there are too few of them."""
    repeating = arity > len(variables) or draw(st.integers(0, 7)) == 7
    names = st.sampled_from(variables)
    terms = draw(st.lists(names, min_size=arity, max_size=arity, unique=not repeating))
    if constants:
        terms = [draw(st.sampled_from("012")) if draw(st.integers(0, 5)) == 5 else term for term in terms]
    return terms


@st.composite
def _heads(draw: st.DrawFn, used: list[str], aggregates: bool) -> str:
    roles = {variable: draw(st.sampled_from(("bound", "output", "input"))) for variable in used}
    outputs = draw(st.permutations([variable for variable in used if roles[variable] == "output"]))
    inputs = draw(st.permutations([variable for variable in used if roles[variable] == "input"]))
    if aggregates:
        functions = ("SUM({})", "COUNT({})", "AVG({})", "MIN({})", "MAX({})", "COUNT(DISTINCT {})")
        choices = ["COUNT", *(function.format(variable) for variable in used for function in functions)]
        outputs += draw(st.lists(st.sampled_from(choices), min_size=1, max_size=3, unique=True))
    return f"Q({', '.join(outputs) or '.'} | {', '.join(inputs) or '.'})"


def queries(
    max_atoms: int = 6,
    max_variables: int = 7,
    self_joins: bool = True,
    aggregates: bool = False,
    constants: bool = False,
) -> st.SearchStrategy[Query]:
    """The queries of `rule_texts`, over inferred tables."""
    return rule_texts(max_atoms, max_variables, self_joins, aggregates, constants).map(parse_rule)


@st.composite
def updates(
    draw: st.DrawFn,
    query: Query,
    domain: int = 3,
    max_size: int = 30,
    max_weight: int = 2,
    nulls: bool = False,
    deletes: bool = True,
) -> list[Update]:
    """Inserts and deletes for the query's tables, in an order in which no multiplicity is ever negative.

    Most lists are long and few values are NULL (a seventh at domain 3): results that are empty anyway tell a right
    answer from a wrong one too seldom. The first updates go to the tables in turn, so that joins find partners.
    """
    values: list[Value] = [*range(domain), *range(domain), None] if nulls else [*range(domain)]
    sizes = [0, max_size // 8, max_size // 4, max_size // 2, *[max_size] * 4]
    present: Counter[tuple[str, Row]] = Counter()
    steps: list[Update] = []
    for number in range(draw(st.sampled_from(sizes))):
        filling = number < 2 * len(query.tables)
        if not filling and deletes and present and draw(st.integers(0, 2)) == 2:
            relation, row = draw(st.sampled_from(list(present)))
            weight = -draw(st.integers(1, present[relation, row]))
        else:
            table = query.tables[number % len(query.tables)] if filling else draw(st.sampled_from(query.tables))
            relation, row = table.name, tuple(draw(st.sampled_from(values)) for _ in table.columns)
            weight = draw(st.integers(1, max_weight))
        steps.append((relation, row, weight))
        present[relation, row] += weight
        if not present[relation, row]:
            del present[relation, row]
    return steps


def contents(steps: Iterable[Update]) -> dict[str, Counter[Row]]:
    """The database that the updates make out of an empty one, as the oracle reads it."""
    database: dict[str, Counter[Row]] = {}
    for relation, row, weight in steps:
        database.setdefault(relation, Counter())[row] += weight
    return {relation: Counter({row: w for row, w in stored.items() if w}) for relation, stored in database.items()}


@st.composite
def renamings(draw: st.DrawFn, query: Query) -> Renaming:
    """The query with new names for its variables and relations, and its atoms in another order.

    Tables keep their columns' names, and the head the order of its columns, so that rows and results carry over.
    """
    numbers = draw(st.permutations(range(len(query.variables))))
    variables = {variable: f"x{number}" for variable, number in zip(query.variables, numbers, strict=True)}
    letters = draw(st.permutations(range(len(query.tables))))
    relations = {table.name: f"T{letter}" for table, letter in zip(query.tables, letters, strict=True)}

    def term(old: Term) -> Term:
        return variables[old] if isinstance(old, str) else old

    def head_column(old: HeadColumn) -> HeadColumn:
        if isinstance(old.source, str):
            return HeadColumn(variables[old.source], variables[old.source])
        argument = old.source.variable
        renamed = Aggregate(old.source.function, None if argument is None else variables[argument])
        return HeadColumn(str(renamed), renamed)

    atoms = [
        replace(atom, relation=relations[atom.relation], terms=tuple(map(term, atom.terms))) for atom in query.atoms
    ]
    renamed = replace(
        query,
        output=tuple(variables[variable] for variable in query.output),
        input=tuple(variables[variable] for variable in query.input),
        parameters=tuple(variables[variable] for variable in query.input),
        atoms=tuple(draw(st.permutations(atoms))),
        tables=tuple(replace(table, name=relations[table.name]) for table in query.tables),
        head=tuple(map(head_column, query.head)),
    )
    return Renaming(replace(renamed, text=str(renamed)), variables, relations)


def renaming(query: Query) -> st.SearchStrategy[Query]:
    """The queries of `renamings`, for those who need no data."""
    return renamings(query).map(lambda renamed: renamed.query)
