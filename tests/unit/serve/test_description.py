"""What a server says about a database with views that only Python can read."""

from __future__ import annotations

import pytest

from ivme.rings import Covariance
from ivme.serve.asking import find_view
from ivme.serve.description import stats, view_paths
from ivme.serve.grants import OPEN
from ivme.serve.problem import Problem
from tests.databases import make_database


def test_a_server_shows_views_of_queries_and_refuses_those_of_rings() -> None:
    db = make_database("native")
    db.create_table("r", {"a": "int", "b": "int"})
    db.create_view("v", "SELECT a FROM r")
    db.create_ring_view("model", "Q(A) = r(A, B)", Covariance("B"))
    assert ("v", "model") == db.views
    assert ["v"] == [view["name"] for view in stats(db, 0, OPEN, {})["views"]]
    assert {"/views/v", "/views/v/changes"} == view_paths(db, OPEN).keys()
    with pytest.raises(Problem, match="view model is maintained by view-tree in Python"):
        find_view(db, "model")
