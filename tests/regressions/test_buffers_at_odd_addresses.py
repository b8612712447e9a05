"""Arrow buffers that came over a socket need not be aligned; the kernel loaded numbers from them as if they were."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa

from ivme.database import Database


def at_odd_addresses(array: pa.Array) -> pa.Array:
    buffers = [None if each is None else pa.py_buffer(b"\0" + each.to_pybytes()).slice(1) for each in array.buffers()]
    return pa.Array.from_buffers(array.type, len(array), buffers, array.null_count)


def test_rows_are_read_from_buffers_at_odd_addresses() -> None:
    decimals = pa.array([Decimal("1.25"), None, Decimal("-7.00")], pa.decimal128(10, 2))
    columns = [pa.array([1, 2, -3]), pa.array([1.5, None, -2.0]), decimals, pa.array(["x", None, "zoë"])]
    db = Database()
    db.create_table("t", {"a": "int", "f": "float", "d": "decimal(10, 2)", "s": "string"})
    view = db.create_view("v", "SELECT a, f, d, s FROM t")
    db.insert("t", pa.table([at_odd_addresses(column) for column in columns], names=["a", "f", "d", "s"]))
    assert sorted(view) == sorted(zip(*(column.to_pylist() for column in columns), strict=True))
