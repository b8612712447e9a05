"""Planning either gives a plan or says what is wrong, whatever is asked for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ivme
from ivme.plan.strategy.options import CHOICES
from ivme.plan.strategy.strategies import STRATEGIES
from ivme.query.rule import parse_rule
from tests.example_counts import examples
from tests.random_queries import rule_texts

_PRODUCT = "Q(A, C, E, G) = R0(A, B), R1(B, C), R2(E, F), R3(F, G)"

_TEMPLATES = "Q(A0, A6 | .) = " + ", ".join(f"R{i}(A{i}, A{(i + 1) % 12})" for i in range(12))
"""A cycle whose templates are supports of one another."""

_BODIES = st.one_of(
    rule_texts(max_atoms=4, max_variables=5),
    rule_texts(max_atoms=6, max_variables=7, aggregates=True, constants=True),
    st.builds(lambda one, other: _product(one, other), rule_texts(max_atoms=3), rule_texts(max_atoms=3)),
    st.just(_PRODUCT),
)


def _product(one: str, other: str) -> str:
    """The cross product of two rules: the second has other relations and variables."""
    head, body = one.split(" = ")
    more, further = other.lower().replace("r", "S").split(" = ")
    outputs = [part for each in (head, more) for part in _listed(each[2:-1].split(" | ")[0])]
    inputs = [part for each in (head, more) for part in _listed(each[2:-1].split(" | ")[1])]
    return f"Q({', '.join(outputs) or '.'} | {', '.join(inputs) or '.'}) = {body}, {further}"


def _listed(text: str) -> list[str]:
    return [] if text == "." else text.split(", ")


_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "strategy": st.sampled_from(sorted(STRATEGIES)),
        "epsilon": st.one_of(st.sampled_from([0, 0.25, 1 / 3, 1, "auto"]), st.just({"R0": 0.25, "R1": 0.75})),
        "append_only": st.just(["R0"]),
        "static": st.just(["R0"]),
        "workload": st.just({"updates": 10, "rows": 3}),
        **{name: st.sampled_from(values) for name, values in CHOICES.items()},
    },
)


@pytest.mark.parametrize("strategy", [None, *STRATEGIES])
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=_BODIES, options=_OPTIONS)
@example(body="Q(. | .) = R0(A, B), R1(B, C), R2(D)", options={})
@example(body="Q(X, Z | .) = R0(A, B), R1(B, C), R2(X, Y), R3(Y, Z), R4(Z, X)", options={})
@example(body=_TEMPLATES, options={"semantics": "set"})
def test_nothing_but_an_error_of_ivme_escapes_from_planning(
    strategy: str | None, body: str, options: dict[str, Any]
) -> None:
    with ivme.Database() as database:
        for table in parse_rule(body).tables:
            database.create_table(table.name, dict.fromkeys(table.column_names, "int") or {"unused": "int"})
        with suppress(ivme.IvmeError):
            view = database.create_view("made", body, **{**options, "strategy": strategy, "planning_seconds": 1})
            assert str(view.explain())
            assert view.explain().strategy == view.explain().to_dict()["strategy"]
            assert view.stats()["maps"]
