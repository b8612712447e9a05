"""Timestamps with and without a time zone are read as Spark reads them in UTC, in SQL and in rows."""

from __future__ import annotations

import datetime
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ivme
from ivme.errors import UnsupportedError
from ivme.query.ddl import parse_create_tables
from ivme.query.types import Type

_ZONE = datetime.timezone(datetime.timedelta(hours=2))
_MOMENT = datetime.datetime(2024, 5, 17, 1, 2, 3)
_UTC = datetime.datetime(2024, 5, 16, 23, 2, 3)
_SPARK = {
    "TIMESTAMP '2024-05-17 01:02:03+02:00'": _UTC,
    "TIMESTAMP_LTZ '2024-05-17 01:02:03+02:00'": _UTC,
    "TIMESTAMP_NTZ '2024-05-17 01:02:03+02:00'": _MOMENT,
    "CAST('2024-05-17 01:02:03+02:00' AS TIMESTAMP)": _UTC,
    "CAST('2024-05-17 01:02:03+02:00' AS TIMESTAMP_NTZ)": _MOMENT,
    "CAST('2024-05-17T01:02:03Z' AS TIMESTAMP_NTZ)": _MOMENT,
    "CAST(TIMESTAMP '2024-05-17 01:02:03+02:00' AS TIMESTAMP_NTZ)": _UTC,
    "CAST(TIMESTAMP_NTZ '2024-05-17 01:02:03' AS TIMESTAMP)": _MOMENT,
    "TO_TIMESTAMP_NTZ('2024-05-17 01:02:03+02:00')": _MOMENT,
    "TO_TIMESTAMP_LTZ('2024-05-17 01:02:03+02:00')": _UTC,
}
"""What Spark 4 answers with the session's time zone UTC."""


@pytest.mark.parametrize("sql", _SPARK)
def test_a_text_with_a_zone_is_read_as_spark_reads_it(sql: str) -> None:
    db = ivme.Database()
    db.create_table("t", {"id": "int"})
    db.insert("t", [(1,)])
    assert [(_SPARK[sql],)] == list(db.create_view("v", f"SELECT {sql} AS x FROM t"))


@pytest.mark.parametrize(
    "name",
    [
        *("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIMESTAMPTZ"),
        *("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE"),
    ],
)
def test_all_names_of_timestamps_are_one_type_of_columns(name: str) -> None:
    (made,) = parse_create_tables(f"CREATE TABLE t (at {name}, many ARRAY<{name}>)")
    assert [Type("timestamp"), Type("array", element=Type("timestamp"))] == [column.type for column in made.columns]
    db = ivme.Database()
    db.create_table("t", {"at": name.lower()})


def test_a_text_is_not_cast_to_a_timestamp_without_time_zone_by_its_long_name() -> None:
    with pytest.raises(UnsupportedError, match="TIMESTAMP_NTZ"):
        ivme.explain("SELECT CAST(s AS TIMESTAMP WITHOUT TIME ZONE) AS x FROM t", {"t": {"s": "string"}})


def _arrow(unit: str) -> Any:
    return pa.table({"at": pa.array([_MOMENT.replace(tzinfo=_ZONE)], pa.timestamp(unit, tz="Europe/Zurich"))})


@pytest.mark.parametrize(
    "rows",
    [
        [(_MOMENT.replace(tzinfo=_ZONE),)],
        _arrow("us"),
        _arrow("ms"),
        pd.DataFrame({"at": pd.to_datetime(["2024-05-17 01:02:03+02:00"])}),
        pl.DataFrame({"at": [_MOMENT]}).with_columns(pl.col("at").dt.replace_time_zone("Europe/Zurich")),
    ],
    ids=["python", "arrow us", "arrow ms", "pandas", "polars"],
)
def test_a_value_with_a_zone_is_its_utc_time(rows: Any) -> None:
    db = ivme.Database()
    db.create_table("t", {"at": "timestamp"})
    view = db.create_view("v", "SELECT at FROM t")
    db.insert("t", rows)
    assert [(_UTC,)] == list(view)
