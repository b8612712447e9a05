"""The values of groups come in order, with the multiplicities of the whole row, few or many of them."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domains
from ivme.engine.runtime import group_values
from ivme.engine.runtime.group_values import listed_values
from ivme.query.types import parse_type

VALUES: dict[str, list[Any]] = {
    "int": [5, -3, 0, 2**62],
    "float": [1.5, -2.0, 0.0, 1e300],
    "decimal(38, 2)": [Decimal("1.25"), Decimal(-7), Decimal("9e30")],
    "string": ["b", "", "ü", "ab"],
}


@pytest.mark.parametrize("many", [0, 512])
@pytest.mark.parametrize("type_", VALUES)
def test_values_are_sorted_and_multiplied(monkeypatch: pytest.MonkeyPatch, type_: str, many: int) -> None:
    monkeypatch.setattr(group_values, "_MANY", many)
    domain = Domains().domain(parse_type(type_))
    choose, words, starts, counts, wanted = random.Random(1), list[int](), list[int](), list[int](), list[Any]()
    for times in (1, 3, 2):
        group = Counter(choose.choices(VALUES[type_], k=9))
        starts.append(len(words))
        codes = [(domain.encode_value(value), n) for value, n in group.items()]
        codes.append((NULL_CODE, 4))
        choose.shuffle(codes)
        words += [len(codes), *(word for code in codes for word in code)]
        counts.append(times * 13)
        wanted.append([(value, times * group[value]) for value in sorted(group)])
    assert wanted == listed_values(([], counts, [], [[], starts, words]), 1, domain)
