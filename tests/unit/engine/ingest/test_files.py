"""Rows in files: what Arrow's readers are too strict for, and what is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_timestamps_with_a_zone_in_files_are_converted_to_utc(tmp_path: Path, ending: str) -> None:
    """They were refused, while Python's and Arrow's were converted, and the sinks of pipelines write them."""
    noon = datetime.datetime(2026, 5, 6, 12)
    texts = ["2026-05-06T12:00:00Z", "2026-05-06T14:00:00+02:00", "2026-05-06 12:00:00", "2026-05-06T12:00:00.000Z"]
    path = tmp_path / f"z.{ending}"
    lines = [f"{i},{text}" if ending == "csv" else f'{{"id":{i},"t":"{text}"}}' for i, text in enumerate(texts)]
    path.write_text("\n".join(["id,t"] * (ending == "csv") + lines) + "\n")
    db = Database()
    db.sql("CREATE TABLE x (id INT, t TIMESTAMP)")
    db.insert("x", path)
    assert [(i, noon) for i in range(4)] == sorted(db.table("x"))
    db.sql("CREATE TABLE y (id INT, t TIMESTAMP); COPY y FROM :path", path=str(path))
    assert sorted(db.table("x")) == sorted(db.table("y"))


def test_what_is_no_timestamp_is_refused_beside_others_with_zones(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("id,t\n1,2026-05-06T12:00:00Z\n2,06.05.2026\n")
    db = Database()
    db.sql("CREATE TABLE x (id INT, t TIMESTAMP)")
    with pytest.raises(DataError, match=r"in row 2, '06.05.2026' in column t is not of type timestamp"):
        db.insert("x", tmp_path / "z.csv")


def test_floats_and_wide_decimals_of_parquet_are_rounded_by_choice(tmp_path: Path) -> None:
    """Messages advised ROUND_FLOATS true, and for Parquet there was no such option."""
    wide = pa.array([Decimal("1.005"), Decimal("-1.005"), None])
    data = pa.table({"id": [1, 2, 3], "p": [0.125, -2.675, None], "w": wide})
    pq.write_table(data, tmp_path / "z.parquet")
    db, path = Database(), str(tmp_path / "z.parquet")
    db.sql("CREATE TABLE x (id INT, p DECIMAL(8,2), w DECIMAL(8,2))")
    with pytest.raises(DataError, match="is a float"):
        db.sql("COPY x FROM :path", path=path)
    db.sql("COPY x FROM :path (ROUND_FLOATS true)", path=path)
    rounded = [(1, Decimal("0.13"), Decimal("1.01")), (2, Decimal("-2.68"), Decimal("-1.01")), (3, None, None)]
    assert rounded == sorted(db.table("x"))
    db.replace("x", path, round_floats=True)
    assert rounded == sorted(db.table("x"))
    pq.write_table(pa.table({"id": [1], "p": [float("nan")], "w": [1.5]}), path)
    with pytest.raises(DataError, match=r"column p: nan is not of type decimal\(8, 2\)"):
        db.sql("COPY x FROM :path (ROUND_FLOATS true)", path=path)
    with pytest.raises(IvmeError, match="header is not an option of parquet\nInstead: there are: round_floats"):
        db.sql("COPY x FROM :path (HEADER true)", path=path)


def test_a_file_of_another_kind_is_refused_with_the_kinds_that_there_are() -> None:
    db = Database()
    db.sql("CREATE TABLE x (id INT)")
    with pytest.raises(DataError, match=r"does not end in .parquet, .csv, .tsv, .json or .jsonl"):
        db.insert("x", "a.xlsx")


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_separator_is_answered_with_the_statement_that_takes_it(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "z.csv"
    path.write_text(f"id{mark}s\n1{mark}a\n")
    db = Database()
    db.sql("CREATE TABLE x (id INT, s STRING)")
    with pytest.raises(DataError, match="separates them, write ") as refused:
        db.insert("x", path)
    db.sql(str(refused.value).rsplit("write ", 1)[1])
    assert [(1, "a")] == db.table("x").rows()


def test_paths_that_are_no_files_of_rows_are_answered_with_what_to_give(tmp_path: Path) -> None:
    """They were said to hold no rows."""
    db = Database()
    db.sql("CREATE TABLE x (id INT)")
    for given, told in [
        (str(tmp_path), "is a folder; give pyarrow.dataset.dataset"),
        (tmp_path, "is a folder; give pyarrow.dataset.dataset"),
        ("x.csv.gz", "does not end in .parquet, .csv"),
        (tmp_path / "x.xlsx", "does not end in .parquet, .csv"),
        (f"{tmp_path}/*.parquet", "for several files, give pyarrow.dataset.dataset"),
    ]:
        with pytest.raises(DataError, match=told):
            db.insert("x", given)
    with pytest.raises(DataError, match="holds no rows"):
        db.insert("x", "a." * 5000)
