"""What `why` and `why_not` say of views without marks is true, whatever strategy maintains them."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.errors import DataError
from ivme.plan.strategy.strategies import plan_with
from ivme.query.parse import parse
from tests import oracle
from tests.databases import make_database
from tests.example_counts import examples
from tests.invariants import leaf
from tests.properties.test_why import check, findings
from tests.random_queries import contents, rule_texts, updates


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reasons_are_true(data: Any) -> None:
    text = data.draw(rule_texts(max_atoms=4, max_variables=5, constants=True))
    assume("()" not in text)
    db = make_database("native")
    for table in parse(text, ()).tables:
        db.create_table(table.name, dict.fromkeys(table.column_names, "int"))
    query = parse(text, db.definitions.relations())
    view = db.create_view("v", text)
    steps = data.draw(updates(query, domain=3, max_size=20, nulls=True))
    for relation, row, weight in steps:
        db.apply(relation, [row], [weight])
    database = {table.name: contents(steps).get(table.name, Counter()) for table in query.tables}
    sources = plan_with("view-tree", query).program.sources
    leaves = {label: (source.atom.variables, leaf(source, query, database)) for label, source in sources}
    for values in product([0, 1, 9], repeat=min(3, len(query.free))):
        named = dict(zip(query.free, (*values, *[0] * len(query.free)), strict=False))
        row = tuple(named[str(column.source)] for column in query.head)
        inputs = dict(zip(query.parameters, (named[v] for v in query.input), strict=True))
        there = oracle.rows(query, database, inputs).get(row, 0) > 0
        ask, other = (view.why, view.why_not) if there else (view.why_not, view.why)
        reasons = ask(row, **inputs)
        found = list(findings(reasons))
        assert there == reasons.present
        assert len(found) >= (len(query.atoms) if there else 1)
        assert there or any(not finding.tuples for finding in found)
        for finding in found:
            check(finding, leaves)
        with pytest.raises(DataError, match="says why"):
            other(row, **inputs)


def test_a_group_has_another_row_or_none() -> None:
    db = make_database("native")
    db.create_table("orders", {"customer": "int", "amount": "int"})
    db.create_table("customers", {"id": "int", "city": "str"})
    db.insert("orders", [(7, 10), (7, 5), (8, 1)])
    db.insert("customers", [(7, "Rome"), (9, "Oslo")])
    view = db.create_view(
        "v", "SELECT city, SUM(amount) AS s FROM orders JOIN customers ON customer = id WHERE amount > 2 GROUP BY city"
    )
    assert str(view.why(("Rome", 15))).splitlines()[1:] == [
        "  orders (filtered) has (7, 10), (7, 5)",
        "  customers has (7, 'Rome') at city = 'Rome'",
    ]
    assert str(view.why_not(("Rome", 14))).splitlines()[1:] == ["  v has ('Rome', 15) at city = 'Rome'"]
    assert str(view.why_not(("Oslo", 1))).splitlines()[1:] == [
        "  orders (filtered) has (7, 10), but",
        "  └─ customers has nothing at id = 7, city = 'Oslo'",
    ]
