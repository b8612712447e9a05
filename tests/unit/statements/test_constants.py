"""A value that is given as a parameter is that value, wherever the parameter stands."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ivme.database import Database
from ivme.errors import IvmeError

ZONE = datetime.timezone(datetime.timedelta(hours=2))

VALUES: list[tuple[str, Any]] = [
    ("BIGINT", 0),
    ("BIGINT", -(2**63) + 1),
    ("BIGINT", 2**63 - 1),
    ("DOUBLE", 0.1),
    ("DOUBLE", -1e300),
    ("DOUBLE", 5e-324),
    ("DOUBLE", math.inf),
    ("DOUBLE", -0.0),
    ("DECIMAL(10, 2)", Decimal("-1.50")),
    ("DECIMAL(10, 2)", Decimal("1E+3")),
    ("DECIMAL(38, 38)", Decimal("1E-38")),
    ("STRING", ""),
    ("STRING", 'it\'s \\ "quoted" `x` :y ; -- \n\t%_'),
    ("STRING", "Zürich 🎈"),
    ("BOOLEAN", True),
    ("BOOLEAN", False),
    ("DATE", datetime.date(1, 1, 1)),
    ("DATE", datetime.date(2024, 2, 29)),
    ("TIMESTAMP", datetime.datetime(2024, 2, 29, 1, 2, 3, 4)),
    ("TIMESTAMP", datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=ZONE)),
    ("BINARY", b""),
    ("BINARY", b"\x00'\xff"),
]


@pytest.mark.parametrize(("type_", "value"), VALUES)
def test_a_value_is_found_by_itself(type_: str, value: Any) -> None:
    db = Database()
    db.sql(f"CREATE TABLE t (k BIGINT, x {type_}); INSERT INTO t VALUES (1, :x), (2, NULL)", x=value)
    assert db.sql("SELECT k FROM t WHERE x = :x", x=value).rows() == [(1,)]
    assert db.sql("SELECT k FROM t WHERE x <=> :x", x=None).rows() == [(2,)]
    assert db.sql("SELECT k FROM t WHERE x IN (:x)", x=[value, None]).rows() == [(1,)]
    stored = db.sql("SELECT x FROM t WHERE k = 1").scalar()
    assert (
        db.sql("UPDATE t SET x = :x WHERE k = 2 AND EXISTS (SELECT 1 FROM t AS s WHERE s.x = :x)", x=value).count == 1
    )
    assert db.sql("SELECT COUNT(*) AS n FROM t WHERE x = :x", x=stored).scalar() == 2
    assert db.sql("UPDATE t SET k = 5 WHERE x = :x", x=value).count == 2
    assert db.sql("DELETE FROM t WHERE x = :x", x=value).count == 2


@pytest.mark.parametrize("value", [math.nan, object(), {"a": 1}, 10**40, "\ud800"])
def test_what_is_no_value_is_refused(value: Any) -> None:
    db = Database()
    db.sql("CREATE TABLE t (x BIGINT, s STRING)")
    for text in ("SELECT x FROM t WHERE x = :v", "DELETE FROM t WHERE x = :v", "INSERT INTO t (x) VALUES (:v)"):
        with pytest.raises(IvmeError):
            db.sql(text, v=value)


def test_scalars_of_numpy_are_values() -> None:
    db = Database()
    db.sql("CREATE TABLE t (x BIGINT); INSERT INTO t VALUES (:x)", x=np.int64(5))
    assert db.sql("SELECT x + :y AS z FROM t WHERE x IN (:x)", x=np.array([5, 6]), y=np.int32(1)).scalar() == 6
