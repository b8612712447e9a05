"""The relational ring: payloads that list the values of bound variables (source 003, chapter 9).

An element is a bag of records, each a set of variables with their values. Adding is bag union, multiplying joins every
record of one side with every record of the other. A view grouped by one variable can so carry the list of another in
its payload, without being keyed by it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from ivme.algebra.ring import Element, Ring
from ivme.errors import DataError

Record = tuple[tuple[str, Any], ...]
"""Variables with their values, sorted by variable."""


@dataclass(frozen=True, slots=True)
class Listing(Element):
    """Records with their multiplicities; none is zero."""

    records: frozenset[tuple[Record, int]]

    @property
    def count(self) -> int:
        return sum(multiplicity for _, multiplicity in self.records)

    def __add__(self, other: Listing) -> Listing:
        total = Counter(dict(self.records))
        for record, multiplicity in other.records:
            total[record] += multiplicity
        return _listing(total)

    def __mul__(self, other: Listing) -> Listing:
        total: Counter[Record] = Counter()
        for one, times in self.records:
            for two, multiplicity in other.records:
                total[tuple(sorted((*one, *two), key=lambda pair: pair[0]))] += times * multiplicity
        return _listing(total)

    def scaled(self, factor: int) -> Listing:
        return _listing(Counter({record: factor * multiplicity for record, multiplicity in self.records}))

    def rows(self) -> list[tuple[dict[str, Any], int]]:
        """The records as dictionaries, each with its multiplicity."""
        return [(dict(record), multiplicity) for record, multiplicity in sorted(self.records, key=repr)]


def _listing(total: Counter[Record]) -> Listing:
    return Listing(frozenset((record, multiplicity) for record, multiplicity in total.items() if multiplicity))


class Relational(Ring):
    """The ring of listings over the given variables of a query.

    >>> ring = Relational("X", "Y")
    >>> (ring.lift("X", 1) * ring.lift("Y", 2)).rows()
    [({'X': 1, 'Y': 2}, 1)]
    """

    def __init__(self, *variables: str) -> None:
        if not variables or len(set(variables)) < len(variables):
            raise DataError("a relational ring needs the names of its variables, each once")
        self._variables = variables

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def lift(self, variable: str, value: Any) -> Listing:
        return Listing(frozenset({(((variable, value),), 1)}))
