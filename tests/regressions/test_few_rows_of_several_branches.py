"""A request with few rows read the first branch of a union only: rows with light values were left out."""

from __future__ import annotations

import ivme


def test_a_request_has_the_rows_of_heavy_and_of_light_values() -> None:
    db = ivme.Database()
    db.create_table("opens", {"user": "int", "document": "int"})
    db.create_table("documents", {"document": "int"})
    view = db.create_view("v", "Q(D | U) = opens(U, D), documents(D)", strategy="skew", epsilon=0.5)
    db.insert("documents", [(1,), (2,)])
    db.insert("opens", [(user, 1) for user in range(100)])
    db.insert("opens", [(0, 2)])
    (partition,) = view.stats()["partitions"].values()
    assert 1 == partition["heavy"]
    assert [(1,), (2,)] == sorted(view(U=0)) == sorted(row for row, _ in view.items(U=0))
    assert [(1,)] == list(view(U=1))


def test_a_request_with_more_rows_than_are_read_at_once_is_complete() -> None:
    db = ivme.Database()
    db.create_table("opens", {"user": "int", "document": "int"})
    db.create_table("documents", {"document": "int"})
    view = db.create_view("v", "Q(D | U) = opens(U, D), documents(D)", strategy="skew", epsilon=0.5)
    db.insert("documents", [(document,) for document in range(500)])
    db.insert("opens", [(0, document) for document in range(500)])
    db.insert("opens", [(user, 0) for user in range(1, 400)])
    assert [(document,) for document in range(500)] == sorted(view(U=0))
