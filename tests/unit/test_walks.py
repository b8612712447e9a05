"""Each pass of the compiler runs once for a view, and the way through the code stays short (benchmarks/walks.py)."""

from __future__ import annotations

import pytest

from benchmarks.walks import VIEW, tables, walk
from ivme import planning
from ivme.compile import PASSES, Request, compile_view
from ivme.plan.assemble.assemble import Assembly
from ivme.plan.strategy.strategies import plan_with
from ivme.query.typed import typed
from ivme.structure.classify import classify
from ivme.structure.fracture import fracture

TREE = "SELECT R.a, R.b, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a, R.b"


@pytest.mark.parametrize("query", [VIEW, TREE])
def test_each_pass_runs_once_for_a_view(query: str) -> None:
    database = tables()
    taken = walk(lambda: database.create_view("v", query))
    assert dict.fromkeys(PASSES, 1) == {each: taken.times(each) for each in PASSES}
    assert [1, 1, 1] == [taken.times(each) for each in (typed, classify, planning.plan_query)]


@pytest.mark.parametrize(("query", "plans", "induced"), [(TREE, 1, 0), (VIEW, 2, 4)])
def test_each_compared_plan_is_assembled_once_and_what_is_installed_once(query: str, plans: int, induced: int) -> None:
    """Of VIEW a view tree and heavy and light parts are compared. The latter are found by the fractures of the queries
    that the two variables induce, for the keys and again for the trees, which are other queries than the view."""
    database = tables()
    taken = walk(lambda: database.create_view("v", query))
    assert (plans, plans + 1) == (taken.times(plan_with), taken.times(Assembly.__init__))
    assert 1 + induced == taken.times(fracture)


def test_an_explanation_takes_the_same_passes_as_a_view() -> None:
    database = tables()
    taken = walk(lambda: compile_view(Request(VIEW, database.definitions.relations(), {})))
    assert dict.fromkeys(PASSES, 1) == {each: taken.times(each) for each in PASSES}
    assert 1 == taken.times(typed)
