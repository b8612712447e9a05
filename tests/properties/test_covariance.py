"""Covariance rings in the kernel and in plain Python, under random changes: equal to the sums over joined rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.query.parse import parse
from ivme.rings import Covariance, CovarianceElement
from ivme.views.covariance_view import CovarianceView
from tests.databases import BACKENDS, make_database
from tests.example_counts import examples

SHAPES: list[tuple[str, tuple[str, ...]]] = [
    ("Q(.|.) = R(A, X, Y)", ("X", "Y")),
    ("Q(A) = R(A, X), S(A, Y, Z)", ("X", "Y", "Z")),
    ("Q(.|.) = R(A, X), S(A, B, Y), T(B, Z)", ("X", "Y", "Z")),
    ("Q(Z | A) = R(A, B, X), S(B, Z, Y)", ("X", "Y")),
    ("Q(.|.) = R(A, B), S(B, C), T(C, A)", ("A", "B", "C")),
    ("Q(A) = R(A, X), S(B, Y)", ("X", "Y", "A")),
    ("Q(C) = E(A, B), E(B, C)", ("A", "B")),
]

NUMBERS = {
    "int": st.integers(-3, 3),
    "float": st.sampled_from([0.0, 1.5, -2.25, 1e6]),
    "decimal(6, 2)": st.integers(-3, 3),
}


class PlainCovariance(Covariance):
    """The ring as one of a user, kept in plain Python."""


def filled(backend: str, text: str, variables: tuple[str, ...], kind: str) -> tuple[Database, Any, Any]:
    db = make_database(backend)
    query = parse(text, ())
    for table in query.tables:
        db.create_table(table.name, dict.fromkeys(table.column_names, kind))
    kernel = db.create_ring_view("kernel", text, Covariance(*variables))
    assert isinstance(kernel, CovarianceView)
    return db, kernel, db.create_ring_view("plain", text, PlainCovariance(*variables))


def elements(view: Any, requests: list[dict[str, Any]]) -> dict[Any, CovarianceElement]:
    return {(tuple(asked.items()), row): e for asked in requests for row, e in view.items(**asked)}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("text", "variables"), SHAPES)
@settings(max_examples=examples(4), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_elements_are_those_of_the_joined_rows(backend: str, text: str, variables: tuple[str, ...], data: Any) -> None:
    kind = data.draw(st.sampled_from(sorted(NUMBERS)))
    db, kernel, plain = filled(backend, text, variables, kind)
    requests = [{"A": value} for value in range(-3, 4)] if kernel.parameters else [{}]
    feed = kernel.changes() if not kernel.parameters else None
    total: dict[Any, CovarianceElement] = {}
    there: list[tuple[str, tuple[Any, ...]]] = []
    widths = {table.name: len(table.columns) for table in parse(text, ()).tables}
    for _ in range(data.draw(st.integers(1, 12))):
        if there and data.draw(st.booleans()):
            name, row = there.pop(data.draw(st.integers(0, len(there) - 1)))
            db.delete(name, [row])
        else:
            name = data.draw(st.sampled_from(sorted(widths)))
            row = tuple(data.draw(NUMBERS[kind]) for _ in range(widths[name]))
            db.insert(name, [row])
            there.append((name, row))
        mine, others = elements(kernel, requests), elements(plain, requests)
        assert mine.keys() == others.keys()
        assert all(mine[key].is_close(others[key]) for key in mine)
        kernel.verify()
        for change in feed or ():
            for row_, element in change.items():
                total[row_] = total[row_] + element if row_ in total else element
    if feed is not None:
        now = {row: element for (_, row), element in elements(kernel, requests).items()}
        assert now.keys() == {row for row, element in total.items() if element.rows}
        assert all(now[row].is_close(total[row]) for row in now)


def test_a_hub_of_triangles_is_summed_by_heavy_and_light_parts() -> None:
    db = Database()
    for name in "RST":
        db.create_table(name, {"x": "int", "y": "int"})
    view = db.create_ring_view("m", "Q(.|.) = R(A, B), S(B, C), T(C, A)", Covariance("A", "B", "C"))
    assert view.explain().strategy == "skew"
    rng = np.random.default_rng(3)
    for _ in range(400):
        a, b = (int(each) for each in rng.integers(0, 12, 2))
        table = "RST"[rng.integers(0, 3)]
        db.insert(table, [(0, b) if rng.random() < 0.4 else (a, b)])
    view.verify()
    element = view.value()
    assert isinstance(element, CovarianceElement)
    assert element.rows


def test_a_ring_view_is_not_stored_and_no_view_is_built_on_it(tmp_path: Any) -> None:
    db = Database(tmp_path)
    db.create_table("R", {"a": "int", "x": "float"})
    db.create_ring_view("m", "Q(A) = R(A, X)", Covariance("X"))
    db.insert("R", [(1, 2.0)])
    db.checkpoint()
    assert "m" not in [table.name for table in db.definitions.relations()]
    db.close()
    with Database(tmp_path) as again:
        assert () == again.views
        again.insert("R", [(1, 3.0)])
