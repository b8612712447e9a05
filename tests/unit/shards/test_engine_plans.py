"""Engines of one process share the plans of views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ivme import planning
from ivme.plan.strategy.choose import choose
from ivme.shards import engine_plans
from ivme.shards.database import ShardedDatabase
from tests.sharded_databases import LocalCluster

JOIN = "SELECT R.a, COUNT(*) AS n FROM R JOIN S ON R.a = S.a GROUP BY R.a"
OUTER = "SELECT R.a, R.b, S.a AS c FROM R LEFT JOIN S ON R.b = S.a"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of views and blocks that are planned."""
    engine_plans._plans.clear()
    names = list[str]()

    def noted(analysis: Any, *given: Any) -> Any:
        names.append(analysis.query.name)
        return choose(analysis, *given)

    monkeypatch.setattr(planning, "choose", noted)
    return names


def declared(cluster: LocalCluster) -> ShardedDatabase:
    db = ShardedDatabase(cluster)
    for table in ("R", "S"):
        db.create_table(table, {"a": "int", "b": "int"})
    return db


def built_again(cluster: LocalCluster, planned: list[str], change: Callable[[], Any]) -> list[str]:
    """What is planned when shards have lost what they had."""
    planned.clear()
    for shard in range(4):
        cluster.kill(shard)
    change()
    return list(planned)


@pytest.mark.parametrize("text", [JOIN, OUTER])
def test_a_view_is_planned_once_for_all_its_engines(tmp_path: Path, planned: list[str], text: str) -> None:
    cluster = LocalCluster(tmp_path, 4)
    db = declared(cluster)
    db.create_view("v", text)
    assert len(planned) <= 2 * len(set(planned))  # by the driver, to see that it can be, and by the first shard
    assert [] == built_again(cluster, planned, lambda: db.insert("R", [(number, number) for number in range(8)]))
    db.view("v").verify()


def test_options_and_more_rows_are_planned_for_anew(tmp_path: Path, planned: list[str]) -> None:
    cluster = LocalCluster(tmp_path, 4)
    db = declared(cluster)
    db.create_view("v", JOIN)
    db.drop_view("v")
    planned.clear()
    view = db.create_view("v", JOIN, strategy="classical")
    assert planned
    assert "classical" == view.explain().strategy
    db.insert("R", [(number, number) for number in range(4000)])
    db._coordinator.compact(lambda: db.step, now=True)  # from snapshots, views are built over rows
    assert "v" in built_again(cluster, planned, lambda: db.insert("S", [(1, 1)]))
    assert [(1, 1)] == list(view)
