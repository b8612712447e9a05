"""The model of a step over many hosts, and `ivme bench shards`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from ivme.cli.app import app
from ivme.shards.step_costs import Constants, Linear, step_cost

KNOWN = Constants(route=1e-6, put=Linear(2e-3, 1e-7), prepare=Linear(4e-3, 1e-6), commit=1e-3, record=5e-3, call=1e-4)


def test_a_step_of_one_row_asks_one_shard_and_tells_all() -> None:
    for shards in (1, 10, 100):
        cost = step_cost(KNOWN, shards, 1)
        assert pytest.approx(2e-3, rel=1e-3) == cost.put
        assert pytest.approx(4e-3, rel=1e-3) == cost.prepare
        assert max(1e-3, shards * 1e-4) == pytest.approx(cost.commit)


def test_many_rows_are_prepared_by_all_shards_at_once_and_routed_by_the_driver_or_by_tasks() -> None:
    one, many = step_cost(KNOWN, 1, 10**6), step_cost(KNOWN, 100, 10**6)
    assert one.prepare > 50 * many.prepare
    assert one.route == many.route
    tasks = step_cost(KNOWN, 100, 10**6, from_tasks=True)
    assert pytest.approx(many.route / 100) == tasks.route
    assert tasks.serial < many.serial


def test_the_driver_spends_its_time_on_calls_when_hosts_are_many() -> None:
    cost = step_cost(KNOWN, 1000, 10**5)
    assert pytest.approx(0.1) == cost.commit
    assert cost.serial > 0.3


def test_copies_of_rows_are_prepared_too() -> None:
    assert step_cost(KNOWN, 10, 10**6, copies=3).prepare > 2.9 * step_cost(KNOWN, 10, 10**6).prepare


@pytest.mark.slow
def test_the_command_prints_what_it_measured_and_what_is_serial() -> None:
    found = CliRunner().invoke(app, ["bench", "shards", "--simulate", "7", "--rows", "1,100", "--repeat", "1"])
    assert 0 == found.exit_code, found.output
    assert "measured here, 2 shards" in found.output
    assert "serial at the driver: routing" in found.output
    assert "    7" in found.output
