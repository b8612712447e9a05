"""The independent check of a view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ivme.engine.read.recompute import recompute
from ivme.errors import VerificationError
from tests.databases import BACKENDS, make_database


@pytest.fixture(params=BACKENDS)
def db(request: Any) -> Any:
    made = make_database(request.param)
    made.create_table("R", {"a": "int", "b": "int"})
    made.create_table("S", {"b": "int", "x": "float"})
    made.insert("R", [(1, 1), (1, 1), (2, None)])
    made.insert("S", [(1, 0.1), (1, 0.2), (None, 0.3)])
    return made


def slip_in(db: Any, table: str, *row: int) -> None:
    """Puts a row of codes into a table behind the backs of its views."""
    columns = [np.array([code], dtype=np.int64) for code in row]
    db._runtime.backend.run(f"table {table}", {table: (columns, np.array([1], dtype=np.int64))})


def test_a_query_is_recomputed_by_plain_joins(db: Any) -> None:
    view = db.create_view("v", "SELECT R.a, COUNT(*) AS n, SUM(S.x) AS s FROM R JOIN S ON R.b = S.b GROUP BY R.a")
    found = recompute(db._runtime.reader, view.state.typed.query)
    assert list(found) == [(1,)]
    (row, multiplicity) = found[1,]
    assert (row[:2], multiplicity) == ((1, 4), 1)
    assert row[2] == pytest.approx(0.6)
    view.verify()


def test_a_row_too_few_is_named(db: Any) -> None:
    view = db.create_view("v", "SELECT a FROM R")
    slip_in(db, "R", 7, 7)
    with pytest.raises(VerificationError, match=r"view v has the row \(7,\) 0 times; recomputed .* 1 times"):
        view.verify()


def test_a_difference_in_an_access_request_names_its_inputs(db: Any) -> None:
    view = db.create_view("v", "SELECT b FROM R WHERE a = :a")
    view.verify()
    slip_in(db, "R", 1, 9)
    with pytest.raises(VerificationError, match=r"for \(1,\) has the row \(9,\)"):
        view.verify()


def test_a_global_aggregate_over_nothing_is_verified(db: Any) -> None:
    view = db.create_view("v", "SELECT COUNT(*) AS n, MAX(b) AS h FROM R WHERE a > 100")
    view.verify()
    slip_in(db, "R", 101, 1)
    with pytest.raises(VerificationError, match=r"\(1, 1\) 0 times"):
        view.verify()


def test_sums_of_floats_may_differ_by_rounding_only(db: Any) -> None:
    view = db.create_view("v", "SELECT SUM(x) AS s FROM S")
    for number in range(50):
        db.insert("S", [(number, 0.1 * number)])
        db.delete("S", [(number, 0.1 * number)])
    view.verify()
    db._runtime.backend.run(
        "table S",
        {"S": ([np.array([1]), np.array([np.float64(0.5).view(np.int64)])], np.array([1], dtype=np.int64))},
    )
    with pytest.raises(VerificationError):
        view.verify()


def test_a_group_whose_multiplicities_cancel_is_not_there(db: Any) -> None:
    db.create_table("T", {"a": "int", "b": "int"})
    grouped = db.create_view("v", "SELECT t.a, COUNT(*) FROM T t GROUP BY t.a", semantics="ring")
    whole = db.create_view("w", "SELECT COUNT(*) FROM T t WHERE t.a = :a", semantics="ring")
    with db.batch() as batch:
        batch.apply("T", [(1, 1), (1, 2), (2, 1)], [1, -1, 3])
    for view in (grouped, whole):
        view.verify()
    assert [(2, 3)] == list(grouped)
