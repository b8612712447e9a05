"""What the planner knows of a query's structure, found once and handed on: hypergraph, fracture, class.

MIN, MAX and COUNT DISTINCT need their variable below the groups and above the rest, and each of these variables has a
view tree of its own. So a query has one `Shape` with its output and input variables free, and one for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ivme.query.model import ORDER_AGGREGATES, Query
from ivme.site import Site
from ivme.structure.classify import Classification, classify
from ivme.structure.fracture import Fracture, fracture
from ivme.structure.hypergraph import Cqap, cqap_of


@dataclass(frozen=True, slots=True)
class Shape:
    """The structure of a query in which one variable is ordered, or none."""

    variable: str | None
    cqap: Cqap
    fracture: Fracture
    classification: Classification


@dataclass(frozen=True, slots=True)
class Analysis:
    """A query with its structure; `ordered` has a shape for each variable that is ordered and not free anyway.

    `rows` are those that the tables have now, where all of them have some; `site` is None where the query is only
    explained. `found` remembers what took long to find, so that strategies do not search twice.
    """

    query: Query
    plain: Shape
    ordered: tuple[Shape, ...]
    rows: Mapping[str, int] = field(default_factory=dict)
    site: Site | None = None
    found: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shapes that need a view tree."""
        return self.ordered or (self.plain,)

    @property
    def classification(self) -> Classification:
        """The class of the query: that of its hardest shape."""
        found = [shape.classification for shape in self.shapes]
        return max(found, key=lambda each: (not each.cqap0, not each.cqap1, not each.hierarchical_fracture))


def analyse(query: Query, rows: Mapping[str, int] | None = None, site: Site | None = None) -> Analysis:
    """The structure of a query; `rows` are those that tables have now.

    >>> from ivme.query.rule import parse_rule
    >>> found = analyse(parse_rule("Q(A, MIN(C)) = R(A, B), S(B, C)"))
    >>> [shape.variable for shape in found.shapes], found.plain.classification.query_class
    (['C'], 'CQAP1')
    """
    ordered = tuple(_shape(query, variable) for variable in ordered_variables(query))
    known = {table.name: (rows or {}).get(table.name, 0) for table in query.tables}
    return Analysis(query, _shape(query, None), ordered, known if all(known.values()) else {}, site)


def ordered_variables(query: Query) -> tuple[str, ...]:
    """The variables of ordered aggregates that are not free anyway."""
    variables = dict.fromkeys(a.variable for a in query.aggregates if a.function in ORDER_AGGREGATES)
    return tuple(variable for variable in variables if variable is not None and variable not in query.free)


def ordered_reads(query: Query, variable: str | None) -> tuple[str, ...]:
    """What ordered aggregates read of a variable's values, each once."""
    mine = [a for a in query.aggregates if a.function in ORDER_AGGREGATES and a.variable == variable]
    return tuple(dict.fromkeys(aggregate.reads for aggregate in mine))


def _shape(query: Query, variable: str | None) -> Shape:
    cqap = cqap_of(query, frozenset() if variable is None else frozenset({variable}))
    broken = fracture(cqap)
    return Shape(variable, cqap, broken, classify(cqap, broken))
