"""Codes that are taken back: what is held keeps its code, and the rest is as if it had never been."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme import _kernel
from ivme._kernel import NULL, Kernel
from ivme.engine.codes.dictionary import FIRST_CODE, Dictionary
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import NativeDictionary
from ivme.query.types import parse_type

LONG = ["", "x" * 254, "y" * 255, "z" * 70_000]


def native(base: int = FIRST_CODE) -> NativeDictionary:
    return NativeDictionary(base, binary=False)


def sweep(strings: Dictionary, held: list[int]) -> None:
    if isinstance(strings, NativeDictionary):
        Kernel(1).sweep_codes([strings.native], [np.array(held, dtype=np.int64)])
    else:
        strings.sweep(set(held))


@pytest.mark.parametrize("make", [native, lambda: Dictionary(FIRST_CODE)], ids=["native", "pure"])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(LONG) | st.text(max_size=3), max_size=12), st.integers(0, 2**30)), max_size=8
    )
)
def test_what_is_held_keeps_its_code(make: Any, turns: list[tuple[list[str], int]]) -> None:
    strings, codes = make(), {}
    for added, choice in turns:
        codes.update({value: strings.add(value) for value in added if value.isprintable()})
        assert len(set(codes.values())) == len(codes) == len(strings)
        for value, code in codes.items():
            assert strings.find(value) == strings.add(value) == code
            assert strings.value(code) == value
        kept = {value: code for i, (value, code) in enumerate(sorted(codes.items())) if choice >> i & 1}
        sweep(strings, [*kept.values(), 7, NULL])
        for value in codes.keys() - kept.keys():
            assert strings.find(value) is None
        codes = kept
        assert len(strings) == len(codes)


@pytest.mark.parametrize("make", [native, lambda: Dictionary(FIRST_CODE)], ids=["native", "pure"])
def test_a_code_that_was_taken_back_has_no_value(make: Any) -> None:
    strings = make()
    first, second, third = map(strings.add, "abc")
    sweep(strings, [first, third])
    with pytest.raises(KeyError):
        strings.value(second)
    assert strings.add("d") == second
    assert strings.add("e") == third + 1


def test_the_least_codes_are_given_again_first() -> None:
    strings = native()
    codes = [strings.add(f"{number}") for number in range(100)]
    sweep(strings, codes[60:70])
    assert [strings.add(f"new {number}") for number in range(61)] == [*codes[:60], codes[70]]


def test_memory_falls_with_what_is_held() -> None:
    strings = native()
    codes = [strings.add(f"{number:>40}") for number in range(10_000)]
    full = strings.memory_bytes()
    sweep(strings, codes[:100])
    assert strings.memory_bytes() < full / 20
    assert [strings.value(code) for code in codes[:100]] == [f"{number:>40}" for number in range(100)]
    sweep(strings, [])
    assert strings.memory_bytes() == 0


@pytest.mark.parametrize("budget", range(12))
def test_a_sweep_without_memory_changes_nothing(budget: int) -> None:
    strings = native()
    codes = [strings.add(f"{number:>40}") for number in range(1000)]
    _kernel.limit_allocations(budget)
    try:
        sweep(strings, codes[:10])
    finally:
        _kernel.limit_allocations(-1)
    assert len(strings) in (10, 1000)
    assert [strings.value(code) for code in codes[:10]] == [f"{number:>40}" for number in range(10)]
    assert strings.find(f"{5:>40}") == codes[5]
    sweep(strings, codes[:10])
    assert len(strings) == 10


def test_entries_of_maps_hold_codes_whatever_their_column() -> None:
    strings, kernel = native(), Kernel(1)
    codes = [strings.add(value) for value in "abcdef"]
    number = kernel.add_map(2, [])
    trigger = kernel.add_trigger(1, [], [("load", 0, 0, [0, 1], [], [], [], []), ("add", 0, number, "")])
    kernel.run_one(trigger, (codes[1], 5), 1)
    kernel.run_one(trigger, (5, codes[4]), 1)
    kernel.run_one(trigger, (codes[2], codes[2]), 1)
    kernel.run_one(trigger, (codes[2], codes[2]), -1)
    kernel.sweep_codes([strings.native], [])
    assert [strings.find(value) is not None for value in "abcdef"] == [False, True, False, False, True, False]
    assert [strings.value(codes[1]), strings.value(codes[4])] == ["b", "e"]


def test_codes_are_not_taken_back_within_a_transaction() -> None:
    strings, kernel = native(), Kernel(1)
    kernel.begin()
    with pytest.raises(ValueError, match="within a transaction"):
        kernel.sweep_codes([strings.native], [])
    kernel.roll_back()


def test_dictionaries_are_swept_each_by_its_own_codes() -> None:
    strings, others = native(), native(FIRST_CODE + 2**32)
    mine, theirs = [strings.add(value) for value in "ab"], [others.add(value) for value in "ab"]
    Kernel(1).sweep_codes([strings.native, others.native], [np.array([mine[0], theirs[1]])])
    assert [strings.find("a"), strings.find("b"), others.find("a"), others.find("b")] == [
        mine[0],
        None,
        None,
        theirs[1],
    ]


def test_a_dictionary_with_gaps_is_dumped_and_loaded() -> None:
    strings = native()
    codes = [strings.add(f"{number}") for number in range(10)]
    sweep(strings, codes[2:9:3])
    dumped = strings.dump()
    assert dumped.to_pylist() == [None, None, b"2", None, None, b"5", None, None, b"8"]
    again = native()
    again.load(pa.concat_arrays([pa.array([b"-"], pa.large_binary()), dumped])[1:])
    assert [again.find(f"{number}") for number in (2, 5, 8)] == codes[2:9:3]
    assert len(again) == 3
    assert [again.add(f"new {number}") for number in range(7)] == [*codes[:2], *codes[3:5], *codes[6:8], codes[9]]
    with pytest.raises(ValueError, match="was not empty"):
        again.load(dumped)
    with pytest.raises(ValueError, match="twice"):
        native().load(pa.array([b"x", None, b"x"], pa.large_binary()))


@pytest.mark.parametrize("text", ["string", "binary", "decimal(19,0)", "decimal(38,38)", "decimal(38,0)"])
def test_the_codes_of_dictionaries_are_no_floats(text: str) -> None:
    domain: Any = Domains().domain(parse_type(text))
    first = np.array([domain.dictionary.base, domain.dictionary.base + 2**32 - 1], dtype=np.int64)
    assert np.isnan(first.view(np.float64)).all()
