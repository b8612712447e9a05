"""Rings beyond counts and sums: a regression and a listing, kept fresh over a join."""

from __future__ import annotations

import numpy as np
import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, UnknownNameError
from ivme.rings import Covariance, CovarianceElement, Listing, Relational


def _houses(rng: np.random.Generator, n: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    areas = [(i % 20, float(rng.normal(100, 20))) for i in range(n)]
    prices = [(i, float(rng.normal(10, 2))) for i in range(20)]
    return areas, prices


def _design(areas: list[tuple[int, float]], prices: list[tuple[int, float]]) -> tuple[np.ndarray, np.ndarray]:
    joined = [(a, p) for k, a in areas for z, p in prices if k == z]
    x = np.array([[1.0, a] for a, _ in joined])
    return x, np.array([p for _, p in joined])


def test_a_regression_over_a_join_stays_equal_to_numpys_while_tables_change() -> None:
    rng = np.random.default_rng(7)
    areas, prices = _houses(rng, 200)
    db = Database()
    db.create_table("house", {"zone": "int", "area": "float"})
    db.create_table("zone", {"zone": "int", "price": "float"})
    db.insert("house", areas[:100])
    db.insert("zone", prices)
    ring = Covariance("A", "P")
    view = db.create_ring_view("model", "Q(.|.) = house(Z, A), zone(Z, P)", ring)
    for batch in range(4):
        db.insert("house", areas[100 + 25 * batch : 125 + 25 * batch])
        db.delete("house", [areas[batch]])
        present = areas[batch + 1 : 125 + 25 * batch]
        element = view.value()
        assert isinstance(element, CovarianceElement)
        x, y = _design(present, prices)
        expected = np.linalg.lstsq(x, y, rcond=None)[0]
        fitted = ring.regression(element, "P")
        assert element.rows == len(y)
        np.testing.assert_allclose([fitted[""], fitted["A"]], expected, rtol=1e-6)


def test_a_listing_carries_the_bound_values_of_each_group() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "b": "int"})
    db.create_table("S", {"b": "int", "c": "string"})
    view = db.create_ring_view("list", "Q(A) = R(A, B), S(B, C)", Relational("C"))
    db.insert("R", [(1, 10), (1, 20), (2, 20)])
    db.insert("S", [(10, "x"), (20, "y"), (20, "y")])
    listed = {row: element.rows() for row, element in view.items() if isinstance(element, Listing)}
    assert listed == {(1,): [({"C": "x"}, 1), ({"C": "y"}, 2)], (2,): [({"C": "y"}, 2)]}
    db.delete("S", [(20, "y"), (20, "y")])
    assert [(row, e.rows()) for row, e in view.items() if isinstance(e, Listing)] == [((1,), [({"C": "x"}, 1)])]


def test_a_failing_batch_leaves_a_ring_view_as_it_was() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "x": "float"})
    view = db.create_ring_view("sums", "Q(.|.) = R(A, X)", Covariance("X"))
    db.insert("R", [(1, 2.0)])
    before = view.value()
    with pytest.raises(DataError, match="not there"):
        db.delete("R", [(1, 2.0), (3, 1.0)])
    assert before == view.value()


def test_rows_with_null_in_a_variable_of_the_ring_are_left_out() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "x": "float"})
    view = db.create_ring_view("sums", "Q(.|.) = R(A, X)", Covariance("X"))
    db.insert("R", [(1, 2.0), (2, 3.0), (3, None)])
    element = view.value()
    assert isinstance(element, CovarianceElement)
    assert (2, [5.0], [[13.0]]) == (element.rows, element.sums.tolist(), element.products.tolist())
    view.verify()


def test_a_ring_view_is_refused_with_aggregates_or_unknown_variables() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "x": "float"})
    with pytest.raises(PlanError, match="no aggregates"):
        db.create_ring_view("bad", "Q(COUNT) = R(A, X)", Covariance("X"))
    with pytest.raises(UnknownNameError, match="lifts Y"):
        db.create_ring_view("bad", "Q(A) = R(A, X)", Covariance("Y"))


def test_dropping_what_a_ring_view_needs_is_refused() -> None:
    db = Database()
    db.create_table("R", {"a": "int", "x": "float"})
    db.create_ring_view("sums", "Q(.|.) = R(A, X)", Covariance("X"))
    with pytest.raises(PlanError, match="sums needs it"):
        db.drop_table("R")
    db.drop_view("sums")
    db.drop_table("R")


def test_a_ring_over_triangles_has_heavy_and_light_parts() -> None:
    """2·3·5 for one triangle."""
    db = Database()
    for name, columns in (("R", "ab"), ("S", "bc"), ("T", "ca")):
        db.create_table(name, dict.fromkeys(columns, "float"))
    view = db.create_ring_view("m", "Q(.|.) = R(A, B), S(B, C), T(C, A)", Covariance("A", "B"))
    assert view.explain().strategy == "skew"
    db.apply("R", [(1.0, 2.0)], [2])
    db.apply("S", [(2.0, 3.0)], [3])
    db.apply("T", [(3.0, 1.0)], [5])
    element = view.value()
    assert isinstance(element, CovarianceElement)
    assert element.rows == 30
