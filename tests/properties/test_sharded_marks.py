"""Strategy `marks` over shards: append-only and static tables, sets and templates, against the embedded database."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from ivme.shards.access import questions_for, read_requests
from ivme.shards.view import ShardedView
from tests.example_counts import examples
from tests.random_queries import rule_texts, updates
from tests.sharded_databases import local_database

QUICK = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
THOROUGH = settings(max_examples=800, deadline=None, suppress_health_check=list(HealthCheck))
KINDS = ("plain", "append_only", "static")


@pytest.fixture(autouse=True, scope="module")
def no_waiting_for_disks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


def possible(steps: list[Any], kinds: dict[str, str]) -> tuple[list[Any], list[Any]]:
    """The steps that tables of these kinds allow: those of the load, and those after it."""
    half = len(steps) // 2
    load = [step for step in steps[:half] if step[2] > 0 or kinds[step[0]] == "plain"]
    later = [s for s in steps[half:] if kinds[s[0]] == "plain" or (kinds[s[0]] == "append_only" and s[2] > 0)]
    return load, later


def apply(database: Any, steps: list[Any]) -> None:
    with database.batch() as batch:
        for relation, row, weight in steps:
            batch.apply(relation, [row], [weight])


def check_same(view: Any, expected: Any, query: Query) -> None:
    values = [0, 1, 2, 99]
    requests = list(islice(product(values, repeat=len(query.input)), 12))
    for given_values in requests:
        inputs = dict(zip(query.parameters, given_values, strict=True))
        found: Counter[Any] = Counter()
        for row, multiplicity in view.items(**inputs):
            assert row not in found, "a row of two shards comes once"
            found[row] = multiplicity
        assert dict(expected.items(**inputs)) == dict(found), (query.text, inputs)
    if query.input:
        columns = dict(zip(query.parameters, map(list, zip(*requests, strict=True)), strict=True))
        many = (each.request_many(**columns).to_pylist() for each in (view, expected))
        asked, wanted = (Counter(tuple(row.values()) for row in rows) for rows in many)
        assert wanted == asked


def check_marks(data: Any, most_steps: int) -> None:
    text = data.draw(rule_texts(max_atoms=3, max_variables=4, constants=True).filter(lambda text: "()" not in text))
    query = parse_rule(text)
    kinds = {table.name: data.draw(st.sampled_from(KINDS)) for table in query.tables}
    options: dict[str, Any] = {}
    if data.draw(st.booleans()):
        options["semantics"] = "set"
    if data.draw(st.booleans()):
        options["strategy"] = "marks"
    load, later = possible(data.draw(updates(query, domain=4, max_size=most_steps, nulls=True)), kinds)
    with tempfile.TemporaryDirectory() as folder, Database() as embedded:
        database: Any = local_database(Path(folder), data.draw(st.sampled_from([2, 3, 4])))
        for each in (embedded, database):
            for table in query.tables:
                promise: dict[str, Any] = {} if kinds[table.name] == "plain" else {kinds[table.name]: True}
                each.create_table(table.name, dict.fromkeys(table.column_names, "int"), **promise)
        early = data.draw(st.booleans())
        if not early:
            apply(database, load)
            apply(embedded, load)
        try:
            expected = embedded.create_view("V", text, **options)
        except IvmeError:
            with pytest.raises(PlanError):
                database.create_view("V", text, **options)
            assume(False)
        view = database.create_view("V", text, **options)
        feeds = [each.changes() for each in (view, expected)]
        if early:
            apply(database, load)
            apply(embedded, load)
        check_same(view, expected, query)
        done = 0
        while done < len(later):
            size = data.draw(st.sampled_from([1, 3, 20]))
            for each in (database, embedded):
                apply(each, later[done : done + size])
            done += size
            disturb(data, database, query, kinds)
            check_same(view, expected, query)
        view.verify()
        found, wanted = ([change for change in feed if change] for feed in feeds)
        assert wanted == found, text


def disturb(data: Any, database: Any, query: Query, kinds: dict[str, str]) -> None:
    event = data.draw(st.sampled_from(["", "kill", "fail", "rebalance"]))
    plain = [table for table in query.tables if kinds[table.name] == "plain"]
    if event == "kill":
        database._cluster.kill(0)
    elif event == "rebalance":
        database.rebalance("V")
    elif event == "fail" and plain:
        grows = [table for table in query.tables if kinds[table.name] == "append_only"]
        good = [(table.name, (1,) * len(table.columns), 1) for table in grows]
        with pytest.raises(DataError, match="cannot delete"):
            apply(database, [*good, (plain[0].name, (77,) * len(plain[0].columns), -1)])


@QUICK
@given(st.data())
def test_marks_over_shards_agree_with_the_embedded_database(data: Any) -> None:
    check_marks(data, 30)


@pytest.mark.long
@THOROUGH
@given(st.data())
def test_marks_over_shards_agree_with_the_embedded_database_in_many_more_cases(data: Any) -> None:
    check_marks(data, 60)


SHAPES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a path over append-only tables": ("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", {}, "append_only"),
    "a set of ends": ("Q(A, C) = R(A, B), S(B, C)", {"semantics": "set", "strategy": "marks"}, "plain"),
    "ends that are asked for": ("Q(C | A) = R(A, B), S(B, C)", {"semantics": "set", "strategy": "marks"}, "plain"),
    "a triangle with templates": ("Q(A, B, C) = R(A, B), S(B, C), T(C, A)", {"strategy": "marks"}, "append_only"),
    "a semijoin": ("Q(A, B) = R(A, B), S(B, C)", {"semantics": "set", "strategy": "marks"}, "static"),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shards_run_marks_and_a_row_of_several_shards_is_there_once(tmp_path: Path, shape: str) -> None:
    text, options, kind = SHAPES[shape]
    query = parse_rule(text)
    embedded, database = Database(), local_database(tmp_path, 4)
    rows = [(i, j) for i in range(8) for j in range(8) if (i + 2 * j) % 3]
    views, feeds = [], []
    for each in (database, embedded):
        for table in query.tables:
            promised: dict[str, Any] = (
                {} if kind == "plain" or (kind == "static" and table.name == "R") else {kind: True}
            )
            each.create_table(table.name, dict.fromkeys(table.column_names, "int"), **promised)
            each.insert(table.name, rows)
        views.append(each.create_view("V", text, **options))
        feeds.append(views[-1].changes())
        each.insert("R", [(7, 1), (8, 4), (7, 0)])
        if kind != "append_only":
            each.delete("R", [(7, 1), *rows[::3]])
    assert "marks" == views[0].explain().strategy
    if options.get("semantics") == "set" and "B" not in query.free:
        assert isinstance(views[0], ShardedView)
        made = views[0].sharding
        parts = database._ask(questions_for(made, read_requests(made, {name: [1] for name in query.parameters})))
        found = Counter(row for part in parts for row in zip(*part.tables[0].to_pydict().values(), strict=True))
        assert max(found.values()) > 1, "a row is in several shards"
    check_same(views[0], views[1], query)
    assert list(feeds[1]) == list(feeds[0])
    views[0].verify()
