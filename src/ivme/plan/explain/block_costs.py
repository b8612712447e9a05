"""What a changed row of a table costs a view of several blocks: each block for each changed row that reaches it.

A row that changes in a table may change many rows of a block, and these go on to the blocks that read it. How many they
are at most is the number of the block's rows that agree with the changed row: one, where the changed row, with the keys
of what it joins, determines the row of the block.

The bounds of a block are in the size of what it reads. A block that pairs all rows of two tables has N² rows, which the
block behind it goes through when it is built, whatever of them it stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from ivme.plan.assemble.plan import largest_map
from ivme.plan.assemble.update_costs import TableCost
from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir.exponent import Bound, bound
from ivme.query.model import Query
from ivme.query.names import CLOCK
from ivme.structure.dependencies import dependencies_of
from ivme.structure.hypergraph import Edge, Hypergraph, labels_of
from ivme.structure.width import edge_cover_number

_HALF = Fraction(1, 2)


@dataclass(slots=True)
class Reached:
    """How many rows of each relation change when one row of a table does, as exponents by relation and table."""

    rows: dict[str, dict[str, Fraction]] = field(default_factory=dict)
    costs: dict[str, Bound] = field(default_factory=dict)
    sizes: dict[str, Fraction] = field(default_factory=lambda: {CLOCK: Fraction(0)})
    """How many rows a block has at most, as an exponent; a table has N, and the clock one."""
    preprocessing: list[Bound] = field(default_factory=list)
    space: list[Bound] = field(default_factory=list)

    def of(self, relation: str) -> dict[str, Fraction]:
        """The changed rows of a relation; those of a table are its own."""
        return self.rows.get(relation, {relation: Fraction(0)})

    def add(
        self,
        name: str,
        reads: Iterable[str],
        explanation: Explanation,
        *,
        passed: Mapping[str, Fraction],
        read: bool,
        ranks: bool = False,
    ) -> None:
        """Adds a block over these relations, which have been added; one that others `read` passes its changes on.

        `passed` is how many of its rows change with one of each relation, as an exponent, 0 if not said. One that
        `ranks` all rows may change all of them, however many changed rows reach it at once.
        """
        reads = tuple(reads)
        self._build(name, reads, explanation, passed, read=read)
        mine = self.rows.setdefault(name, {})
        for relation in reads:
            own = explanation.updates.get(relation) if explanation.costs else explanation.update
            for table, rows in self.of(relation).items():
                more = max(1 - rows, Fraction(0)) if ranks else passed.get(relation, Fraction(0))
                if own is not None and ranks and rows:
                    own = bound(0, logs=1)
                if own is not None:
                    mine[table] = max(mine.get(table, Fraction(0)), min(rows + more, self.sizes[name]))
                    self._pay(table, rows, own, more if read else Fraction(0))

    def _build(
        self, name: str, reads: tuple[str, ...], own: Explanation, passed: Mapping[str, Fraction], *, read: bool
    ) -> None:
        """What a block takes to be built, and stores, by the sizes of what it reads."""
        sizes = {each: self.sizes.get(each, Fraction(1)) for each in reads}
        largest = max(sizes.values(), default=Fraction(0))
        rows = [size + passed.get(each, Fraction(0)) * largest for each, size in sizes.items()]
        self.sizes[name] = (max if own.strategy == "union" else min)(rows, default=Fraction(0))
        self.preprocessing += [_scaled(each, largest) for each in (own.preprocessing,) if each is not None]
        self.preprocessing += [bound(self.sizes[name])] if read else []
        self.space += [_stored(own, own.space, largest)] if own.space is not None else []

    def _pay(self, table: str, rows: Fraction, own: Bound, passed: Fraction) -> None:
        mine = own.exponent.at(_HALF)
        cost = own
        if rows or passed > mine:
            cost = bound(rows + max(mine, passed), amortised=own.amortised, logs=own.logs)
        old = self.costs.get(table)
        self.costs[table] = cost if old is None else max(old, cost, key=_rank)

    def in_words(self, relations: Iterable[str]) -> str:
        """ "1" if no more than one row of these relations changes at a time, else "N"."""
        return "N" if any(rows for each in relations for rows in self.of(each).values()) else "1"

    def table_costs(self) -> tuple[TableCost, ...]:
        return tuple(TableCost(table, cost, cost) for table, cost in self.costs.items())


def _scaled(own: Bound, size: Fraction) -> Bound:
    """A bound in the size of what a block reads, which has up to N^size rows, in N."""
    if size <= 1:
        return own
    return bound(own.exponent.at(_HALF) * size, amortised=own.amortised, logs=own.logs)


def _stored(own: Explanation, space: Bound, size: Fraction) -> Bound:
    """What a block stores: of rows that it goes through only what is in its maps."""
    if size <= 1 or own.plan is None:
        return _scaled(space, size)
    return bound(max(Fraction(1), largest_map(own.plan.program) * size))


def _rank(cost: Bound) -> tuple[Fraction, int, bool]:
    return cost.exponent.at(_HALF), cost.logs, cost.amortised


def changed_rows(query: Query) -> Mapping[str, Fraction]:
    """How many rows of a query's result change with one row of each relation, as an exponent of N.

    >>> from ivme.query.model import table
    >>> from ivme.query.rule import parse_rule
    >>> tables = [table("O", ["customer"]), table("C", ["id", "city"], primary_key="id")]
    >>> {name: str(rows) for name, rows in changed_rows(parse_rule("Q(K, G) = O(K), C(K, G)", tables)).items()}
    {'O': '0', 'C': '0'}
    >>> {name: str(rows) for name, rows in changed_rows(parse_rule("Q(A, C) = R(A, B), S(B, C)")).items()}
    {'R': '1', 'S': '1'}
    """
    dependencies = dependencies_of(query)
    named = [*zip(labels_of(query), query.atoms, strict=True)]
    wide = Hypergraph(tuple(Edge(label, dependencies.closure(atom.variables)) for label, atom in named))
    constants = dependencies.closure(())
    found: dict[str, Fraction] = {}
    for label, atom in named:
        open_variables = frozenset(query.free) - wide.edge(label).variables - constants
        rows = edge_cover_number(wide, open_variables)
        found[atom.relation] = max(found.get(atom.relation, Fraction(0)), rows)
    return found
