"""The last two minutes, second by second."""

from __future__ import annotations

import pytest

from ivme.serve.activity import SECONDS, Activity


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_second_is_told_when_it_is_over() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.changed(5, 0.001)
    activity.changed(7, 0.001)
    assert [0] * SECONDS == activity.to_dict()["rows"]
    clock.now += 1
    found = activity.to_dict()
    assert (1001, 12, 2) == (found["end"], found["rows"][-1], found["batches"][-1])
    assert [0] * (SECONDS - 1) == found["rows"][:-1]


def test_seconds_in_which_nothing_happened_have_no_times() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.asked(0.01)
    clock.now += 3
    found = activity.to_dict()
    assert ([1, 0, 0], [None, None]) == (found["requests"][-3:], found["request_median"][-2:])
    assert [None] * SECONDS == found["batch_p99"]


def test_quantiles_are_within_a_tenth() -> None:
    clock = Clock()
    activity = Activity(clock)
    for i in range(1, 1001):
        activity.changed(1, i / 1000)
    clock.now += 1
    found = activity.to_dict()
    assert 0.5 == pytest.approx(found["batch_median"][-1], rel=0.1)
    assert 0.99 == pytest.approx(found["batch_p99"][-1], rel=0.1)


def test_what_is_older_than_two_minutes_is_forgotten() -> None:
    clock = Clock()
    activity = Activity(clock)
    for _ in range(3 * SECONDS):
        activity.changed(1, 0.0)
        clock.now += 1
    assert [1] * SECONDS == activity.to_dict()["rows"]
    assert len(activity._seconds) <= SECONDS + 1
    clock.now += SECONDS
    assert [0] * SECONDS == activity.to_dict()["rows"]


def test_a_clock_that_is_set_back_loses_nothing_and_fails_nowhere() -> None:
    clock = Clock()
    activity = Activity(clock)
    activity.changed(1, 0.1)
    clock.now -= 10
    activity.changed(1, 0.1)
    clock.now += 11
    assert 2 == sum(activity.to_dict()["rows"])
