"""Random queries over tables with random keys, under streams of inserts, deletes and updates that the keys allow.

The answers are the oracle's, on both backends; and a step that is said to take constant time never makes a second row
out of a changed one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.engine.reference.interpreter import Interpreter, PureKernel
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.ir.steps import Join
from ivme.plan.order.search import best_order
from ivme.plan.order.variable_order import is_access_top, order_of
from ivme.plan.order.widths import Widths, widths, with_indicators
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Column, Query, Table
from ivme.query.rule import parse_rule
from ivme.query.types import Type
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of
from tests.brute_force import every_elimination_order
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples
from tests.oracle import Row, result
from tests.random_queries import rule_texts

VALUES = st.integers(0, 2)


@dataclass(frozen=True)
class Change:
    """A row of a table that comes, and the rows that have to go for it; or rows that go."""

    table: str
    gone: tuple[Row, ...]
    come: tuple[Row, ...]


@st.composite
def keyed_queries(draw: st.DrawFn) -> Query:
    """Queries over tables of integers, most of them with a primary key, some with a second one."""
    text = draw(rule_texts(max_atoms=4, max_variables=5, aggregates=draw(st.booleans())))
    tables = []
    for found in parse_rule(text).tables:
        columns = tuple(Column(column.name, Type("int")) for column in found.columns)
        names = [column.name for column in columns]
        key = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)) if names else []
        keyed = bool(names) and draw(st.integers(0, 3)) > 0
        other = ((draw(st.sampled_from(names)),),) if keyed and draw(st.integers(0, 3)) == 0 else ()
        primary = tuple(key) if keyed else None
        tables.append(Table(found.name, columns, primary, unique=other, not_null=tuple(n for (n,) in other)))
    return parse_rule(text, tables)


@st.composite
def changes(draw: st.DrawFn, query: Query) -> list[Change]:
    """Changes after each of which all keys hold: a row takes the place of those that share a key with it."""
    present: dict[str, list[Row]] = {table.name: [] for table in query.tables}
    found = []
    for number in range(draw(st.integers(4, 16))):
        table = query.tables[number % len(query.tables)] if number < 6 else draw(st.sampled_from(query.tables))
        held = present[table.name]
        if held and draw(st.integers(0, 3)) == 0:
            change = Change(table.name, (draw(st.sampled_from(held)),), ())
        else:
            row = tuple(draw(VALUES) for _ in table.columns)
            change = Change(table.name, tuple(old for old in held if _clash(table, old, row)), (row,))
        for gone in change.gone:
            held.remove(gone)
        held.extend(change.come)
        found.append(change)
    return found


def _clash(table: Table, one: Row, other: Row) -> bool:
    keys = [*table.unique, *([] if table.primary_key is None else [table.primary_key])]
    places = [[table.column_names.index(name) for name in key] for key in keys]
    return any(all(one[place] == other[place] for place in key) for key in places)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("backend", BACKENDS)
@given(data=st.data())
def test_views_over_keys_show_what_the_oracle_says(backend: str, data: st.DataObject) -> None:
    query = data.draw(keyed_queries())
    with make_database(backend) as database:
        for table in query.tables:
            types = {column.name: "int" for column in table.columns}
            if not types:
                return
            database.create_table(
                table.name, types, primary_key=table.primary_key, unique=table.unique, not_null=table.not_null
            )
        view = database.create_view("q", str(query).replace(f"{query.name}(", "q(", 1))
        contents: dict[str, dict[Row, int]] = {table.name: {} for table in query.tables}
        for change in data.draw(changes(query)):
            with database.batch() as batch:
                batch.delete(change.table, list(change.gone))
                batch.insert(change.table, list(change.come))
            rows = contents[change.table]
            for row, weight in (*((row, -1) for row in change.gone), *((row, 1) for row in change.come)):
                rows[row] = rows.get(row, 0) + weight
        expected = result(query, {name: {r: w for r, w in rows.items() if w} for name, rows in contents.items()})
        view.verify()
        if not query.input and not query.aggregates:
            assert {tuple(row): n for row, n in view.items()} == {
                tuple(dict(zip(query.free, key, strict=True))[str(c.source)] for c in query.head): n
                for key, n in expected.items()
            }


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(keyed_queries())
def test_no_order_has_smaller_widths_under_the_keys(query: Query) -> None:
    """Static widths below 1, of views of constants, are not sought: tables take linear space anyway."""
    whole = fracture(cqap_of(query)).whole
    dependencies = leaves_of(query, fracture(cqap_of(query))).dependencies
    if len(whole.variables) > 5:
        return
    orders = (order_of(whole, parents) for parents in every_elimination_order(whole))
    found = [
        widths(with_indicators(order, whole), whole, frozenset(), dependencies)
        for order in orders
        if is_access_top(order, whole)
    ]
    least = min((Widths(each.dynamic, max(each.static, Fraction(1))) for each in found), default=None)
    if least is not None and whole.variables:
        chosen = best_order(whole, dependencies=dependencies).widths
        assert Widths(chosen.dynamic, max(chosen.static, Fraction(1))) == least


@settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))
@pytest.mark.parametrize("strategy", ["view-tree", "classical", "factorised"])
@given(data=st.data())
def test_a_step_of_constant_time_makes_one_row_of_one(strategy: str, data: st.DataObject) -> None:
    query = data.draw(keyed_queries())
    program = plan_with(strategy, query).program
    kernel = Interpreter(program)
    kernel.build({table.name: {} for table in query.tables})
    original: Any = PureKernel._delta

    def watched(self: Any, step: Any, *rest: Any) -> Any:
        made = original(self, step, *rest)
        assert not isinstance(step, Join) or step.exponent > 0 or len(made) <= 1, str(step)
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PureKernel, "_delta", watched)
        for change in data.draw(changes(query)):
            for row in change.gone:
                kernel.apply(change.table, {row: -1})
            for row in change.come:
                kernel.apply(change.table, {row: 1})


def test_the_watch_finds_a_bound_that_does_not_hold() -> None:
    """The same steps over tables that break their keys make several rows of one."""
    tables = [Table("R", (Column("a", Type("int")),)), _keyed()]
    program = plan_with("classical", parse_rule("Q(B) = R(A), S(A, B)", tables)).program
    kernel = Interpreter(program)
    kernel.build({"R": {}, "S": {(0, 1): 1, (0, 2): 1}})
    steps = [step for step in program.trigger("R").steps if isinstance(step, Join)]
    assert [step.exponent for step in steps] == [0]
    kernel.apply("R", {(0,): 1})
    assert len(list(kernel.items({}))) == 2


def _keyed() -> Table:
    made = Table("S", (Column("a", Type("int")), Column("b", Type("int"))))
    return replace(made, primary_key=("a",))
