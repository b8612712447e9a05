"""The values of groups, for aggregates that need all of them: from a block's codes to values in order.

The view that holds them has a count for each value of a group. Where other tables multiply the rows of the group, they
do so for all values alike: the count of the whole row tells by how much.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ivme.engine.backend import Listed
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domain
from ivme.engine.codes.nested_values import python_values
from ivme.query.nested import in_order

Group = list[tuple[Any, int]]
"""Distinct values in ascending order, with their multiplicities; NULL left out."""


def listed_values(block: Listed, place: int, domain: Domain) -> list[Group]:
    """The values of each row's group; linear in their number, and sorted."""
    starts, words = block[3][place], block[3][-1]
    return [_group(words, start, count, domain) for start, count in zip(starts, block[1], strict=True)]


def _group(words: list[int], start: int, count: int, domain: Domain) -> Group:
    end = start + 1 + 2 * words[start]
    flat = words[start + 1 : end]
    times = count // sum(flat[1::2])
    codes, counts = _many(flat, domain) if len(flat) > _MANY else _few(flat, domain)
    group = list(zip(codes, (n * times for n in counts), strict=True))
    return group if domain.orders_by_code else sorted(group, key=lambda pair: in_order(pair[0]))


_MANY = 512
"""From so many words on, codes are sorted by numpy and decoded by Arrow, which is quicker then."""


def _few(flat: list[int], domain: Domain) -> tuple[list[Any], list[int]]:
    """Values that are not NULL, in the order of their codes, and counts."""
    known = sorted((code, n) for code, n in zip(flat[::2], flat[1::2], strict=True) if code != NULL_CODE)
    return domain.values([code for code, _ in known]), [n for _, n in known]


def _many(flat: list[int], domain: Domain) -> tuple[list[Any], list[int]]:
    pairs = np.array(flat, np.int64).reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != NULL_CODE]
    pairs = pairs[np.argsort(pairs[:, 0])]
    return python_values(domain.decode(np.ascontiguousarray(pairs[:, 0]))), pairs[:, 1].tolist()
