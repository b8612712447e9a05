"""The values of groups, for aggregates that need all of them: from a block's codes to values in order.

The view that holds them has a count for each value of a group. Where other tables multiply the rows of the group, they
do so for all values alike: the count of the whole row tells by how much.
"""

from __future__ import annotations

from typing import Any

from ivme.engine.backend import Listed
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domain

Group = list[tuple[Any, int]]
"""Distinct values in ascending order, with their multiplicities; NULL left out."""


def listed_values(block: Listed, place: int, domain: Domain) -> list[Group]:
    """The values of each row's group; linear in their number, and sorted."""
    starts, words = block[3][place], block[3][-1]
    return [_group(words, start, count, domain) for start, count in zip(starts, block[1], strict=True)]


def _group(words: list[int], start: int, count: int, domain: Domain) -> Group:
    end = start + 1 + 2 * words[start]
    codes, counts = words[start + 1 : end : 2], words[start + 2 : end : 2]
    times = count // sum(counts)
    known = sorted(
        ((code, n) for code, n in zip(codes, counts, strict=True) if code != NULL_CODE),
        key=lambda each: domain.sort_key(each[0]),
    )
    values = domain.values([code for code, _ in known])
    return [(value, n * times) for value, (_, n) in zip(values, known, strict=True)]
