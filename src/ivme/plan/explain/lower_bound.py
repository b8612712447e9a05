"""What no algorithm can beat: lower bounds under the OMv conjecture (source 003, chapter 7, sections 5.6 and 6.7), and
of 4-cliques under the conjecture that static ones cannot be found faster.

A bound is a promise about every algorithm, so it is claimed only where its proof goes through: no repeated relation
symbol, no table that is append-only or static (erratum 15), no closure, no output variable that the rows hide, and
nothing about the tables that would forbid the proof's databases. These put arbitrary values into the variables of the
pattern that makes the query hard, and one dummy value into all others; a filter, a computed column, a type of two
values or a key on those variables may rule them out, and so may a filter that no dummy is known to pass. The proofs
change every table, so that a key that makes the changes of some tables cheap leaves the bound as it is: two dimensions
that change freely stay hard. Where rows reference others, these do not change freely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from ivme.plan.explain.witness import witness
from ivme.query.expression import Call, ColumnRef, Literal, columns_of
from ivme.query.model import Atom, Constant, Query, Table
from ivme.structure.classify import Classification, Obstacle

_TRIANGLE_DELAY = {"C_count": "O(1)", "C1": "O(N^(1-γ))", "C2": "O(N^(1/2-γ))", "C3": "O(1)"}
"""The delays that go with O(N^(1/2-γ)) updates in Proposition 6.8."""


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A bound, the exponent of N that updates cannot stay below, where it is proved, and the pattern to blame."""

    text: str
    exponent: Fraction
    source: str
    pattern: str

    def __str__(self) -> str:
        return self.text


_FOUR_CLIQUE = LowerBound(
    "no combinatorial algorithm has both O(N^(1-γ)) amortised update time and O(N^(2-γ)) delay for any γ > 0, unless "
    "one finds 4-cliques among n nodes in O(n^(4-γ)) time",
    Fraction(1),
    "Hanauer, Henzinger and Hua, SAND 2022, with a table for each pair of copies of the nodes",
    "four variables, and a table for each two of them: a 4-clique",
)
"""n nodes have up to n² edges: N of them inserted one by one would tell faster whether there is a 4-clique. Fast matrix
multiplication, which no algorithm of a database uses, finds one in O(n^3.26)."""


def is_four_clique(query: Query) -> bool:
    """Whether the query joins four variables, each two of them by a table of their own, and has no inputs."""
    pairs = {frozenset(atom.variables) for atom in query.atoms}
    is_clique = len(query.variables) == 4 and len(query.atoms) == len(pairs) == 6
    return is_clique and not query.input and all(len(pair) == 2 for pair in pairs)


def lower_bound(query: Query, plain: Classification) -> LowerBound | None:
    """The bound for a query, or None where none applies or is needed.

    `plain` is its classification with only input and output variables free: that MIN, MAX and COUNT DISTINCT need
    their variables on top is a fact about our plans, not about all algorithms.
    """
    if plain.cqap0 or plain.obstacle is None or any(unclaimed(query, plain)):
        return None
    if is_four_clique(query):
        return _FOUR_CLIQUE
    delay, source = "O(N^(1/2-γ))", "003, Theorem 3.11"
    if plain.triangle is not None:
        delay, source = _TRIANGLE_DELAY[plain.triangle], "003, Proposition 6.8"
    elif plain.cqap1:
        source = "003, section 5.6, Corollary 5.34"
    changed = " for changes of all tables" if any(table.primary_key for table in query.tables) else ""
    text = (
        f"no algorithm has both O(N^(1/2-γ)) amortised update time{changed} and {delay} delay for any γ > 0, "
        "unless the OMv conjecture fails"
    )
    return LowerBound(text, Fraction(1, 2), source, _pattern(plain.obstacle))


def _pattern(obstacle: Obstacle) -> str:
    """The pattern in the query's own names, with the relations that show it."""
    a, b = obstacle.variables
    if obstacle.kind == "not hierarchical":
        return obstacle.text
    sides = "is input and {} is not" if obstacle.kind == "not input-dominant" else "is free and {} is bound"
    with_both, without = obstacle.edges
    return f"{b} dominates {a} ({with_both} has both, {without} only {b}), and {a} {sides.format(b)}"


def unclaimed(query: Query, plain: Classification) -> Iterator[str]:
    """Why no bound is claimed for a query outside CQAP_0; nothing if one is."""
    if query.has_closures:
        yield "no lower bound is claimed for closures"
        return
    if plain.cqap0 or plain.obstacle is None:
        return
    if query.has_self_joins:
        relations = [atom.relation for atom in query.atoms]
        repeated = ", ".join(r for r in dict.fromkeys(relations) if relations.count(r) > 1)
        yield f"no lower bound is claimed: its proof needs a query without self-joins, and {repeated} is repeated"
    for kind in ("append-only", "static"):
        named = [t.name for t in query.tables if (t.append_only if kind == "append-only" else t.static)]
        if named:
            verb = "is" if len(named) == 1 else "are"
            listed = ", ".join(named)
            yield f"no lower bound is claimed: its proof inserts and deletes in every table, and {listed} {verb} {kind}"
    yield from _references(query)
    shown = {column.source for column in query.head if isinstance(column.source, str)}
    for variable in query.output:
        if variable not in shown:
            yield f"no lower bound is claimed: its proof reads {variable} from the rows, which do not show it"
    variables = query.variables if plain.triangle or is_four_clique(query) else plain.obstacle.variables
    joined = _joined(query)
    for atom in query.atoms:
        table = query.table(atom.relation)
        own = [variable for variable in variables if variable in atom.variables]
        reason = _restriction(table, atom, own) or _emptiness(table, atom, joined, query.input)
        if reason is not None:
            yield f"no lower bound is claimed: {reason}"
    for variable in joined:
        if len(_kinds(query, variable)) > 1:
            yield f"no lower bound is claimed: {variable} stands for columns of different types"


def _references(query: Query) -> Iterator[str]:
    names = {table.name.lower(): table.name for table in query.tables}
    for table in query.tables:
        for target in [names[each.table.lower()] for each in table.references if each.table.lower() in names]:
            why = f"its proof changes rows of {target} while rows of {table.name} reference them"
            yield f"no lower bound is claimed: {why}"


def _restriction(table: Table, atom: Atom, variables: list[str]) -> str | None:
    """What keeps the atom from holding arbitrary tuples over some of its variables."""
    filtered = {name.lower() for name in columns_of(atom.where)} if atom.where is not None else set()
    for expression, term in zip(atom.columns, atom.terms, strict=True):
        if term not in variables:
            continue
        if not isinstance(expression, ColumnRef) or _uses(atom, expression.name) > 1:
            return f"{term} is computed from columns of {table.name}, which may make the view easier"
        if expression.name.lower() in filtered:
            return f"the filter on {expression.name} of {table.name} may make the view easier"
        if _is_boolean(table, expression.name):
            return f"{expression.name} of {table.name} has but two values, which may make the view easier"
    return _key_restriction(table, atom, variables, filtered)


def _joined(query: Query) -> list[str]:
    """The variables that stand for several columns."""
    found = Counter(term for atom in query.atoms for term in atom.terms if isinstance(term, str))
    return [variable for variable, number in found.items() if number > 1]


def _kinds(query: Query, variable: str) -> set[str]:
    """The kinds of the declared columns that a variable stands for."""
    columns = (
        query.table(atom.relation).column(expression.name)
        for atom in query.atoms
        for expression, term in zip(atom.columns, atom.terms, strict=True)
        if term == variable and isinstance(expression, ColumnRef)
    )
    return {column.type.kind for column in columns if column is not None and column.type is not None}


def _emptiness(table: Table, atom: Atom, joined: list[str], given: tuple[str, ...]) -> str | None:
    """What may keep every tuple of dummies out of the atom, or out of the join with the others."""
    filtered = {name.lower() for name in columns_of(atom.where)} if atom.where is not None else set()
    for expression, term in zip(atom.columns, atom.terms, strict=True):
        if not isinstance(expression, ColumnRef):
            if term in joined or term in given:
                return f"{term} is computed from columns of {table.name}, which may leave the view empty"
        elif isinstance(term, Constant):
            if witness(Call("eq", (expression, Literal(term.value))), table) is None:
                return f"no row of {table.name} may have {expression.name} = {term}"
        elif term in joined and expression.name.lower() in filtered:
            return f"the filter on {expression.name} of {table.name}, which is joined, may leave the view empty"
    if atom.where is not None and witness(atom.where, table) is None:
        return f"no row of {table.name} is known to pass the filter {atom.where}"
    return None


def _is_boolean(table: Table, name: str) -> bool:
    column = table.column(name)
    return column is not None and column.type is not None and column.type.kind == "bool"


def _uses(atom: Atom, column: str) -> int:
    return sum(column.lower() in {name.lower() for name in columns_of(expression)} for expression in atom.columns)


def _key_restriction(table: Table, atom: Atom, variables: list[str], filtered: set[str]) -> str | None:
    """A key forbids two tuples that differ only in variables outside it; a key column that the query does not mention
    does no harm, because it may take a fresh value in each row, if there are more than two."""
    mentioned = filtered.union(name.lower() for expression in atom.columns for name in columns_of(expression))
    columns = {t: c.name.lower() for c, t in zip(atom.columns, atom.terms, strict=True) if isinstance(c, ColumnRef)}
    primary = [] if table.primary_key is None else [table.primary_key]
    for declared in (*primary, *table.unique, *table.keys):
        key = [name.lower() for name in declared]
        if any(name not in mentioned and not _is_boolean(table, name) for name in key):
            continue
        if not all(columns.get(variable) in key for variable in variables):
            kind = "the primary key" if declared == table.primary_key else "a key"
            return f"{kind} of {table.name} may make the view easier"
    return None
