"""Pieces that do not fit the steps that find them are refused, so that reading needs no checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest

from ivme.database import Database
from ivme.engine.lower import lower_pieces

Spec = tuple[Any, ...]


def changed(number: int, field: int, value: Any) -> Callable[[list[Spec]], list[Spec]]:
    """The specifications with one field of one of them replaced."""

    def change(specs: list[Spec]) -> list[Spec]:
        spec = [*specs[number]]
        spec[field] = value
        return [*specs[:number], tuple(spec), *specs[number + 1 :]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda specs: specs[:1], "each piece is emitted"),
        (changed(0, 0, 0), "comes after the one that it hangs below"),
        (changed(1, 0, 1), "comes after the one that it hangs below"),
        (changed(1, 1, [0]), "shared, or its own"),
        (changed(1, 2, [0, 9]), "shares a column that is not there"),
        (changed(1, 3, [9]), "has no such column"),
        (changed(1, 4, [9]), "an output comes from one piece"),
        (changed(1, 4, [0]), "an output comes from one piece"),
    ],
)
def test_pieces_that_do_not_fit_are_refused(change: Callable[[list[Spec]], list[Spec]], message: str) -> None:
    db = Database()
    for name in "RST":
        db.create_table(name, {"x": "int", "y": "int"})

    def lowered(enumeration: Any) -> list[Spec]:
        return change(lower_pieces(enumeration))

    with patch("ivme.engine.lower.lower_pieces", lowered), pytest.raises(ValueError, match=message):
        db.create_view("q", "Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)", strategy="request")
