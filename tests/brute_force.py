"""Widths by the definitions of source 003 alone: every order is tried, every cover found by solving equations.

Slow and simple on purpose, and without a line of `ivme.structure` but its dataclasses, so that the two can disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations, product

from ivme.structure.hypergraph import Cqap, Edge, Hypergraph

Parents = Mapping[str, str | None]


def cqap(text: str, ordered: str = "") -> Cqap:
    """The structure of `Q(A, B | C) = R(A, C), S(B)`; `ordered` lists variables of ordered aggregates."""
    head, body = text.split("=")
    match = re.fullmatch(r"\s*\w+\((.*)\|(.*)\)\s*", head)
    assert match is not None, text
    edges = tuple(Edge(name, _names(terms)) for name, terms in re.findall(r"(\w+)\(([^)]*)\)", body))
    return Cqap(Hypergraph(edges), _names(match[1]), _names(match[2]), _names(ordered))


def _names(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))


def cover_number(hypergraph: Hypergraph, variables: frozenset[str]) -> Fraction:
    """ρ* as the optimum of the dual linear program, which lies at a vertex: all vertices are tried."""
    return _packing(frozenset(edge.variables & variables for edge in hypergraph.edges) - {frozenset()})


@cache
def _packing(edges: frozenset[frozenset[str]]) -> Fraction:
    names = sorted(frozenset().union(*edges))
    at_most_one = [[Fraction(name in edge) for name in names] for edge in edges]
    not_negative = [[Fraction(-(name == other)) for other in names] for name in names]
    rows = [(row, Fraction(1)) for row in at_most_one] + [(row, Fraction(0)) for row in not_negative]
    best = Fraction(0)
    for tight in combinations(rows, len(names)):
        point = _solution([[*row, bound] for row, bound in tight])
        if point is not None and all(
            sum(a * x for a, x in zip(row, point, strict=True)) <= bound for row, bound in rows
        ):
            best = max(best, sum(point, Fraction(0)))
    return best


def _solution(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """The one solution of a square system of equations, or None."""
    for column in range(len(rows)):
        pivot = next((row for row in range(column, len(rows)) if rows[row][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(len(rows)):
            if row != column and rows[row][column]:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column], strict=True)]
    return [row[-1] for row in rows]


def path_to_root(parents: Parents, variable: str) -> list[str]:
    """The variable and its ancestors, or an endless climb cut short."""
    path = [variable]
    while (above := parents[path[-1]]) is not None and len(path) <= len(parents):
        path.append(above)
    return path


def order_widths(query: Cqap, parents: Parents) -> tuple[Fraction, Fraction] | None:
    """The dynamic and static width of an order, with indicators; None if it is no access-top order."""
    paths = {variable: path_to_root(parents, variable) for variable in parents}
    if any(len(path) > len(parents) for path in paths.values()):
        return None
    if any(query.tier(above) > query.tier(low) for low, path in paths.items() for above in path):
        return None
    edges = query.hypergraph.edges
    if not all(any(edge.variables <= set(path) for path in paths.values()) for edge in edges if edge.variables):
        return None
    subtrees = {top: {low for low, path in paths.items() if top in path} for top in parents}
    below = {top: [edge for edge in edges if edge.variables & subtrees[top]] for top in parents}
    bags = {
        top: frozenset(path).intersection(*[frozenset().union(*(e.variables for e in below[top]))]) | {top}
        for top, path in paths.items()
    }
    added = {top: _indicators(query, bags[top], below[top]) for top in parents}
    dynamic = [
        cover_number(query.hypergraph, bags[top] - schema)
        for top in parents
        for schema in [e.variables for e in below[top]] + [z for low in subtrees[top] for z in added[low]]
    ]
    static = [cover_number(query.hypergraph, bag) for bag in bags.values()]
    return max(dynamic, default=Fraction(0)), max(static, default=Fraction(0))


def _indicators(query: Cqap, bag: frozenset[str], below: list[Edge]) -> list[frozenset[str]]:
    """Figure 4.6: the projections of other atoms that GYO leaves in a cycle with the atoms below."""
    projections = dict.fromkeys(e.variables & bag for e in query.hypergraph.edges if e not in below)
    schemas = [e.variables for e in below] + [schema for schema in projections if schema]
    trimmed = dict(enumerate(schemas))
    changed = True
    while changed:
        changed = False
        for index, schema in [*trimmed.items()]:
            shared = frozenset(v for v in schema if any(v in s for other, s in trimmed.items() if other != index))
            if shared != schema:
                trimmed[index], changed = shared, True
        for index in sorted(trimmed, reverse=True):
            if any(trimmed[index] <= schema for other, schema in trimmed.items() if other != index):
                del trimmed[index]
                changed = True
                break
    cyclic = any(trimmed.values())
    return [schemas[index] for index in trimmed if index >= len(below) and cyclic]


def every_forest(variables: frozenset[str]) -> Iterator[Parents]:
    """Every map from variables to parents, forests and nonsense alike."""
    names = sorted(variables)
    for choice in product([None, *names], repeat=len(names)):
        yield dict(zip(names, choice, strict=True))


def every_elimination_order(query: Cqap) -> Iterator[Parents]:
    """For each ranking of the variables the order that puts the highest-ranked on top of each connected part."""
    for ranking in permutations(sorted(query.variables)):
        parents: dict[str, str | None] = {}
        _grow(query, list(ranking), None, parents)
        yield parents


def _grow(query: Cqap, left: list[str], above: str | None, parents: dict[str, str | None]) -> None:
    while left:
        part = {left[0]}
        while True:
            grown = part | {v for e in query.hypergraph.edges if e.variables & part for v in e.variables if v in left}
            if grown == part:
                break
            part = grown
        top, *rest = [variable for variable in left if variable in part]
        parents[top] = above
        _grow(query, rest, top, parents)
        left = [variable for variable in left if variable not in part]


def least_widths(query: Cqap, orders: Iterator[Parents]) -> tuple[Fraction, Fraction]:
    """The least dynamic, then static width over the access-top ones of the orders."""
    found = (order_widths(query, parents) for parents in orders)
    return min(widths for widths in found if widths is not None)
