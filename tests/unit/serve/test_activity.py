"""The last two minutes in seconds, and the last hour in half minutes."""

from __future__ import annotations

import pytest

from ivme.serve.activity import SLOTS, Activity


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_second_is_told_when_it_is_over() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.changed({"t": 5}, 0.001)
    activity.changed({"t": 7}, 0.001)
    assert [0] * SLOTS == activity.to_dict()["rows"]
    clock.now += 1
    found = activity.to_dict()
    assert (1001, 12, 2) == (found["end"], found["rows"][-1], found["batches"][-1])
    assert [0] * (SLOTS - 1) == found["rows"][:-1]


def test_seconds_in_which_nothing_happened_have_no_times() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.asked(0.01)
    clock.now += 3
    found = activity.to_dict()
    assert ([1, 0, 0], [None, None]) == (found["requests"][-3:], found["request_median"][-2:])
    assert [None] * SLOTS == found["batch_p99"]


def test_quantiles_are_within_a_tenth() -> None:
    clock = Clock()
    activity = Activity(clock)
    for i in range(1, 1001):
        activity.changed({"t": 1}, i / 1000)
    clock.now += 1
    found = activity.to_dict()
    assert 0.5 == pytest.approx(found["batch_median"][-1], rel=0.1)
    assert 0.99 == pytest.approx(found["batch_p99"][-1], rel=0.1)


def test_what_is_older_than_two_minutes_is_forgotten() -> None:
    clock = Clock()
    activity = Activity(clock)
    for _ in range(3 * SLOTS):
        activity.changed({"t": 1}, 0.0)
        clock.now += 1
    assert [1] * SLOTS == activity.to_dict()["rows"]
    clock.now += SLOTS
    assert [0] * SLOTS == activity.to_dict()["rows"]


def test_a_clock_that_is_set_back_loses_nothing_and_fails_nowhere() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.changed({"t": 1}, 0.1)
    clock.now -= 10
    activity.changed({"t": 1}, 0.1)
    clock.now += 11
    assert 2 == sum(activity.to_dict()["rows"])


def test_an_hour_is_kept_in_half_minutes_and_no_more() -> None:
    clock = Clock()
    clock.now = 3000.0
    activity = Activity(clock)
    for _ in range(3 * 3600):
        activity.changed({"t": 2}, 0.001)
        activity.refused()
        clock.now += 1
    found = activity.to_dict("hour")
    assert (30, [60] * SLOTS, [30] * SLOTS) == (found["step"], found["rows"], found["refused"])
    assert all(len(kept) <= SLOTS + 1 for kept in activity._kept.values())
    clock.now += 1800
    assert [60] * (SLOTS // 2) + [0] * (SLOTS // 2) == activity.to_dict("hour")["rows"]


def test_memory_stays_until_it_is_measured_again() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.measured(100)
    clock.now += 3
    activity.measured(70)
    clock.now += 2
    assert [None, 100, 100, 100, 70, 70] == activity.to_dict()["memory"][-6:]
