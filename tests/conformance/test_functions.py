"""Views of every function have Spark's values, from batches and from single rows, and refuse rows without a value."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError
from tests.example_counts import some_of
from tests.functions.cases import ERROR, Case, expected, is_holdable, no_zero, same
from tests.functions.every import CASES

EXPECTED = expected()
NAMES = "abcdef"


def check(db: Database, name: str, case: Case) -> None:
    db.create_table(name, {"id": "int", **dict(zip(NAMES, case.types, strict=False))})
    view = db.create_view(f"{name}_view", f"SELECT id, {case.sql.format(*NAMES)} AS x FROM {name}")
    rows = [(row, EXPECTED[case.written(row)]) for row in case.with_nulls()]
    good = [(i, row, value) for i, (row, value) in enumerate(rows) if value != ERROR and is_holdable(value)]
    db.insert(name, [(i, *row) for i, row, _ in good[::2]])
    for i, row, _ in good[1::2]:
        db.insert(name, [(i, *row)])
    found: dict[int, Any] = dict(view)
    assert len(good) == len(found)
    assert [] == [i for i, _, value in good if not same(no_zero(value), found[i], exact=case.exact)]
    for row in [row for row, value in rows if value == ERROR][:2]:
        with pytest.raises(DataError, match=f"{name}_view"):
            db.insert(name, [(-1, *row)])
    db.delete(name, [(i, *row) for i, row, _ in good])
    assert list(view) == []


@pytest.mark.parametrize("function", CASES)
@pytest.mark.parametrize("db", some_of(("native", "pure", "durable", "sharded"), "native"), indirect=True)
def test_a_view_of_a_function_has_the_values_that_spark_gives(db: Database, function: str) -> None:
    for number, case in enumerate(CASES[function]):
        check(db, f"t{number}", case)
