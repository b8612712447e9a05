"""HyperCube: how many parts each variable of a query is hashed into, so that the joins of p shards copy least.

A share for each variable, with a product of at most p, makes a grid of cells, and each assignment of all variables
lies in exactly one of them. A row of an atom goes to every cell that agrees with the hashes of its variables: to one,
if the atom has all the variables that are shared, and otherwise to as many as the other shares multiply to. A variable
that all atoms have gives plain hash partitioning, without copies (Afrati and Ullman, Optimizing joins in a map-reduce
environment, EDBT 2010). Nothing here knows rows: `routing` applies what is decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

Shares = tuple[tuple[str, int], ...]
"""The variables with a share above 1, and their shares."""

_MOST_HEAVY_VARIABLES = 3
"""Each variable with heavy values doubles the number of patterns."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An atom as routing sees it: its variables, and how many rows it has.

    `heavy` has, by variable, the fraction of the rows whose value is heavy.
    """

    variables: frozenset[str]
    rows: int
    heavy: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The assignments whose heavy values are at exactly these variables, and the grid of their own that they have."""

    heavy: frozenset[str]
    shares: Shares
    first: int

    @property
    def cells(self) -> int:
        return prod(share for _, share in self.shares)


def choose_shares(
    atoms: Sequence[tuple[frozenset[str], float]], allowed: Sequence[str], cells: int, most: Mapping[str, int]
) -> Shares:
    """The shares under which the fullest of up to `cells` cells has the fewest rows, given each atom's rows.

    For a grid with as many cells as there are shards, these are also the shares with the fewest copies. `allowed`
    are the variables that may be shared, the preferred ones first; `most` limits the shares of those with few
    values. Tries all grids over one variable for each set of atoms: variables of the same atoms are as good as each
    other. Exponential in the number of such sets, which is small.

    >>> path = [(frozenset("AB"), 10.0), (frozenset("BC"), 10.0)]
    >>> choose_shares(path, "ABC", 8, {})
    (('B', 8),)
    >>> triangle = [(frozenset("AB"), 10.0), (frozenset("BC"), 10.0), (frozenset("CA"), 10.0)]
    >>> choose_shares(triangle, "ABC", 8, {})
    (('A', 2), ('B', 2), ('C', 2))
    """
    variables = _representatives(atoms, allowed, most)
    limits = [max(1, min(cells, most.get(variable, cells))) for variable in variables]
    best: tuple[float, float, int, tuple[int, ...]] | None = None
    for shares in _grids(limits, cells):
        by_variable = dict(zip(variables, shares, strict=True))
        load = expected_load(atoms, by_variable)
        shared = sum(share > 1 for share in shares)
        key = (round(load, 6), round(load * prod(shares), 6), shared, tuple(-share for share in shares))
        best = key if best is None else min(best, key)
    assert best is not None
    return tuple((v, -share) for v, share in zip(variables, best[3], strict=True) if share < -1)


def expected_load(atoms: Sequence[tuple[frozenset[str], float]], shares: Mapping[str, int]) -> float:
    """How many rows a cell is expected to have."""
    return sum(rows / prod(shares.get(variable, 1) for variable in variables) for variables, rows in atoms)


def _representatives(
    atoms: Sequence[tuple[frozenset[str], float]], allowed: Sequence[str], most: Mapping[str, int]
) -> list[str]:
    """One variable for each set of atoms: the one with the most values, or the first."""
    best: dict[frozenset[int], str] = {}
    for variable in allowed:
        where = frozenset(i for i, (variables, _) in enumerate(atoms) if variable in variables)
        unlimited = 2**62
        if where and (where not in best or most.get(variable, unlimited) > most.get(best[where], unlimited)):
            best[where] = variable
    return list(best.values())


def _grids(limits: Sequence[int], cells: int) -> Iterator[tuple[int, ...]]:
    """All shares within the limits whose product is at most `cells`."""
    if not limits:
        yield ()
        return
    for share in range(1, min(limits[0], cells) + 1):
        for rest in _grids(limits[1:], cells // share):
            yield (share, *rest)


def choose_patterns(
    atoms: Sequence[Occurrence], allowed: Sequence[str], cells: int, most: Mapping[str, int]
) -> tuple[Pattern, ...]:
    """A grid for each pattern of heavy variables; one grid if there are no heavy values.

    A heavy value cannot be split by hashing it: the assignments that have one get a grid over the other variables
    ("skewed keys get their own shares"; Beame, Koutris and Suciu, Skew in parallel query processing, PODS 2014).
    Every assignment has one pattern, and one cell of its grid. The grids lie over the same shards; each starts where
    the one before it ended, so that those with fewer cells than shards do not meet in the first.

    >>> rows = [Occurrence(frozenset("AB"), 100, {"B": 0.9}), Occurrence(frozenset("BC"), 100, {"B": 0.0})]
    >>> [(sorted(pattern.heavy), pattern.shares) for pattern in choose_patterns(rows, "BAC", 4, {})]
    [([], (('B', 4),)), (['B'], (('A', 4),))]
    """
    skewed = _most_skewed(atoms, allowed)
    patterns: list[Pattern] = []
    first = 0
    for choice in product((False, True), repeat=len(skewed)):
        heavy = frozenset(variable for variable, chosen in zip(skewed, choice, strict=True) if chosen)
        sizes = [(atom.variables, _rows_in(atom, skewed, heavy)) for atom in atoms]
        shares = choose_shares(sizes, [v for v in allowed if v not in heavy], cells, most)
        patterns.append(Pattern(heavy, shares, first % cells))
        first += patterns[-1].cells
    return tuple(patterns)


def _most_skewed(atoms: Sequence[Occurrence], allowed: Sequence[str]) -> tuple[str, ...]:
    weight = {v: max((atom.heavy.get(v, 0.0) * atom.rows for atom in atoms), default=0.0) for v in allowed}
    found = [v for v in allowed if any(v in atom.heavy for atom in atoms)]
    return tuple(sorted(found, key=lambda v: -weight[v])[:_MOST_HEAVY_VARIABLES])


def _rows_in(atom: Occurrence, skewed: Sequence[str], heavy: frozenset[str]) -> float:
    """How many of an atom's rows a pattern has, as if heavy values came independently; one more may always come."""
    fractions = (
        atom.heavy.get(v, 0.0) if v in heavy else 1 - atom.heavy.get(v, 0.0) for v in skewed if v in atom.variables
    )
    return max(1.0, atom.rows * prod(fractions))
