"""The worked examples of source 004, row by row."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from ivme.closure.duckdb_executor import DuckDbExecutor
from ivme.closure.program_text import Statement, read_program
from ivme.closure.systems import acyclic_closure, digraph_closure, sql, undirected_closure
from ivme.errors import DataError

Row = tuple[object, ...]


def pairs(text: str) -> list[Row]:
    """`ab cd` as pairs."""
    return sorted(tuple(word) for word in text.split())


def through(text: str) -> list[Row]:
    """The source's shorthand: `a:abc:c` are the tuples (a, a, c), (a, b, c) and (a, c, c), and their mirror images."""
    found = [(a, v, b) for a, nodes, b in (word.split(":") for word in text.split()) for v in nodes]
    return sorted(found + [(b, v, a) for a, v, b in found])


def both(text: str) -> list[Row]:
    return sorted(pairs(text) + [row[::-1] for row in pairs(text)])


@pytest.mark.parametrize("printed", [False, True])
def test_section_2_the_deletion_of_ab_from_figure_2(printed: bool) -> None:
    executor = DuckDbExecutor(acyclic_closure("string", printed=printed))
    for edge in pairs("0c ca cb ab b1"):
        executor.insert("edge", edge)
    assert pairs("0a 0b 0c 01 ab a1 ca cb c1 b1") == executor.answer()
    executor.delete("edge", ("a", "b"))
    assert pairs("0b 01 ab a1 cb c1") == executor.rows("suspect")
    assert pairs("0a 0c ca cb b1") == executor.rows("trusty")
    assert pairs("0a 0b 0c 01 ca cb c1 b1") == executor.answer()


def test_an_edge_that_closes_a_cycle_is_refused_and_the_cycle_named() -> None:
    executor = DuckDbExecutor(acyclic_closure("string"))
    executor.insert_many("edge", pairs("ab bc"))
    before = executor.answer()
    with pytest.raises(DataError, match=r"the edge \('c', 'a'\) would close the cycle 'c' -> 'a' -> 'b' -> 'c'"):
        executor.insert("edge", ("c", "a"))
    with pytest.raises(DataError, match="would close the cycle 'd' -> 'd'"):
        executor.insert("edge", ("d", "d"))
    with pytest.raises(DataError, match="would close the cycle"):
        executor.insert_many("edge", pairs("cd da"))
    assert (before, pairs("ab bc")) == (executor.answer(), executor.rows("edge"))


def example_graph(order: str) -> DuckDbExecutor:
    """The graph that section 3 starts from, with its forest and its order of the nodes."""
    executor = DuckDbExecutor(undirected_closure("string", order=order))
    for edge in pairs("ab cd ce de"):
        executor.insert("edge", edge)
    executor.delete("edge", ("c", "d"))
    executor.insert("edge", ("c", "d"))
    return executor


@pytest.mark.parametrize("order", ["value", "lessthan"])
def test_section_3_insert_and_delete_row_by_row(order: str) -> None:
    executor = example_graph(order)
    assert both("ab ce de") == executor.rows("forest")
    start = through("a:ab:b c:ce:e d:de:e c:cde:d")
    assert start == executor.rows("through")

    executor.insert("edge", ("b", "c"))
    assert both("ab bc ce de") == executor.rows("forest")
    added = through("a:abc:c a:abce:e a:abced:d b:bc:c b:bce:e b:bced:d")
    assert sorted(start + added) == executor.rows("through")

    executor.insert("edge", ("a", "c"))
    executor.insert("edge", ("a", "e"))
    assert both("ab bc ce de") == executor.rows("forest")
    assert sorted(start + added) == executor.rows("through")

    executor.delete("edge", ("a", "b"))
    assert pairs("ac ae") == executor.rows("rep_all")
    assert pairs("ac") == executor.rows("rep")
    assert through("a:ab:b a:abc:c a:abce:e a:abced:d") == executor.rows("delta")
    assert both("ac bc ce de") == executor.rows("forest")
    after = "a:ac:c a:acb:b a:ace:e a:aced:d b:bc:c b:bce:e b:bced:d c:ce:e c:cde:d d:de:e"
    assert through(after) == executor.rows("through")
    nodes = "abcde"
    assert sorted((a, b) for a in nodes for b in nodes) == executor.answer()


def test_section_3_the_order_of_the_nodes_is_total_and_shrinks() -> None:
    executor = example_graph("lessthan")
    assert pairs("ab ac ad ae bc bd be cd ce de") == executor.rows("lessthan")
    executor.insert("edge", ("x", "y"))
    assert {("x", "y")} == {row for row in executor.rows("lessthan") if set(row) == {"x", "y"}}
    executor.delete("edge", ("x", "y"))
    assert pairs("ab ac ad ae bc bd be cd ce de") == executor.rows("lessthan")


def test_a_self_loop_is_a_cycle_and_no_edge_of_the_forest() -> None:
    executor = DuckDbExecutor(undirected_closure("string"))
    executor.insert("edge", ("a", "a"))
    assert ([("a", "a")], []) == (executor.answer(), executor.rows("forest"))
    executor.insert("edge", ("a", "b"))
    executor.delete("edge", ("a", "a"))
    assert pairs("aa ab ba bb") == executor.answer()
    executor.delete("edge", ("a", "b"))
    assert [] == executor.answer()


def test_an_undirected_edge_in_both_directions_goes_with_the_second() -> None:
    executor = DuckDbExecutor(undirected_closure("string"))
    executor.insert_many("edge", pairs("ab ba"))
    executor.delete("edge", ("a", "b"))
    assert pairs("aa ab ba bb") == executor.answer()
    executor.delete("edge", ("b", "a"))
    assert [] == executor.answer()


def paths(executor: DuckDbExecutor) -> dict[Any, tuple[Row, set[Row]]]:
    """By number: the ends, and the edges."""
    found: dict[Any, tuple[Row, set[Row]]] = {}
    for number, start, end, a, b in executor.rows("paths"):
        found.setdefault(number, ((start, end), set()))[1].add((a, b))
    return found


def test_section_4_the_six_paths_edge_by_edge() -> None:
    executor = DuckDbExecutor(digraph_closure("string"))
    executor.insert("edge", ("x", "a"))
    executor.insert("edge", ("b", "y"))
    assert {1: (("x", "a"), {("x", "a")}), 2: (("b", "y"), {("b", "y")})} == paths(executor)
    executor.insert("edge", ("a", "b"))
    expected = [
        (("x", "a"), {("x", "a")}),
        (("b", "y"), {("b", "y")}),
        (("x", "y"), {("x", "a"), ("a", "b"), ("b", "y")}),
        (("a", "b"), {("a", "b")}),
        (("a", "y"), {("a", "b"), ("b", "y")}),
        (("x", "b"), {("x", "a"), ("a", "b")}),
    ]
    found = paths(executor)
    assert [1, 2, 3, 4, 5, 6] == sorted(found, key=int)
    assert sorted(expected, key=lambda each: each[0]) == sorted(found.values(), key=lambda each: each[0])
    assert pairs("xa by xy ab ay xb") == executor.answer()


def test_section_4_paths_are_renumbered_when_gaps_grow() -> None:
    executor = DuckDbExecutor(digraph_closure("string"))
    for edge in pairs("xa by ab"):
        executor.insert("edge", edge)
    executor.delete("edge", ("x", "a"))
    executor.delete("edge", ("b", "y"))
    assert {1: (("a", "b"), {("a", "b")})} == paths(executor)


def test_cycles_and_self_loops_are_simple_paths_that_end_where_they_start() -> None:
    executor = DuckDbExecutor(digraph_closure("string"))
    for edge in pairs("ab ba bb"):
        executor.insert("edge", edge)
    assert pairs("aa ab ba bb") == executor.answer()
    executor.delete("edge", ("b", "a"))
    assert pairs("ab bb") == executor.answer()


def test_too_many_paths_are_refused_and_the_strategy_in_memory_named() -> None:
    executor = DuckDbExecutor(digraph_closure(most_path_rows=19))
    for edge in [(1, 2), (2, 3), (3, 4)]:
        executor.insert("edge", edge)
    before = executor.rows("paths")
    with pytest.raises(DataError, match="in-memory strategy `closure`"):
        executor.insert("edge", (4, 5))
    assert (before, [(1, 2), (2, 3), (3, 4)]) == (executor.rows("paths"), executor.rows("edge"))


def joins(statement: Statement) -> int:
    """As section 5 counts: k relations in a FROM list are k - 1 joins; EXISTS is one, if it is about the row."""
    text = f"SELECT * FROM {statement.target} WHERE {statement.body}" if statement.kind == "delete" else statement.body
    tree = sqlglot.parse_one(text, read="spark")
    outer = {table.alias_or_name for table in tree.find_all(exp.Table)}
    total = 0
    for select in tree.find_all(exp.Select):
        exists = select.find_ancestor(exp.Exists)
        if exists is None:
            total += len(select.args.get("joins") or ())
    for exists in tree.find_all(exp.Exists):
        mine = {table.alias_or_name for table in exists.find_all(exp.Table)}
        used = {column.table for column in exists.find_all(exp.Column) if column.table}
        total += bool(used - mine) and bool(used & outer)
    return total


@pytest.mark.parametrize(
    ("programs", "expected"),
    [
        (["acyclic_insert"], 2),
        (["acyclic_delete_printed"], 6),
        (["undirected_insert"], 8),
        (["undirected_delete", "undirected_least_by_value", "undirected_replace"], 14),
    ],
)
def test_section_5_the_number_of_joins(programs: list[str], expected: int) -> None:
    """The source counts DELETE FROM TC as a join, but leaves out DELETE FROM THROUGH."""
    counted = [each for each in read_program(sql(*programs)) if (each.kind, each.target) != ("delete", "through")]
    assert expected == sum(map(joins, counted))
