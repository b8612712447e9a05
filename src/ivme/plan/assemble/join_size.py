"""How large joins can get: what the exponents of steps and maps are computed from.

A join is bounded by the edge cover of its variables, where an edge covers all that it determines by the dependencies of
the edges that are joined, and by the degrees of heavy and light parts (plan.order.degree). A change fixes the variables
of its row, and all that they determine. Exponents take more time to find than everything else of a program; callers
that only run it leave them out, and they are 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ivme.plan.ir import program as ir
from ivme.plan.order.degree import Epsilons, Limit, degree_bound, degree_curve, limits_of
from ivme.structure.dependencies import Rule, closure
from ivme.structure.hypergraph import Edge, Hypergraph
from ivme.structure.width import EdgeCovers

_Edges = frozenset[Edge]


class JoinSizes:
    """Exponents of joins of edges; `epsilons` are those of the partitions. `rules`, and the labels of the atoms that
    indicators are `projected` from, are added as edges turn up."""

    def __init__(self, sources: Mapping[str, ir.Source], epsilons: Epsilons, *, exponents: bool) -> None:
        self._sources = sources
        self._epsilons = epsilons
        self._exponents = exponents
        self.rules: dict[Edge, tuple[Rule, ...]] = {}
        self.projected: dict[Edge, str] = {}
        self._covers: dict[_Edges, EdgeCovers] = {}
        self._wide: dict[_Edges, _Edges] = {}
        self._sizes: dict[tuple[_Edges, frozenset[str]], tuple[Fraction, frozenset[Limit]]] = {}

    def determined(self, edges: _Edges, variables: frozenset[str]) -> frozenset[str]:
        """What some variables determine in the join of these edges."""
        if not self.rules:
            return variables
        return closure(variables, [rule for edge in edges for rule in self.rules.get(edge, ())])

    def exponent(
        self, edges: _Edges, variables: Iterable[str], fixed: Iterable[str] = (), epsilons: Epsilons | None = None
    ) -> Fraction:
        """What the variables that are not fixed add to the size of a join. `epsilons` takes the place of the
        partitions' own."""
        if not self._exponents:
            return Fraction(0)
        known = self.determined(edges, frozenset(fixed))
        open_variables = frozenset(variables) - known
        cover, limits = self._size(edges, open_variables)
        if not limits:
            return cover
        return min(cover, degree_bound(limits, known, open_variables, self._epsilons if epsilons is None else epsilons))

    def work(
        self, before: _Edges, nodes: Iterable[_Edges], schema: tuple[str, ...], fixed: frozenset[str], *, grows: bool
    ) -> Fraction:
        """The exponent of a step that joins a delta over the edges `before` with nodes.

        If the step brings new variables, it goes through the smallest of the nodes for each row. So it costs no more
        than the join with any one of them alone, and no more than a worst-case optimal join of all of them, of which no
        dependency is needed.
        """
        parts = [*nodes]
        after = before.union(*parts)
        if not self._exponents or not self.rules or not any(map(self.rules.get, after)):
            return self.exponent(after, schema, fixed)
        if not grows:
            return self.exponent(after, schema, fixed)
        plain = self._cover(after, frozenset(schema) - fixed)
        return min([plain, *(self.exponent(before | part, schema, fixed) for part in parts)])

    def exponents(
        self, edges: _Edges, variables: frozenset[str], fixed: frozenset[str], parts: int
    ) -> list[int | Fraction]:
        """`exponent` for one ε = 0, 1/parts, ..., 1 of all partitions, in units of 1/parts."""
        known = self.determined(edges, fixed)
        open_variables = variables - known
        cover, limits = self._size(edges, open_variables)
        most = cover * parts
        found: list[int | Fraction] = [most.numerator if most.denominator == 1 else most] * (parts + 1)
        if not limits:
            return found
        return list(map(min, found, degree_curve(limits, known, open_variables, parts)))

    def _size(self, edges: _Edges, variables: frozenset[str]) -> tuple[Fraction, frozenset[Limit]]:
        """What bounds the join of the edges on some variables: its edge cover, and the limits of parts."""
        found = self._sizes.get((edges, variables))
        if found is None:
            cover = self._cover(self._closed(edges), variables - self.determined(edges, frozenset()))
            found = self._sizes[edges, variables] = cover, self._limits(edges)
        return found

    def _closed(self, edges: _Edges) -> _Edges:
        """The edges, each with all that it determines in their join."""
        if not self.rules or not any(map(self.rules.get, edges)):
            return edges
        found = self._wide.get(edges)
        if found is None:
            closed = (Edge(edge.label, self.determined(edges, edge.variables)) for edge in edges)
            found = self._wide[edges] = frozenset(closed)
        return found

    def _limits(self, edges: _Edges) -> frozenset[Limit]:
        """The limits of the edges, if one of them is a part; under other names for its variables an edge keeps only the
        size of its relation. A projection of a part has its limits on the keys that it shows."""
        found = [(edge, self._sources.get(self.projected.get(edge, edge.label))) for edge in edges]
        if not any(source.part for _, source in found if source):
            return frozenset()
        parts = [(edge.variables, self._sides(edge, source)) for edge, source in found]
        return frozenset([limit for variables, part in parts for limit in limits_of(variables, part)])

    def _sides(self, edge: Edge, source: ir.Source | None) -> tuple[ir.Side, ...]:
        if source is None or (edge not in self.projected and edge.variables != frozenset(source.schema)):
            return ()
        return tuple([side for side in source.part if edge.variables.issuperset(side.key)])

    def _cover(self, edges: _Edges, variables: Iterable[str]) -> Fraction:
        if edges not in self._covers:
            ordered = sorted(edges, key=lambda edge: (edge.label, sorted(edge.variables)))
            self._covers[edges] = EdgeCovers(Hypergraph(tuple(ordered)))
        covers = self._covers[edges]
        return covers.number(covers.mask(variables))
