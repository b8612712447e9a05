"""What a change costs on average, where tables differ in what they cost and in how often they change.

A plan may take a look-up for a change of a fact and many for one of a dimension. Then not the worst table decides, but
the mean over all changes: `changes=` says how often each table changes; without it each row of a table changes as often
as any other row of any table. A change of a dimension costs the facts of its key, which are all facts over all rows of
the dimension, divided by their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.tuning import UNKNOWN_SIZE
from ivme.plan.strategy.options import Options
from ivme.query.model import Query
from ivme.structure.analysis import Analysis
from ivme.structure.dependencies import dependencies_of, has_key


@dataclass(frozen=True, slots=True)
class Rates:
    """How many rows each table has, how often it changes, and which tables are dimensions.

    A dimension is determined by the rows of another table of the query, as a customer is by an order. Where sizes are
    not known, it is taken to be the square root of the others.
    """

    rows: dict[str, int]
    changes: dict[str, float]
    dimensions: frozenset[str]

    @property
    def size(self) -> int:
        """N."""
        return max(self.rows.values(), default=UNKNOWN_SIZE)

    def mean(self, plan: Plan, epsilon: Fraction) -> float:
        """The look-ups that a change takes on average."""
        total = sum(self.changes.values()) or 1.0
        return sum(
            self.changes[cost.table] / total * self._work(plan, cost.table, cost.update.exponent.at(epsilon))
            for cost in plan.updates
        )

    def _work(self, plan: Plan, table: str, exponent: Fraction) -> float:
        if not exponent:
            return 1.0
        shared = self.rows[table] if table in self.dimensions and not plan.blueprint.splits else 1
        reached: float = float(self.size) ** float(exponent)
        return max(1.0, reached / shared)


def rates_of(analysis: Analysis, options: Options) -> Rates | None:
    """The rates of the tables of a query; None if its keys make no difference between them."""
    query = analysis.query
    dimensions = dimensions_of(query)
    if not dimensions and not dependencies_of(query):
        return None
    known = {table.name: table.rows or analysis.rows.get(table.name, 0) for table in query.tables}
    largest = max(known.values(), default=0) or UNKNOWN_SIZE
    priors = {name: isqrt(largest) if name in dimensions else largest for name in known}
    rows = {name: max(1, known[name] or priors[name]) for name in known}
    given = {name.lower(): number for name, number in options.changes}
    changes = {name: given.get(name.lower(), 1.0) if given else float(rows[name]) for name in rows}
    return Rates(rows, changes, dimensions)


def dimensions_of(query: Query) -> frozenset[str]:
    """The tables with keys all of whose atoms are determined by an atom that they do not determine."""
    dependencies, never_null = dependencies_of(query), query.never_null
    atoms = [(atom, dependencies.closure(atom.variables)) for atom in query.atoms]
    determined = {
        i: has_key(atom, query.table(atom.relation), never_null)
        and any(wide.issuperset(atom.variables) and not mine.issuperset(other.variables) for other, wide in atoms)
        for i, (atom, mine) in enumerate(atoms)
    }
    tables = {atom.relation for atom in query.atoms}
    return frozenset(
        name for name in tables if all(determined[i] for i, (a, _) in enumerate(atoms) if a.relation == name)
    )
