"""Groups of views that share maps."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.engine.codes.domains import Domains
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime.shared_views import SharedViews
from ivme.engine.runtime.view_readers import point, point_reader
from ivme.plan.assemble.assembled import assemble_triggers
from ivme.plan.strategy.strategies import plan_with
from ivme.query.inference import variable_types
from ivme.query.model import table
from ivme.query.sql import parse_sql

TABLES = (table("R", {"a": "int", "b": "int"}), table("S", {"a": "int", "b": "string"}))


class Counted:
    """A group on the plain-Python backend, with what is asked of it."""

    def __init__(self) -> None:
        self.backend = PureBackend()
        self.group = SharedViews("g0", (), self.backend, Domains(), ())

    def install(self, **texts: str) -> frozenset[str]:
        queries = {name: parse_sql(text, TABLES) for name, text in texts.items()}
        plans = {name: plan_with("view-tree", query) for name, query in queries.items()}
        types = {name: variable_types(query) for name, query in queries.items()}
        return self.group.install({name: plan.blueprint for name, plan in plans.items()}, types)

    @property
    def maps(self) -> set[str]:
        return set(self.backend.kernel.maps)


OVER_ONE_TABLE = {name: f"SELECT a FROM R WHERE b > {n}" for n, name in enumerate("vwx")}
JOIN = "SELECT R.a, S.b FROM R JOIN S ON R.a = S.a"


def test_equal_views_are_stored_once_and_stay_while_one_needs_them() -> None:
    counted = Counted()
    assert counted.install(v=JOIN) == frozenset()
    alone = counted.maps
    assert alone
    assert counted.install(v=JOIN, w=JOIN.replace("R.a, S.b", "R.a AS x, S.b AS y")) == alone
    assert counted.maps == alone
    assert set(counted.group.maps_of("v")) == set(counted.group.maps_of("w"))
    counted.install(w=JOIN)
    assert counted.maps == alone
    counted.install()
    assert counted.maps == set()
    assert not counted.group.reads("R")


def test_an_installation_that_failed_is_put_back_by_the_one_before(monkeypatch: Any) -> None:
    counted = Counted()
    counted.install(v="SELECT a FROM R")
    before = counted.maps

    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(counted.backend, "set_reader", fail)
        with pytest.raises(MemoryError):
            counted.install(v="SELECT a FROM R", w=JOIN)
    counted.install(v="SELECT a FROM R")
    assert counted.maps == before
    assert (counted.group.reads("R"), counted.group.reads("S")) == (True, False)


def test_columns_of_one_name_and_different_types_are_ordered_each_by_its_own() -> None:
    counted = Counted()
    counted.install(v="SELECT a, MAX(b) AS h FROM R GROUP BY a", w="SELECT a, MAX(b) AS h FROM S GROUP BY a")
    ordered = {name: stored._sort_keys for name, stored in counted.backend.kernel.maps.items()}
    numbers = [keys for name, keys in ordered.items() if name.startswith("g0.R")]
    strings = [keys for name, keys in ordered.items() if name.startswith("g0.S")]
    assert numbers
    assert not any(numbers)
    assert any(strings)


def test_the_reader_of_a_point_is_given_the_outputs() -> None:
    counted = Counted()
    counted.install(v=JOIN)
    enumeration = counted.group.enumerations["v"]
    given = point(enumeration)
    assert [variable for variable, _ in given.inputs] == list(enumeration.outputs)
    assert given.outputs == ()
    assert given.factors == enumeration.factors
    assert point_reader("v") != "v"


def test_a_trigger_that_views_share_is_assembled_when_it_is_needed_and_once(monkeypatch: Any) -> None:
    counted = Counted()
    assembled: list[list[str]] = []

    def watched(group: str, maps: Any, views: Any, relations: Any) -> Any:
        assembled.append([*views])
        return assemble_triggers(group, maps, views, relations)

    monkeypatch.setattr("ivme.plan.assemble.assembled.assemble_triggers", watched)
    plans = {name: plan_with("view-tree", parse_sql(text, TABLES)) for name, text in OVER_ONE_TABLE.items()}
    for number in range(1, len(plans) + 1):
        chosen = dict(list(plans.items())[:number])
        counted.group.install({name: plan.blueprint for name, plan in chosen.items()}, {name: {} for name in chosen})
    assert [] == assembled
    assert "g0 on R" not in counted.backend._triggers
    feed = counted.group.feed("R")
    assert [["v", "w", "x"]] == assembled
    assert feed is counted.group.feed("R")
    assert "g0 on R" in counted.backend._triggers


def test_a_trigger_that_is_interrupted_while_it_is_assembled_is_assembled_again(monkeypatch: Any) -> None:
    counted = Counted()
    counted.install(**OVER_ONE_TABLE)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(counted.backend, "set_trigger", fail)
        with pytest.raises(KeyboardInterrupt):
            counted.group.feed("R")
    assert counted.group.reads("R")
    assert counted.group.feed("R").columns
    assert "g0 on R" in counted.backend._triggers
