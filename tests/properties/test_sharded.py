"""Random views, batches and failures over shards, against the naive oracle. Shards are in this process; no Spark."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.errors import DataError
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.shards import coordinator
from ivme.shards.database import ShardedDatabase
from tests import oracle
from tests.example_counts import examples
from tests.random_queries import contents, rule_texts, updates
from tests.sharded_databases import local_database

QUICK = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))


def check_everything(data: Any, *, kills: bool) -> None:
    """One random view over random data, compared after each of some batches."""
    text = data.draw(
        rule_texts(max_atoms=3, max_variables=4, aggregates=data.draw(st.booleans()), constants=True).filter(
            lambda text: "()" not in text
        )
    )
    query = parse_rule(text)
    steps = data.draw(updates(query, domain=4, max_size=40, nulls=True))
    shards = data.draw(st.sampled_from([1, 2, 3, 4, 8]))
    with tempfile.TemporaryDirectory() as folder:
        database = local_database(Path(folder), shards)
        for table in query.tables:
            database.create_table(table.name, dict.fromkeys(table.column_names, "int"))
        apply(database, steps[: len(steps) // 2])
        view = database.create_view("V", text)
        follow = followed(database, query)
        before = dict(oracle.rows(query, contents(steps[: len(steps) // 2]))) if follow is not None else {}
        check_rows(view, query, contents(steps[: len(steps) // 2]))
        done = len(steps) // 2
        while done < len(steps):
            size = data.draw(st.sampled_from([1, 2, 5, 20]))
            apply(database, steps[done : done + size])
            done = min(done + size, len(steps))
            event = data.draw(st.sampled_from(["", "kill", "rebalance", "fail", "reopen"])) if kills else ""
            disturb(database, event, query)
            if event == "reopen":
                database = local_database(Path(folder), None)
                view, follow = database.view("V"), None
            check_rows(view, query, contents(steps[:done]))
        view.verify()
        if follow is not None:
            total = Counter(before)
            for change in follow:
                assert all(change.values())
                total.update(change)
            assert {row: n for row, n in total.items() if n} == dict(oracle.rows(query, contents(steps)))


def followed(database: ShardedDatabase, query: Query) -> Any:
    """A feed of the view's changes, if it has no parameters."""
    return None if query.input else database.view("V").changes()


def disturb(database: ShardedDatabase, event: str, query: Query) -> None:
    cluster: Any = database._cluster
    if event == "kill":
        cluster.kill(0)
    elif event == "rebalance":
        database.rebalance("V")
    elif event == "fail":
        table = query.tables[0]
        with pytest.raises(DataError, match="cannot delete"):
            apply(database, [(table.name, (1,) * len(table.columns), 1), (table.name, (77,) * len(table.columns), -1)])


def apply(database: ShardedDatabase, steps: list[Any]) -> None:
    with database.batch() as batch:
        for relation, row, weight in steps:
            batch.apply(relation, [row], [weight])


def check_rows(view: Any, query: Query, relations: dict[str, Any]) -> None:
    values = [0, 1, 3, 99, None]
    stored = {table.name: relations.get(table.name, {}) for table in query.tables}
    for given_values in islice(product(values, repeat=len(query.input)), 20):
        inputs = dict(zip(query.parameters, given_values, strict=True))
        expected = oracle.rows(query, stored, inputs)
        actual: Counter[Any] = Counter()
        for row, multiplicity in view.items(**inputs):
            actual[row] += multiplicity
        assert dict(actual) == pytest.approx(expected) or same(actual, expected), (query.text, inputs)
        assert view.count(**inputs) == sum(expected.values())


def same(actual: Any, expected: Any) -> bool:
    """Whether rows are equal but for the rounding of floats."""
    return {_rounded(row): n for row, n in actual.items()} == {_rounded(row): n for row, n in expected.items()}


def _rounded(row: Any) -> Any:
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_disks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@QUICK
@given(st.data())
def test_shards_agree_with_the_oracle(data: Any) -> None:
    check_everything(data, kills=False)


@QUICK
@given(st.data())
def test_shards_that_die_fail_and_move_agree_with_the_oracle(data: Any) -> None:
    check_everything(data, kills=True)


@QUICK
@given(st.data())
def test_shards_that_compact_at_every_step_agree_with_the_oracle(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinator, "LONGEST_LOG", data.draw(st.integers(1, 3)))
        check_everything(data, kills=True)


@pytest.mark.long
@THOROUGH
@given(st.data())
def test_shards_agree_with_the_oracle_in_many_more_cases(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coordinator, "LONGEST_LOG", data.draw(st.sampled_from([1, 2, 5, 200])))
        check_everything(data, kills=True)
