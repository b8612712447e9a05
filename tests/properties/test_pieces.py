"""Rows of requests off pieces: the pieces of random queries are a join tree, and their rows are those of the oracle."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import DataError
from ivme.plan.assemble.blueprint import PieceRule
from ivme.plan.assemble.elimination import Residuals
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.assemble.pieces import exponent_of, pieces_of
from ivme.plan.assemble.request_blueprint import _summed_leaves
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.structure.analysis import analyse
from ivme.structure.fracture import unbroken
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples
from tests.properties.test_request import run
from tests.random_queries import queries, updates

PATH = "Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)"


def pieces_for(query: Query) -> tuple[PieceRule, ...]:
    leaves = leaves_of(query, unbroken(analyse(query).plain.cqap))
    nodes, inputs = _summed_leaves(query, leaves, ()), frozenset(query.input)
    return pieces_of(Residuals(leaves), nodes, inputs, frozenset(query.output))


@settings(max_examples=examples(50), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(max_atoms=6, max_variables=7))
def test_pieces_are_a_join_tree_of_all_atoms(query: Query) -> None:
    assume(query.input and query.output)
    pieces = pieces_for(query)
    joined = [node for piece in pieces for stage in piece.stages for node in stage]
    assert len(joined) == len(set(joined)) == len(query.atoms), "each atom is joined in one piece"
    assert {variable for piece in pieces for variable in piece.schema} == set(query.output)
    assert pieces[0].parent == -1
    for number, piece in enumerate(pieces):
        assert number == 0 or 0 <= piece.parent < number
        assert not piece.follows or number
        earlier = {variable for other in pieces[:number] for variable in other.schema}
        above = set(pieces[piece.parent].schema) if number else set()
        assert earlier.intersection(piece.schema) <= above, "what was known before is in the parent"


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(query=queries(max_atoms=5, max_variables=6))
def test_the_steps_cost_what_was_compared(query: Query) -> None:
    """The exponent by which pieces are chosen is that of the program's steps, which is printed."""
    assume(query.input and query.output and all(table.columns for table in query.tables))
    plan = plan_with("request", query)
    (branch,) = plan.blueprint.branches
    if branch.pieces:
        residuals = Residuals(plan.blueprint.leaves)
        assert plan.delay.exponent.at(Fraction(0)) == exponent_of(residuals, branch.pieces, frozenset(query.input))


@st.composite
def listed_paths(draw: st.DrawFn) -> str:
    """Trees and cycles of tables over two variables, most variables free, one or two of them inputs."""
    number = draw(st.integers(3, 5))
    names = "ABCDEFG"[: number + 1]
    edges = [(draw(st.integers(0, i)), i + 1) for i in range(number)]
    if draw(st.booleans()):
        edges.append((draw(st.integers(0, number - 1)), number))
    inputs = draw(st.sets(st.sampled_from(names), min_size=1, max_size=2))
    bound = draw(st.sets(st.sampled_from(names), max_size=2)) - inputs
    outputs = [name for name in names if name not in inputs | bound]
    one_table = draw(st.booleans())
    atoms = [f"{'E' if one_table else f'R{i}'}({names[a]}, {names[b]})" for i, (a, b) in enumerate(edges)]
    return f"Q({', '.join(outputs) or '.'} | {', '.join(sorted(inputs))}) = {', '.join(atoms)}"


@pytest.mark.long
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_of_random_trees_are_those_of_the_oracle(data: Any) -> None:
    text = data.draw(listed_paths())
    query = parse_rule(text)
    assume(plan_with("request", query).blueprint.branches[0].pieces)
    steps = data.draw(updates(query, domain=2, max_size=24, max_weight=1))
    run(text, steps, data.draw(st.sampled_from([4, 24])))


def path_database(backend: str, values: range = range(4)) -> tuple[Database, dict[str, list[tuple[str, str]]]]:
    """A dense path of three tables over strings, with rows that come twice."""
    db = make_database(backend)
    source = random.Random(7)
    pairs = {"R": ("A", "B"), "S": ("B", "C"), "T": ("C", "D")}
    rows = {name: [(f"{x} {i}", f"{y} {j}") for i in values for j in values] for name, (x, y) in pairs.items()}
    for name, content in rows.items():
        db.create_table(name, {"x": "text", "y": "text"})
        content += source.sample(content, 3)
        db.insert(name, content)
    db.create_view("q", PATH, strategy="request")
    return db, rows


def joined(rows: dict[str, list[tuple[str, str]]], a: str) -> Counter[Any]:
    return Counter(
        (b, c, d) for (x, b) in rows["R"] if x == a for (y, c) in rows["S"] if y == b for (z, d) in rows["T"] if z == c
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_are_those_of_the_moment_when_reading_began(backend: str) -> None:
    """Writers delete everything in the middle, and the codes of its strings are given to others."""
    db, rows = path_database(backend, range(6))
    a = rows["R"][0][0]
    expected = joined(rows, a)
    reading = db.view("q")(A=a)
    found = Counter([next(reading) for _ in range(100)])
    assert db.view("q").count(A=a) == expected.total()
    for name in "RST":
        db.delete(name, rows[name])
    reclaim(db._runtime.catalog, now=True)
    db.insert("R", [(f"{i}", f"{i} new") for i in range(500)])
    found.update(reading)
    assert found == expected
    assert not [*db.view("q")(A=a)]


def test_both_engines_count_the_same_operations() -> None:
    counted = []
    for backend in BACKENDS:
        db, rows = path_database(backend)
        before = db._runtime.backend.operations
        assert len([*db.view("q").items(A=rows["R"][0][0])]) == 64
        counted.append(db._runtime.backend.operations - before - (backend == "native"))
    assert len(set(counted)) == 1, "but for the request itself, which the kernel loads as a row"


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_requests_at_once_are_answered_in_their_order(backend: str) -> None:
    db, rows = path_database(backend)
    keys = [rows["R"][0][0], "nobody", rows["R"][8][0], rows["R"][0][0]]
    table = db.view("q").request_many(A=keys).to_pylist()
    for key in keys:
        wanted = joined(rows, key)
        mine, table = table[: wanted.total()], table[wanted.total() :]
        assert Counter(tuple(row.values()) for row in mine) == Counter({(key, *row): n for row, n in wanted.items()})
    assert not table


def test_sums_of_floats_are_exact_while_others_ask() -> None:
    """Payloads of pieces hold long sums, and so do their products."""
    db, source = Database(), random.Random(3)
    text = "Q(C, D, F, SUM(X), SUM(Y) | A) = R(A, B), S(B, C, X), T(C, D), U(D, F, Y)"
    for name, columns in {"R": "xy", "S": "xyz", "T": "xy", "U": "xyz"}.items():
        db.create_table(name, {column: "float" if column == "z" else "int" for column in columns})
    values = (1e300, 1.0, -1e300, 1e-300, 0.1, 3e15)
    for name, width in {"R": 2, "S": 2, "T": 2, "U": 2}.items():
        rows = [[source.randrange(4) for _ in range(width)] for _ in range(40)]
        extra = [(source.choice(values),) for _ in rows] if name in "SU" else [()] * len(rows)
        db.insert(name, [(*row, *more) for row, more in zip(rows, extra, strict=True)])
    lazy, whole = db.create_view("lazy", text, strategy="request"), db.create_view("whole", text, strategy="view-tree")
    assert plan_with("request", parse_rule(text)).blueprint.branches[0].pieces
    readers = [lazy.items(A=a) for a in range(4)]
    found: list[list[Any]] = [[] for _ in readers]
    for _ in range(200):
        for mine, reader in zip(found, readers, strict=True):
            mine += [row for row in [next(reader, None)] if row is not None]
    assert [sorted(rows) for rows in found] == [sorted(whole.items(A=a)) for a in range(4)]
    assert any(found)


@pytest.mark.parametrize("weights", [(2**31, 2**31, 2**31), (2**40, 2**40, 1)])
def test_a_count_that_does_not_fit_is_an_error(weights: tuple[int, int, int]) -> None:
    """Of a row, and of a tuple of a piece; other requests go on."""
    db = Database()
    for name, weight in zip("RST", weights, strict=True):
        db.create_table(name, {"x": "int", "y": "int"})
        with db.batch() as batch:
            batch.apply(name, [(0, 0), (1, 1)], [weight, 1])
    view = db.create_view("q", PATH, strategy="request")
    for read in (lambda: [*view.items(A=0)], lambda: view.to_arrow(A=0), lambda: view.request_many(A=[1, 0])):
        with pytest.raises(DataError, match="does not fit 64 bits"):
            read()
    assert [*view.items(A=1)] == [((1, 1, 1), 1)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_that_are_being_read_outlive_the_plan(backend: str) -> None:
    """Somebody follows the view, for whom it is maintained, and then it is dropped."""
    db, rows = path_database(backend, range(6))
    a = rows["R"][0][0]
    expected = joined(rows, a)
    reading = db.view("q")(A=a)
    found = Counter([next(reading) for _ in range(70)])
    feed = db.view("q").changes()
    db.delete("R", rows["R"])
    assert sum(weight for change in feed for weight in change.values()) < 0
    found.update(next(reading) for _ in range(10))
    feed.close()
    db.drop_view("q")
    for name in "RST":
        db.drop_table(name)
    found.update(reading)
    assert found == expected
