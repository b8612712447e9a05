"""What a changed row of each table costs, read off the triggers of a program.

A row of a table that others reference, such as a customer of orders, comes before its orders and goes after them. So
when it changes, no row references it, and its join with the referencing atom is empty: that look-up is the last one. A
change of such a row in place is a delete and an insert while rows reference it, and costs what it costs without the
promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ivme.plan.ir.exponent import Bound, bound
from ivme.plan.ir.program import Program, Step
from ivme.plan.ir.steps import Add, Emit, Join, Load, Read, Rename, Scan, Watch
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom, Query, Table


@dataclass(frozen=True, slots=True)
class TableCost:
    """The bound on a changed row of a table; `in_place` is that without the promise of `referenced_by`."""

    table: str
    update: Bound
    in_place: Bound
    referenced_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinedReference:
    """That rows of the atom `by` reference rows of the atom `label` by these variables."""

    label: str
    by: str
    variables: frozenset[str]


def same_costs(update: Bound, query: Query) -> tuple[TableCost, ...]:
    """One bound for all tables that change, where a strategy has no more to say."""
    tables = dict.fromkeys(atom.relation for atom in query.atoms)
    return tuple(TableCost(name, update, update) for name in tables if not query.table(name).static)


def worst(costs: Iterable[TableCost]) -> Bound:
    """The bound over all tables: the greatest, amortised if one is that is no smaller."""
    found = [cost.update for cost in costs]
    half = Fraction(1, 2)
    return max(found, key=lambda each: (each.exponent.at(half), each.amortised), default=bound(0))


def table_costs(program: Program, query: Query) -> tuple[TableCost, ...]:
    """One cost for each table that changes, in the order of the query; nothing is done for a lazy program's."""
    if program.lazy:
        return same_costs(bound(0), query)
    references = [*_references(program, query)]
    static = {table.name for table in query.tables if table.static}
    costs = (_cost(program, trigger.relation, trigger.steps, references) for trigger in program.triggers)
    found = {cost.table: cost for cost in costs if cost.table not in static}
    return tuple(found.get(cost.table, cost) for cost in same_costs(bound(0), query))


def _cost(program: Program, relation: str, steps: tuple[Step, ...], references: list[JoinedReference]) -> TableCost:
    mine = [each for each in references if program.source(each.label).atom.relation == relation]
    plain = _costliest(program, steps, ())
    promised = _costliest(program, steps, mine) if plain and mine else plain
    if promised == plain:
        return TableCost(relation, bound(plain), bound(plain))
    names = dict.fromkeys(program.source(each.by).atom.relation for each in mine)
    return TableCost(relation, bound(promised, amortised=True), bound(plain), tuple(names))


def _costliest(program: Program, steps: Iterable[Step], references: Iterable[JoinedReference]) -> Fraction:
    """The greatest exponent of the steps, without those whose delta the references make empty."""
    waiting = [*references]
    origin: dict[str, tuple[str, ...]] = {}
    empty: set[str] = set()
    worst = Fraction(0)
    for step in steps:
        if isinstance(step, Load):
            origin[step.target] = step.source.schema
            continue
        if isinstance(step, Scan | Add | Emit | Watch):
            continue
        origin[step.target] = step.schema if isinstance(step, Rename) else origin.get(step.origin, ())
        if step.origin in empty:
            empty.add(step.target)
        elif isinstance(step, Join):
            if any(_hits(program, each, origin[step.target], step.reads) for each in waiting):
                empty.add(step.target)
            else:
                worst = max(worst, step.exponent)
    return worst


def _hits(program: Program, reference: JoinedReference, changed: tuple[str, ...], reads: Iterable[Read]) -> bool:
    """Whether one of the reads has only entries with rows that reference the changed one."""
    key = reference.variables
    if not key.issubset(changed) or not set(changed) <= set(program.source(reference.label).schema):
        return False
    return any(
        key.issubset(v for v in read.variables if v is not None) and reference.by in _atoms(program, read)
        for read in reads
    )


def _atoms(program: Program, read: Read) -> set[str]:
    declared = program.map(read.map)
    return {*declared.atoms, *(label for label, _ in declared.indicators)}


def _references(program: Program, query: Query) -> Iterator[JoinedReference]:
    """The foreign keys that the query joins on."""
    tables = {table.name.lower(): table for table in query.tables}
    for by, source in program.sources:
        for foreign in query.table(source.atom.relation).references:
            target = tables.get(foreign.table.lower())
            if target is None:
                continue
            mine = _variables(source.atom, source.schema, foreign.columns)
            for label, other in program.sources:
                if other.atom.relation == target.name and label != by:
                    theirs = _variables(other.atom, other.schema, foreign.target or _key(target))
                    if mine is not None and mine == theirs:
                        yield JoinedReference(label, by, frozenset(mine))


def _key(table: Table) -> tuple[str, ...]:
    return table.primary_key or ()


def _variables(atom: Atom, schema: tuple[str, ...], columns: tuple[str, ...]) -> list[str] | None:
    """The variables that stand for some columns, as the program calls them; None where one has none."""
    names = dict(zip(atom.variables, schema, strict=True))
    terms = {c.name.lower(): t for c, t in zip(atom.columns, atom.terms, strict=True) if isinstance(c, ColumnRef)}
    found = [terms.get(column.lower()) for column in columns]
    named = [names[term] for term in found if isinstance(term, str)]
    return named if named and len(named) == len(columns) else None
