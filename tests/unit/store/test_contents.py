"""What records say, and what they add up to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ivme.engine.codes.domains import Domains
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.runtime.positions import Progress
from ivme.errors import DamagedError
from ivme.query.model import table
from ivme.store.contents import Contents, arrow_bytes, batch_record, read_arrow
from ivme.store.files import write_sealed
from ivme.store.plain import plain_table
from ivme.store.record import Record, framed, read_record
from ivme.store.snapshot import MANIFEST, read_manifest
from tests.databases import weighted

R = table("R", {"a": "int", "s": "string"})
PATH = Path("log")


def record(content: Any, bodies: Any = (), number: int = 1) -> Record:
    made = read_record("", memoryview(b"".join(map(bytes, framed("", number, 0, content, bodies)))), 0)
    assert made is not None
    return made


def added(*records: Record) -> Contents:
    contents = Contents()
    contents.add(record({"create_table": plain_table(R)}), PATH)
    for each in records:
        contents.add(each, PATH)
    return contents


def changed(rows: list[tuple[int, str]], weights: list[int]) -> RowBatch:
    data = pa.table({"a": pa.array([a for a, _ in rows], pa.int64()), "s": pa.array([s for _, s in rows])})
    return RowBatch(Layout(R, Domains()), np.array(weights), data)


@pytest.mark.parametrize("size", [1, 16, 17, 100])
def test_few_rows_and_many_come_back_with_their_weights(size: int) -> None:
    rows = [(n, f"row {n}") for n in range(size)]
    weights = [n % 3 - 1 for n in range(size)]
    contents = added(record(*batch_record({"R": R}, {"R": changed(rows, weights)}, Progress("s", 7))))
    expected = {row: weight for row, weight in zip(rows, weights, strict=True) if weight}
    assert (expected, {"s": 7}, {"R"}) == (
        weighted(*contents.tables["R"].take_changes()),
        contents.positions,
        contents.changed,
    )


def test_rows_that_were_given_in_other_arrow_types_are_stored_in_the_tables() -> None:
    plain = changed([(n, f"row {n % 3}") for n in range(50)], [1] * 50)
    strange = plain.data.set_column(1, "s", plain.data.column("s").dictionary_encode())
    given = RowBatch(Layout(R, Domains()), plain.weights, strange)
    contents = added(record(*batch_record({"R": R}, {"R": given}, None)))
    assert weighted(plain.data, plain.weights) == weighted(*contents.tables["R"].take_changes())


def test_records_add_up() -> None:
    parts = [
        batch_record({"R": R}, {"R": changed(rows, [1] * len(rows))}, None)
        for rows in ([(1, "x")] * 3, [(2, "y")] * 20)
    ]
    gone = batch_record({"R": R}, {"R": changed([(1, "x")], [-2])}, None)
    contents = added(*(record(*part) for part in (*parts, gone)))
    assert Counter({(1, "x"): 1, (2, "y"): 20}) == Counter(weighted(*contents.tables["R"].take_changes()))


@pytest.mark.parametrize(
    "content",
    [
        {"batch": [{"table": "S", "rows": [], "weights": []}]},
        {"batch": [{"rows": []}]},
        {"batch": 7},
        {"drop_table": "S"},
        {"drop_view": "v"},
        {"create_table": {}},
        {"create_view": {"name": "v"}},
        {"unknown": 1},
        {},
    ],
)
def test_a_record_that_says_nothing_we_know_is_refused(content: Any) -> None:
    with pytest.raises(DamagedError, match="log: record 9 is not in the format of this version of ivme"):
        added(record(content, number=9))


def test_rows_whose_columns_have_other_types_than_the_table_are_damage_and_not_rows() -> None:
    ones = np.ones(1, np.int64)
    right = pa.table({"a": [1], "s": ["x"]})
    assert right == read_arrow(arrow_bytes(right, ones), R, PATH)[0]
    with pytest.raises(DamagedError, match="the columns of table R are not those that were declared"):
        read_arrow(arrow_bytes(pa.table({"a": ["1"], "s": ["x"]}), ones), R, PATH)


def test_a_manifest_that_lacks_a_part_is_damage_that_names_the_file(tmp_path: Path) -> None:
    write_sealed(tmp_path / MANIFEST, {"tables": [], "views": []})
    with pytest.raises(DamagedError, match=re.escape(str(tmp_path / MANIFEST))):
        read_manifest(tmp_path)
