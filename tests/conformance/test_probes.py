"""Steps that only read, outside of a transaction: what a probe of many rows returns, on both backends."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ivme.engine.backend import NativeBackend
from ivme.engine.pure_backend import PureBackend
from ivme.plan import program as ir
from ivme.query.rule import parse_rule
from tests.databases import BACKENDS

ONE = Fraction(1)


def load(target: str, relation: str, schema: tuple[str, ...], lifts: tuple[ir.Lift | None, ...] = ()) -> ir.Load:
    atom = parse_rule(f"Q({', '.join(schema)}) = {relation}({', '.join(schema)})").atoms[0]
    return ir.Load(target, ir.Source(atom, tuple(f"_{i}" for i, _ in enumerate(schema, 1)), schema, lifts=lifts))


def make_backend(kind: str, slot: str) -> Any:
    """V(A, B) holds a count and a sum; a trigger fills it, a reader enumerates it, a probe sums it up by A."""
    backend: Any = NativeBackend(7) if kind == "native" else PureBackend()
    backend.install([ir.Map("V", ("A", "B"), "view", ONE, sums=True, indexes=(ir.Index((0,), (1,)),))], [slot], {})
    filling = [load("d", "R", ("A", "B", "X"), (ir.Lift("sum", 2),)), ir.Project("s", "d", ("A", "B")), ir.Add("s", "V")]
    backend.set_trigger("R", filling, [slot])
    read = ir.Read("V", ("A", "B"))
    probe = [
        load("d", ir.ROWS, ("A",)),
        ir.Join("j", "d", (read,), ("A", "B"), ONE),
        ir.Project("p", "j", ("A",)),
        ir.Emit("p", "sums"),
        ir.Emit("d", "rows"),
    ]
    backend.set_trigger("probe", probe, [slot])
    loops = (ir.Loop(read, ("A", "B")),)
    backend.set_reader("all", ir.Enumeration((), ("A", "B"), (("sum", "X"),), loops, (read,)))
    return backend


def run(backend: Any, name: str, relation: str, *columns: list[int]) -> Any:
    codes = [np.array(column, np.int64) for column in columns]
    return backend.run(name, {relation: (codes, np.ones(len(codes[0]), np.int64))})


def fill(backend: Any, slot: str) -> None:
    """The values 5, 7 and 9, as this slot takes them."""
    values = [5, 7, 9]
    if slot == "f64":
        values = np.array(values, np.float64).view(np.int64).tolist()
    wide = [[0, 0, 0]] if slot == "i128" else []
    run(backend, "R", "R", [1, 1, 2], [1, 2, 1], values, *wide)


def feeds_in_order(backend: Any, slot: str) -> None:
    columns = {"i64": ["code", "code", "int"], "f64": ["code", "code", "float"], "i128": ["code", "code", "low", "high"]}
    feed = backend.set_trigger(
        "R",
        [load("d", "R", ("A", "B", "X"), (ir.Lift("sum", 2),)), ir.Project("s", "d", ("A", "B")), ir.Add("s", "V")],
        [slot],
    )["R"]
    assert columns[slot] == [column.form for column in feed.columns if column.form != "code"] or feed
