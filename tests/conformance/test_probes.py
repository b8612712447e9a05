"""Steps that only read, outside of a transaction: what a probe of many rows returns, on both backends."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from ivme.engine.ingest.feed import Feed, float_code
from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.plan.ir import program as ir
from ivme.query.rule import parse_rule
from tests.databases import BACKENDS

ONE = Fraction(1)
FORMS: dict[str, Callable[[Any], Any]] = {
    "code": int,
    "int": int,
    "float": float_code,
    "low": lambda value: value,
    "high": lambda value: -(value < 0),
}
ROWS = [(1, 1, 5), (1, 2, -7), (2, 1, 9), (2, 2, 0)]


def load(target: str, relation: str, schema: tuple[str, ...], lifts: tuple[ir.Lift | None, ...] = ()) -> ir.Load:
    atom = parse_rule(f"Q({', '.join(schema)}) = {relation}({', '.join(schema)})").atoms[0]
    return ir.Load(target, ir.Source(atom, tuple(f"_{i}" for i, _ in enumerate(schema, 1)), schema, lifts=lifts))


class Probed:
    """V(A, B) holds counts and sums of X. A trigger fills it, a reader enumerates it, a probe sums it up by A."""

    def __init__(self, kind: str, slot: str) -> None:
        self.backend: Any = NativeBackend(7) if kind == "native" else PureBackend()
        read, index = ir.Read("V", ("A", "B")), ir.Index((0,), (1,))
        self.backend.install([ir.Map("V", ("A", "B"), "view", ONE, sums=True, indexes=(index,))], [slot], {})
        lifted = load("d", "R", ("A", "B", "X"), (ir.Lift("sum", 2),))
        probe: list[ir.Step] = [
            load("d", ir.ROWS, ("A",)),
            ir.Join("j", "d", (read,), ("A", "B"), ONE),
            ir.Project("p", "j", ("A",)),
            ir.Emit("p", "sums"),
            ir.Emit("d", "rows"),
        ]
        filling: list[ir.Step] = [lifted, ir.Project("s", "d", ("A", "B")), ir.Add("s", "V")]
        self._feeds: dict[str, Feed] = {
            **self.backend.set_trigger("R", filling, [slot]),
            **self.backend.set_trigger(ir.ROWS, probe, [slot]),
        }
        enumeration = ir.Enumeration((), ("A", "B"), (("sum", "X"),), (ir.Loop(read, ("A", "B")),), (read,))
        self.backend.set_reader("all", enumeration)
        self.run("R", ROWS)

    def run(self, relation: str, rows: list[Any]) -> Any:
        columns = []
        for column in self._feeds[relation].columns:
            place = int(str(column.expression).strip('"_')) - 1
            columns.append(np.array([FORMS[column.form](row[place]) for row in rows], np.int64))
        return self.backend.run(relation, {relation: (columns, np.ones(len(rows), np.int64))})


@pytest.fixture(params=list(product(BACKENDS, ["i64", "f64", "i128"])), ids="-".join)
def probed(request: Any) -> Probed:
    return Probed(*request.param)


def numbers(slot: Any) -> list[Any]:
    if slot.ndim == 1:
        return list(slot.tolist())
    return [(high << 64) | (low & (2**64 - 1)) for low, high in slot.tolist()]


def test_an_emitted_delta_has_counts_and_sums(probed: Probed) -> None:
    """By A the rows sum up to (2, 5 - 7) and (2, 9 + 0); the delta of the rows themselves has counts only."""
    emitted = {delta.view: delta for delta in probed.run(ir.ROWS, [(1,), (2,), (3,)])}
    sums = emitted["sums"]
    assert ("A",) == sums.schema
    found = sorted(zip(sums.columns[0].tolist(), sums.counts.tolist(), *map(numbers, sums.slots), strict=True))
    assert [(1, 2, -2), (2, 2, 9)] == found
    assert [] == emitted["rows"].slots


def test_an_emitted_delta_without_rows_has_the_same_form(probed: Probed) -> None:
    full, empty = (probed.run(ir.ROWS, [(1,)]), probed.run(ir.ROWS, [(9,)]))
    assert [slot.dtype for slot in full[0].slots] == [slot.dtype for slot in empty[0].slots]
    assert [(0, *slot.shape[1:]) for slot in full[0].slots] == [slot.shape for slot in empty[0].slots]


def test_a_probe_leaves_cursors_and_transactions_alone(probed: Probed) -> None:
    cursor = probed.backend.open("all", [])
    first = len(cursor.next_block(1)[1])
    probed.run(ir.ROWS, [(1,), (2,)])
    assert len(ROWS) == first + len(cursor.next_block()[1])
    probed.backend.begin()
    probed.run(ir.ROWS, [(1,)])
    probed.backend.commit()
    assert 0 == len(cursor.next_block()[1])
    probed.run("R", [(5, 5, 5)])
    if cursor.pinned:
        assert 0 == len(cursor.next_block()[1])
        return
    with pytest.raises(probed.backend.stale_cursor):
        cursor.next_block()
