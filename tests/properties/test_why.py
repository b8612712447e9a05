"""What `why` and `why_not` say is true: tuples that they name are there, and nothing is where they find nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.engine.read.reasons import Finding, Reasons
from ivme.errors import DataError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.parse import as_asked, parse
from tests import oracle
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples
from tests.invariants import leaf
from tests.random_queries import contents, rule_texts, updates


def findings(reasons: Reasons) -> Iterator[Finding]:
    waiting = list(reasons.findings)
    while waiting:
        finding = waiting.pop()
        yield finding
        waiting += finding.below


def check(finding: Finding, leaves: dict[str, tuple[tuple[str, ...], Counter[Any]]]) -> None:
    """A finding about one relation against that relation; one about a template is told by its generators."""
    if finding.relation not in leaves:
        assert "⋈" in finding.relation
        return
    schema, tuples = leaves[finding.relation]
    key = dict(finding.at)
    matching = {row for row in tuples if all(row[schema.index(v)] == value for v, value in key.items())}
    assert matching.issuperset(finding.tuples)
    if not finding.tuples:
        assert not matching


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reasons_are_true(backend: str, data: Any) -> None:
    text = data.draw(rule_texts(max_atoms=4, max_variables=5, constants=True))
    assume("()" not in text)
    inferred = parse(text, ())
    db = make_database(backend)
    for table in inferred.tables:
        db.create_table(table.name, dict.fromkeys(table.column_names, "int"))
    query = as_asked(parse(text, db.definitions.relations()), "set")
    view = db.create_view("v", text, strategy="marks", semantics="set")
    steps = data.draw(updates(query, domain=3, max_size=20))
    for relation, row, weight in steps:
        db.apply(relation, [row], [weight])
    database = contents(steps)
    leaves = readable(query, database)
    for values in product([0, 1, 9], repeat=min(4, len(query.free))):
        given_values = dict(zip(query.free, (*values, *[0] * len(query.free)), strict=False))
        row = tuple(given_values[str(column.source)] for column in query.head)
        inputs = dict(zip(query.parameters, (given_values[v] for v in query.input), strict=True))
        there = oracle.rows(query, database, inputs).get(row, 0) > 0
        ask, other = (view.why, view.why_not) if there else (view.why_not, view.why)
        reasons = ask(row, **inputs)
        assert str(reasons).startswith(f"({', '.join(map(repr, row))}) is {'' if there else 'not '}in v:")
        assert there == reasons.present
        found = list(findings(reasons))
        assert found
        assert there or any(not finding.tuples for finding in found)
        for finding in found:
            check(finding, leaves)
        with pytest.raises(DataError, match="says why"):
            other(row, **inputs)


def readable(query: Query, database: dict[str, Counter[Any]]) -> dict[str, tuple[tuple[str, ...], Counter[Any]]]:
    """For each label the variables of its atom, under the query's own names, and its tuples."""
    sources = plan_with("marks", query).program.sources
    empty: Counter[Any] = Counter()
    full = {table.name: database.get(table.name, empty) for table in query.tables}
    return {label: (source.atom.variables, leaf(source, query, full)) for label, source in sources}
