"""Variables that need not be tried on top of a set, since an order with another one there is as good.

The dimensions of a star are alike, and a search that tries each of them on top of every set would do the same work many
times. Two variables are *twins* if exchanging them, together with their satellites, leaves the query as it is. A
*satellite* shares edges with one other variable only, its host. An order with a satellite above its host is no better
than the one in which it is a leaf below the host: all views between lose a variable, and the view of the leaf is within
one edge.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations

from ivme.structure.width import bits_of

Twins = Mapping[int, tuple[int, ...]]
"""For each variable all bits that are moved when it changes places with a twin of a lower bit, for each of these."""

_MOST = 48
"""Variables among which twins are looked for."""


def twins_of(edges: Sequence[int], marks: Sequence[Hashable], kinds: Mapping[int, Hashable]) -> Twins:
    """The twins among the variables of some edges; `marks` tell edges apart, and `kinds` variables.

    Of very many variables none are found: each pair is compared in all edges, and no search gets through them anyway.
    """
    if len(kinds) > _MOST:
        return {}
    satellites: dict[int, list[int]] = {bit: [] for bit in kinds}
    for bit, host in hosts_of(edges, kinds).items():
        satellites[host].append(bit)
    for each in satellites.values():
        each.sort(key=lambda bit: (str(kinds[bit]), bit))
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for bit, kind in kinds.items():
        homes = Counter((mark, edge.bit_count()) for edge, mark in zip(edges, marks, strict=True) if edge & bit)
        alike[kind, frozenset(homes.items()), tuple(kinds[each] for each in satellites[bit])].append(bit)
    whole = Counter(zip(edges, marks, strict=True))
    found: dict[int, list[int]] = defaultdict(list)
    for one, other in (pair for group in alike.values() for pair in combinations(sorted(group), 2)):
        left, right = (one, *satellites[one]), (other, *satellites[other])
        names = dict([*zip(left, right, strict=True), *zip(right, left, strict=True)])
        moved = sum(names)
        if Counter((_renamed(edge, names, moved), mark) for edge, mark in zip(edges, marks, strict=True)) == whole:
            found[other].append(moved)
    return {bit: tuple(each) for bit, each in found.items()}


def hosts_of(edges: Sequence[int], variables: Iterable[int]) -> dict[int, int]:
    """The hosts of the satellites among some variables."""
    found = {}
    for bit in variables:
        others = {edge & ~bit for edge in edges if edge & bit}
        if len(others) == 1 and (host := others.pop()).bit_count() == 1:
            found[bit] = host
    return found


def _renamed(edge: int, names: Mapping[int, int], moved: int) -> int:
    return edge & ~moved | sum(names[bit] for bit in bits_of(edge & moved))
