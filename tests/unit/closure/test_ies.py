"""Systems that users write: parity and equal cardinality (source 004, section 6), and what is refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.examples import equal_cardinality, parity
from ivme.closure.ies import make_ies, relation
from ivme.closure.program_text import read_program
from ivme.errors import DataError, IvmeError, ParseError, SchemaError, UnknownNameError


def test_the_parity_of_a_table() -> None:
    executor = DuckDbExecutor(parity({"x": "int"}))
    assert [] == executor.answer()
    executor.start()
    assert [(1,)] == executor.answer()
    for number in range(5):
        executor.insert("r", (number,))
        assert ([(1,)] if number % 2 else []) == executor.answer()
    executor.insert("r", (0,))
    executor.delete("r", (0,))
    assert [] == executor.answer()
    executor.delete("r", (0,))
    assert [(1,)] == executor.answer()


def test_two_tables_of_equal_cardinality() -> None:
    executor = DuckDbExecutor(equal_cardinality("int"))
    executor.start()
    chance = random.Random(3)
    held: dict[str, set[int]] = {"r": set(), "s": set()}
    for _ in range(40):
        table, value = chance.choice("rs"), chance.randrange(6)
        if value in held[table]:
            executor.delete(table, (value,))
            held[table].discard(value)
        else:
            executor.insert(table, (value,))
            held[table].add(value)
        assert ([(1,)] if len(held["r"]) == len(held["s"]) else []) == executor.answer()


def counter(
    on_insert: str | dict[str, str] = "INSERT INTO c SELECT :x",
    on_delete: str = "DELETE FROM c WHERE x = :x",
    **more: Any,
) -> Any:
    return make_ies("c", {"t": {"x": "int"}}, relation("c", {"x": "int"}), {}, on_insert, on_delete, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.delete("t", (1,)), "cannot delete"),
        (lambda e: e.insert("t", (None,)), "no NULL"),
        (lambda e: e.insert("t", (1, 2)), "a value for each of x"),
        (lambda e: e.insert("u", (1,)), "no input u"),
        (lambda e: e.insert_many("t", [(1,), (None,)]), "no NULL"),
    ],
)
def test_a_bad_change_is_refused_and_changes_nothing(change: Any, message: str) -> None:
    executor = DuckDbExecutor(counter())
    executor.insert("t", (7,))
    with pytest.raises((DataError, UnknownNameError), match=message):
        change(executor)
    assert ([(7,)], [(7,)]) == (executor.answer(), executor.rows("t"))
    executor.insert("t", (1,))
    assert [(1,), (7,)] == executor.answer()


def test_a_program_that_fails_is_rolled_back() -> None:
    executor = DuckDbExecutor(counter("INSERT INTO c SELECT :x; INSERT INTO c SELECT x FROM nowhere WHERE x = :x"))
    with pytest.raises(IvmeError, match="a program of IES c failed at insert c"):
        executor.insert("t", (1,))
    assert ([], []) == (executor.answer(), executor.rows("t"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: counter("INSERT INTO t SELECT :x"), "it may change the answer"),
        (lambda: counter("INSERT INTO c SELECT :y"), "uses :y"),
        (lambda: counter({"u": "DELETE FROM c"}), "for each of its inputs"),
        (lambda: relation("a b", {"x": "int"}), "plain name"),
        (
            lambda: make_ies("n", {"n": {"x": "int"}}, relation("n", {"x": "int"}), {}, "DELETE FROM n", ""),
            "two tables",
        ),
    ],
)
def test_a_system_that_contradicts_itself_is_refused(make: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()


@pytest.mark.parametrize("text", ["UPDATE c SET x = 1", "SELECT 1", "REPEAT; DELETE FROM c", "UNTIL EMPTY c"])
def test_a_statement_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read_program(text)


def test_parameters_are_marked_and_strings_and_casts_are_left_alone() -> None:
    (statement,) = read_program("INSERT INTO c SELECT :x::BIGINT, ':x; y' -- :z\n WHERE :x > 1")
    assert "SELECT $x::BIGINT, ':x; y' -- :z\n WHERE $x > 1" == statement.with_marks("$")
