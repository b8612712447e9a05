"""Random views, batches and reads on both backends, against the naive oracle after each step."""

from __future__ import annotations

import os
import re
from collections import Counter
from contextlib import suppress
from itertools import islice, product
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ivme.changes import Changes
from ivme.database import Database
from ivme.engine.runtime import batch, following, runtime, single_row
from ivme.errors import DataError, PlanError, SchemaError, UnknownNameError
from ivme.plan.strategy.strategies import STRATEGIES
from ivme.query.model import Query
from ivme.query.parse import as_asked, parse
from tests import oracle
from tests.databases import BACKENDS, make_database
from tests.random_queries import rule_texts

TABLES = {"A1": 1, "B1": 1, "A2": 2, "B2": 2, "C2": 2, "A3": 3, "B3": 3, "A4": 4}
VALUES: dict[str, list[Any]] = {"int": [0, 1, -2, None], "string": ["x", "", "żółw", None]}
UNKNOWN: dict[str, Any] = {"int": 99, "string": "nowhere"}
MOST_VIEWS = 5


REFUSING = ("recursive", "marks", "skew")
"""Strategies that do not take every query."""

FORCED = tuple(name for name in STRATEGIES if name != "request")
"""Those that a view may be given; `request` is for views with inputs, and is chosen for some of them."""


class DatabaseMachine(RuleBasedStateMachine):
    """The same steps on both backends. `contents` are the tables, `queries` the views with the oracle's eyes."""

    @initialize(
        kind=st.sampled_from(["int", "int", "string"]), few=st.sampled_from([0, 2, single_row.MOST_SINGLE_ROWS])
    )
    def start(self, kind: str, few: int) -> None:
        """With `few` also the ways of many rows are taken, which streams as short as these would never see."""
        self.kind = kind
        self._set_few(few)
        self.databases = [make_database(backend) for backend in BACKENDS]
        for table, arity in TABLES.items():
            for database in self.databases:
                database.create_table(table, {f"c{i}": kind for i in range(arity)})
        self.contents: dict[str, Counter[Any]] = {table: Counter() for table in TABLES}
        self.queries: dict[str, Query] = {}
        self.feeds: dict[str, list[tuple[Changes, Counter[Any]]]] = {}
        self.made = 0

    def teardown(self) -> None:
        self._set_few(single_row.MOST_SINGLE_ROWS)

    def _set_few(self, few: int) -> None:
        for module in (batch, following, runtime):
            vars(module)["MOST_SINGLE_ROWS"] = few

    # Views

    @precondition(lambda self: len(self.queries) < MOST_VIEWS)
    @rule(data=st.data(), aggregates=st.booleans(), strategy=st.sampled_from([None, None, "marks", *FORCED]))
    def create_view(self, data: Any, aggregates: bool, strategy: str | None) -> None:
        constants = self.kind == "int"
        text = data.draw(rule_texts(max_atoms=3, max_variables=4, aggregates=aggregates, constants=constants))
        if "()" in text:
            return
        text = self._over_our_relations(data, text)
        self.made += 1
        name = f"V{self.made}"
        semantics = data.draw(st.sampled_from(["bag", "set"]))
        query = as_asked(parse(text, self.databases[0].definitions.relations()), semantics)
        allowed = (SchemaError, PlanError) if self.kind == "string" or strategy in REFUSING else ()
        options = {"semantics": semantics} if strategy is None else {"semantics": semantics, "strategy": strategy}
        for database in self.databases:
            with suppress(*allowed):
                database.create_view(name, text, **options)
        made = [name in database.views for database in self.databases]
        assert len(set(made)) == 1
        if all(made):
            self.queries[name] = query

    def _over_our_relations(self, data: Any, text: str) -> str:
        """The rule over our tables and views, each relation by one of its arity."""
        arities = {name: inner.count(",") + 1 for name, inner in re.findall(r"(R\d+)\(([^)]*)\)", text)}
        chosen = {}
        for name, arity in arities.items():
            tables = [table for table, width in TABLES.items() if width == arity]
            views = [view for view, query in self.queries.items() if self._is_relation(query, arity)]
            chosen[name] = data.draw(st.sampled_from(tables + views))
        return re.sub(r"R\d+(?=\()", lambda match: chosen[match.group()], text)

    def _is_relation(self, query: Query, arity: int) -> bool:
        """Whether a view can stand for a table: no parameters, and columns of the tables' type."""
        sources = [column.source for column in query.head]
        plain = all(isinstance(s, str) or (self.kind == "int" and s.function != "avg") for s in sources)
        return not query.input and len(sources) == arity and plain

    @precondition(lambda self: bool(self.queries))
    @rule(data=st.data())
    def drop_view(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.queries)))
        needed = [view for view, query in self.queries.items() if name in {a.relation for a in query.atoms}]
        for database in self.databases:
            if needed:
                with pytest.raises(PlanError, match=needed[0]):
                    database.drop_view(name)
            else:
                database.drop_view(name)
        if not needed:
            del self.queries[name]
            self.feeds.pop(name, None)

    @precondition(lambda self: bool(self.queries))
    @rule(data=st.data())
    def follow(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.queries)))
        query = self.queries[name]
        for database in self.databases:
            if query.input and query.aggregates:
                with pytest.raises(PlanError, match="parameters and aggregates"):
                    database.view(name).changes()
            else:
                feed = database.view(name).changes()
                self.feeds.setdefault(name, []).append((feed, self._whole(query)))

    @precondition(lambda self: bool(self.feeds))
    @rule(data=st.data())
    def stop_following(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.feeds)))
        for feed, _ in self.feeds.pop(name):
            feed.close()

    # Changes

    def _row(self, data: Any, table: str) -> tuple[Any, ...]:
        values = st.sampled_from(VALUES[self.kind][:3] * 3 + [None])
        return tuple(data.draw(values) for _ in range(TABLES[table]))

    def _changes(self, data: Any, size: int, *, shuffled: bool = True) -> list[tuple[str, tuple[Any, ...], int]]:
        """Changes whose net weights are possible."""
        left = {table: Counter(stored) for table, stored in self.contents.items()}
        used = sorted({a.relation for q in self.queries.values() for a in q.atoms} & set(TABLES)) or sorted(TABLES)
        changes = []
        for _ in range(size):
            table = data.draw(st.sampled_from(used))
            present = sorted(left[table], key=repr)
            if present and data.draw(st.integers(0, 2)) == 0:
                row = data.draw(st.sampled_from(present))
                weight = -data.draw(st.integers(1, left[table][row]))
            else:
                row, weight = self._row(data, table), data.draw(st.integers(1, 2))
            left[table][row] += weight
            left[table] = +left[table]
            changes.append((table, row, weight))
        return data.draw(st.permutations(changes)) if shuffled and data.draw(st.booleans()) else changes

    def _apply(self, changes: list[tuple[str, tuple[Any, ...], int]], *, by_rows: bool = False) -> None:
        for database in self.databases:
            _apply_to(database, changes, by_rows=by_rows)
        for table, row, weight in changes:
            self.contents[table][row] += weight
        self.contents = {table: +stored for table, stored in self.contents.items()}

    @rule(data=st.data(), size=st.sampled_from([1, 1, 3, 8, 16]), by_rows=st.booleans())
    def batch(self, data: Any, size: int, by_rows: bool) -> None:
        self._apply(self._changes(data, size), by_rows=by_rows)

    @rule(data=st.data(), steps=st.integers(1, 4))
    def single_rows(self, data: Any, steps: int) -> None:
        for table, row, weight in self._changes(data, steps, shuffled=False):
            for database in self.databases:
                for _ in range(abs(weight)):
                    (database.insert if weight > 0 else database.delete)(table, [row])
            self.contents[table][row] += weight
            self.contents[table] = +self.contents[table]

    @rule(data=st.data())
    def insert_and_delete_again(self, data: Any) -> None:
        table = data.draw(st.sampled_from(sorted(TABLES)))
        rows = [self._row(data, table) for _ in range(3)]
        for database in self.databases:
            database.insert(table, rows)
            database.delete(table, rows)

    @rule(data=st.data(), bad=st.sampled_from(["absent", "type", "arity", "table"]), by_rows=st.booleans())
    def failing_batch(self, data: Any, bad: str, by_rows: bool) -> None:
        changes = self._changes(data, 4)
        absent = data.draw(st.sampled_from(sorted(TABLES)))
        row = (UNKNOWN[self.kind],) * TABLES[absent]
        last: tuple[str, Any, int] = {
            "absent": (absent, row, -1),
            "type": (absent, (1.5,) * len(row), 1),
            "arity": (absent, (*row, 1), 1),
            "table": ("nobody", row, 1),
        }[bad]
        for database in self.databases:
            with pytest.raises((DataError, UnknownNameError), match=last[0]):
                _apply_to(database, [*changes, last], by_rows=by_rows)

    @rule(data=st.data())
    def lenient_delete(self, data: Any) -> None:
        table = data.draw(st.sampled_from(sorted(TABLES)))
        rows = [self._row(data, table) for _ in range(3)]
        for database in self.databases:
            database.delete(table, rows, strict=False)
        self.contents[table] = self.contents[table] - Counter(rows)

    # Reads

    @invariant()
    def every_view_is_what_the_oracle_says(self) -> None:
        for name, query in getattr(self, "queries", {}).items():
            relations = self._relations()
            for inputs in self._requests(query):
                expected = oracle.rows(query, relations, inputs)
                for database in self.databases:
                    check_rows(database.view(name), query, inputs, expected)

    @invariant()
    def changes_summed_up_are_the_result(self) -> None:
        for name, feeds in getattr(self, "feeds", {}).items():
            expected = self._whole(self.queries[name])
            for feed, total in feeds:
                for change in feed:
                    assert change
                    assert all(change.values())
                    for row, weight in change.items():
                        total[row] += weight
                assert {row: n for row, n in total.items() if n} == expected

    @precondition(lambda self: bool(self.queries))
    @rule(data=st.data())
    def verify(self, data: Any) -> None:
        name = data.draw(st.sampled_from(sorted(self.queries)))
        for database in self.databases:
            database.view(name).verify()

    @rule()
    def empty_everything(self) -> None:
        """What is left after everything is deleted is what was there at first: nothing."""
        self._apply([(t, row, -n) for t, stored in self.contents.items() for row, n in stored.items()])
        for database in self.databases:
            for name in self.queries:
                view = database.view(name)
                list(islice(view(**dict.fromkeys(self.queries[name].parameters, VALUES[self.kind][0])), 1))
                sizes = view.stats()["maps"]
                over_views = any(atom.relation not in TABLES for atom in self.queries[name].atoms)
                assert over_views or not any(sizes.values()), (name, sizes)

    def _relations(self) -> dict[str, Any]:
        """The tables, and the views that can stand for tables, as the oracle computes them."""
        relations: dict[str, Any] = dict(self.contents)
        for name, query in self.queries.items():
            if not query.input:
                relations[name] = oracle.rows(query, relations)
        return relations

    def _whole(self, query: Query) -> Counter[Any]:
        """All rows of a view, with the values of its inputs in front."""
        if not query.input:
            return Counter(oracle.rows(query, self._relations()))
        rows: Counter[Any] = Counter()
        for key, multiplicity in oracle.result(query, self._relations()).items():
            values = dict(zip(query.input + query.output, key, strict=True))
            row = (*key[: len(query.input)], *(values[str(column.source)] for column in query.head))
            rows[row] += multiplicity
        return rows

    def _requests(self, query: Query) -> list[dict[str, Any]]:
        """Some values for the inputs: all the small ones, one that is nowhere, and NULL."""
        values = [*VALUES[self.kind], UNKNOWN[self.kind]]
        chosen = list(islice(product(values, repeat=len(query.input)), 0, 40, 1 if len(query.input) < 2 else 3))
        return [dict(zip(query.parameters, each, strict=True)) for each in chosen]


def _apply_to(database: Database, changes: list[tuple[str, Any, int]], *, by_rows: bool = False) -> None:
    """One batch of weighted rows, or of inserts and deletes, which may take the single-row path."""
    with database.batch() as opened:
        for table, row, weight in changes:
            if by_rows:
                (opened.insert if weight > 0 else opened.delete)(table, [row] * abs(weight))
            else:
                opened.apply(table, [row], [weight])


def check_rows(view: Any, query: Query, inputs: dict[str, Any], expected: dict[Any, int]) -> None:
    """The view's rows are the expected ones, each once, and it says so of each row that it is asked about."""
    hidden = set(query.output) - {column.source for column in query.head}
    actual: Counter[Any] = Counter()
    for row, multiplicity in view.items(**inputs):
        assert row not in actual or hidden, f"{row} is enumerated twice"
        actual[row] += multiplicity
    assert actual == expected, (str(query), inputs)
    assert view.count(**inputs) == sum(expected.values())
    for row in list(expected)[:3]:
        assert view.multiplicity(row, **inputs) == expected[row]
        other = tuple(None if value is not None else 0 for value in row)
        if not any(value == 0 for value in other if value is not None):
            assert view.multiplicity(other, **inputs) == expected.get(other, 0)
    if not inputs and query.head:
        assert all(row in view for row in list(expected)[:3])
        assert Counter(tuple(row.values()) for row in view.to_arrow().to_pylist()) == expected


TestDatabase = DatabaseMachine.TestCase
TestDatabase.settings = settings(
    max_examples=int(os.environ.get("IVME_MACHINE_EXAMPLES", "25")),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
