"""The changes of a result, summed up, are the result; and views that share maps do not disturb one another."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.algebra.ring import count
from ivme.engine.reference.interpreter import PureKernel
from ivme.engine.reference.load import load
from ivme.errors import PlanError
from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from tests import oracle
from tests.example_counts import examples
from tests.random_queries import Update, contents, queries, updates


def follow(query: Query, strategies: tuple[str, str], steps: list[Update], batch: int) -> None:
    """Two views of one query in one catalog, the first of them followed."""
    try:
        plans = [plan_with(strategy, query) for strategy in strategies]
    except PlanError:
        assert "recursive" in strategies or "marks" in strategies
        return
    assembly = Assembly(catalog_of({"one": plans[0].followed, "two": plans[1].blueprint}))
    triggers = {relation: assembly.trigger(relation) for relation in assembly.relations}
    for view in ("one", "two"):
        assembly.enumeration(view)
    kernel = PureKernel()
    kernel.install(assembly.storage.maps())
    total: Counter[Any] = Counter()
    database: dict[str, Counter[Any]] = {table.name: Counter() for table in query.tables}
    for start in range(0, len(steps), batch):
        for relation, changes in contents(steps[start : start + batch]).items():
            emitted = kernel.execute(triggers[relation], partial(load, changes=changes, tally=kernel.tally))
            for schema, delta in emitted.get("one", []):
                assert query.input + query.output == schema
                for key, payload in delta.items():
                    total[key] += count(payload)
            database[relation].update(changes)
        present = {name: {row: w for row, w in rows.items() if w} for name, rows in database.items()}
        assert oracle.result(query, present) == {key: weight for key, weight in total.items() if weight}


STRATEGIES = ("view-tree", "factorised", "classical", "recursive", "marks")


@pytest.mark.parametrize("followed", STRATEGIES)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_changes_add_up_to_the_result(followed: str, data: Any) -> None:
    query = data.draw(queries(max_atoms=4, max_variables=5, constants=True))
    steps = data.draw(updates(query, domain=2, max_size=14, nulls=True))
    other = data.draw(st.sampled_from(STRATEGIES))
    follow(query, (followed, other), steps, data.draw(st.sampled_from([1, 4])))
