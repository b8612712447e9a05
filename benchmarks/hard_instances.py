"""Databases on which a join step does as much work as its exponent allows.

The work of a step is bounded by N^ρ, where ρ is the fractional edge cover number of the variables it produces and
the update does not fix. By duality ρ is also the weight of a fractional packing of these variables: give variable X
a domain of N^y(X) values, where the y of each edge sum up to at most 1. The product of the domains is then a
database whose relations have at most N tuples each and whose join has N^ρ (Atserias, Grohe, Marx).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ivme.plan.ir.program import Add, Exists, Join, Load, Program, Rename, Scan, Step
from ivme.plan.ir.steps import Emit, Watch
from ivme.query.model import Atom, Constant, Query

DENOMINATORS = (1, 2, 3)
"""Packings of the shapes that we measure are integral, half-integral (cycles) or in thirds (Loomis-Whitney)."""

REQUEST = "a request"
"""What sets off the steps of a request."""

Database = dict[str, dict[tuple[Any, ...], int]]


@dataclass(frozen=True, slots=True)
class HardCase:
    """A step to stress: the relation whose change sets it off (None in the bulk build), and a packing."""

    relation: str | None
    exponent: Fraction
    packing: tuple[tuple[str, Fraction], ...]


def hard_cases(program: Program) -> list[HardCase]:
    """For each trigger, and for the build, the dearest join step with a packing of what it leaves open."""
    cases = []
    for trigger in program.triggers:
        cases += [case for case in [_dearest(program, trigger.relation, trigger.steps)] if case is not None]
    build = _dearest(program, None, program.build)
    return [*cases, build] if build is not None else cases


def request_case(program: Program) -> HardCase | None:
    """The costliest join step of a request that is evaluated when it comes."""
    reading = program.enumeration
    answers = [reading.branches[0].answer, *(each.answer for each in reading.gathered)]
    found = [case for answer in answers if (case := _dearest(program, REQUEST, answer)) is not None]
    return max(found, key=lambda case: case.exponent, default=None)


def listed_case(query: Query, program: Program) -> HardCase | None:
    """A request with as many rows as possible, if these are read off pieces: what is promised is the first of them."""
    (branch, *_) = program.enumeration.branches
    case = _dearest(program, REQUEST, branch.answer)
    if not branch.pieces or case is None:
        return None
    schemas = [frozenset(atom.variables) for atom in query.atoms]
    return replace(case, packing=tuple(best_packing(sorted(query.output), schemas).items()))


def _dearest(program: Program, relation: str | None, steps: tuple[Step, ...]) -> HardCase | None:
    joins = [step for step in steps if isinstance(step, Join)]
    if not joins:
        return None
    worst = max(joins, key=lambda step: step.exponent)
    line = _descent(steps, worst)
    original = dict(program.enumeration.inputs)
    produced = {original.get(variable, variable) for variable in worst.schema}
    fixed = {original.get(v, v) for v in _changed_variables(line)} if relation is not None else set()
    edges = {label: schema for step in line for label, schema in _edges(program, step)}
    schemas = [frozenset(original.get(variable, variable) for variable in schema) for schema in edges.values()]
    return HardCase(relation, worst.exponent, tuple(best_packing(sorted(produced - fixed), schemas).items()))


def _descent(steps: tuple[Step, ...], last: Step) -> list[Any]:
    """The steps from the load or scan down to the given one."""
    by_target: dict[str, Any] = {step.target: step for step in steps if not isinstance(step, Add | Emit | Watch)}
    line: list[Any] = [last]
    while not isinstance(line[0], Load | Scan):
        line.insert(0, by_target[line[0].origin])
    return line


def _changed_variables(line: list[Any]) -> tuple[str, ...]:
    """The variables that the change fixes: those of the delta before it is first joined."""
    joined = next(i for i, step in enumerate(line) if isinstance(step, Join))
    whole = next((step for step in reversed(line[:joined]) if isinstance(step, Load | Rename | Exists)), line[0])
    schema: tuple[str, ...] = whole.schema
    return schema


def _edges(program: Program, step: Step) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The atoms and indicators that a step's reads are bound by; the rows of a request bound nothing."""
    if isinstance(step, Load):
        yield from ((label, source.schema) for label, source in program.sources if source == step.source)
    names = [read.map for read in step.reads] if isinstance(step, Join) else []
    for name in names + ([step.map] if isinstance(step, Scan) else []):
        declared = program.map(name)
        yield from ((label, program.source(label).schema) for label in declared.atoms)
        yield from ((f"∃{label}{schema}", schema) for label, schema in declared.indicators)


def best_packing(variables: list[str], schemas: Iterable[frozenset[str]]) -> dict[str, Fraction]:
    """A fractional packing of greatest weight, by trying all of small denominator."""
    edges = [edge & frozenset(variables) for edge in schemas]
    best: dict[str, Fraction] = {}
    for denominator in DENOMINATORS:
        for numerators in product(range(denominator + 1), repeat=len(variables)):
            weights = dict(zip(variables, (Fraction(n, denominator) for n in numerators), strict=True))
            feasible = all(sum(weights[variable] for variable in edge) <= 1 for edge in edges)
            if feasible and sum(weights.values()) > sum(best.values()):
                best = weights
    return best


def instance(query: Query, packing: Mapping[str, Fraction], size: int) -> Database:
    """The product database of a packing; relations that do not bound the step are cut to `size` rows."""
    domains = {variable: range(max(1, round(size ** float(packing.get(variable, 0))))) for variable in query.variables}
    database: Database = {table.name: {} for table in query.tables}
    for atom in query.atoms:
        for values in islice(product(*(domains[variable] for variable in atom.variables)), max(size, 1)):
            database[atom.relation][row_of(atom, dict(zip(atom.variables, values, strict=True)))] = 1
    return database


def columns(query: Query, packing: Mapping[str, Fraction], size: int) -> dict[str, list[NDArray[np.int64]]]:
    """The same as columns, for large databases of queries without constants, in which no relation repeats."""
    domains = {variable: max(1, round(size ** float(packing.get(variable, 0)))) for variable in query.variables}
    found = {}
    for atom in query.atoms:
        shape = tuple(domains[variable] for variable in atom.variables)
        numbers = np.arange(min(max(size, 1), prod(shape)), dtype=np.int64)
        found[atom.relation] = [np.asarray(column) for column in np.unravel_index(numbers, shape)]
    return found


def row_of(atom: Atom, assignment: Mapping[str, Any]) -> tuple[Any, ...]:
    """The row of the atom's relation for an assignment of its variables."""
    return tuple(term.value if isinstance(term, Constant) else assignment[term] for term in atom.terms)
