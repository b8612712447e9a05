"""The table of query families in docs/guarantees.md: what it says of our bounds is what `explain` says."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from operator import gt
from pathlib import Path

import pytest

from ivme.errors import IvmeError
from ivme.plan.strategy.strategies import STRATEGIES
from tests.families import FAMILIES, Family

PAGE = Path(__file__).parents[1] / "docs" / "guarantees.md"
HEAD = """| family | query | best known: update, delay | source | ours | |
|---|---|---|---|---|---|
"""
TABLE = re.compile(r"(?<=<!-- families -->\n\n).*?(?=\n\n<!-- end of families -->)", re.DOTALL)


def test_the_page_has_a_row_for_each_family() -> None:
    """Run with IVME_UPDATE_GOLDEN=1 to write the table anew."""
    page, table = PAGE.read_text("utf-8"), HEAD + "\n".join(family.row for family in FAMILIES)
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        PAGE.write_text(TABLE.sub(lambda _: table, page), "utf-8")
    else:
        assert TABLE.findall(page) == [table]


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_bound_that_is_worse_than_the_best_known_is_marked(family: Family) -> None:
    assert family.is_reached() is not bool(family.lag)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_strategy_of_ours_beats_what_is_called_the_best_known(family: Family) -> None:
    for strategy in STRATEGIES:
        with suppress(IvmeError):
            found = family.exponents(strategy=strategy)
            assert found == family.known or any(map(gt, found, family.known)), strategy


def test_there_are_at_least_forty_families() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES) >= 40
