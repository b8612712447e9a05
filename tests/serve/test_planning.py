"""Requests that plan: one that has timed out leaves nothing behind, and holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from ivme import planning
from ivme.budget import limited, spend
from ivme.database import Database
from ivme.errors import CancelledError
from ivme.plan.strategy.choose import choose
from ivme.serve import explaining
from ivme.serve.settings import Settings
from tests.serve.running import flights, serving

VIEW = {"name": "made", "query": "SELECT no FROM flights"}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path) as db:
        yield flights(db)


class Endless:
    """A planner that goes on until it is cancelled; then it plans as ever."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()

    def __call__(self, *given: Any, **options: Any) -> Any:
        if self.ended.is_set():
            return choose(*given, **options)
        self.began.set()
        try:
            with limited(float("inf")):
                while True:
                    spend(1000)
        except CancelledError:
            self.ended.set()
            raise


def test_a_view_that_takes_too_long_to_plan_is_not_made_later(
    stored: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = Endless()
    monkeypatch.setattr(planning, "choose", planner)
    before = stored.views
    with serving(stored, Settings(seconds=0.5)) as address:
        answers: list[int] = []

        def ask() -> None:
            answers.append(httpx.post(f"{address}/views", json=VIEW, timeout=60).status_code)

        asking = threading.Thread(target=ask)
        asking.start()
        assert planner.began.wait(30)
        assert 200 == httpx.get(f"{address}/views/per_city", timeout=30).status_code
        asking.join()
        assert [504] == answers
        assert planner.ended.wait(30)
        assert before == stored.views
        assert 201 == httpx.post(f"{address}/views", json=VIEW, timeout=60).status_code
    stored.drop_view("made")
    stored.close()
    with Database(tmp_path) as db:
        assert before == db.views


def test_a_query_that_takes_too_long_to_explain_does_not_hold_up_the_next(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = Endless()
    monkeypatch.setattr(planning, "choose", planner)
    with serving(db, Settings(seconds=2)) as address:
        body = {"query": VIEW["query"]}
        assert 504 == httpx.post(f"{address}/explain", json=body, timeout=60).status_code
        assert 200 == httpx.post(f"{address}/explain", json=body, timeout=60).status_code


def test_a_view_that_took_effect_in_time_is_answered_for_however_late(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its time is over when it is claimed, and before it is there."""

    def late() -> None:
        threading.Event().wait(1)

    monkeypatch.setattr(db._runtime, "wait_durable", late)
    with serving(db, Settings(seconds=0.3)) as address:
        assert 201 == httpx.post(f"{address}/views", json=VIEW, timeout=60).status_code
    assert "made" in db.views


def test_the_explanation_of_a_view_is_made_once(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.get("/views/per_city/explain").content
    monkeypatch.setattr(explaining, "explained", None)
    assert first == client.get("/views/per_city/explain").content
