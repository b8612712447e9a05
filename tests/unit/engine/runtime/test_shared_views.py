"""Groups of views that share maps."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.engine.codes.domains import Domains
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime.shared_views import SharedViews, point, point_reader
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
    assert counted.group.feeds == {}


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
    assert set(counted.group.feeds) == {"R"}


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
