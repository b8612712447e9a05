"""Between columns of codes, which the runtime has, and the deltas and items of the plain-Python engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ivme.algebra.exact import ExactSum
from ivme.algebra.ring import Joint, Payload, add, count, factor, lift, product, square
from ivme.engine.backend import Block, Codes
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.reference.interpreter import Delta
from ivme.engine.reference.partition import Noted
from ivme.plan.ir import program as ir
from ivme.query.aggregates import JOINT, reads_exactly

Types = tuple[str, ...]
"""The types of a payload's sums, none for a plain count."""

EmittedTypes = dict[str, list[Types]]


class PureOverflow(Exception):  # noqa: N818
    """A count that does not fit the compiled kernel's 64 bits: what one backend refuses, the other does, too."""


def block_of(items: Sequence[Any], enumeration: ir.Enumeration) -> Block:
    """Enumerated items as columns. Sums stay Python objects: integers of any size, floats, or words of decimals."""
    outputs = [np.array([row[i] for row, _, _ in items], dtype=np.int64) for i in range(len(enumeration.outputs))]
    payloads = [payload for _, payload, _ in items]
    exact = reads_exactly(enumeration.slots)
    slots = [
        _slot([p[i] if isinstance(p, tuple) else 0 for p in payloads], exact=exact)
        for i in range(1, len(enumeration.slots) + 1)
    ]
    return outputs, numbers_of([count(p) for p in payloads]), slots, _extremes(items, enumeration)


def _extremes(items: Sequence[Any], enumeration: ir.Enumeration) -> list[Codes]:
    """The extremes by column; all values of a group are a place in the last one, as the compiled kernel has it."""
    lists: list[int] = []
    columns = []
    for i, extreme in enumerate(enumeration.extremes):
        column: list[Any] = [NULL_CODE if values[i] is None else values[i] for _, _, values in items]
        if ir.is_listed(extreme.function):
            starts = []
            for entries in column:
                starts.append(len(lists))
                lists += [len(entries), *(word for entry in entries for word in entry)]
            column = starts
        columns.append(np.array(column, dtype=np.int64))
    if any(ir.is_listed(extreme.function) for extreme in enumeration.extremes):
        columns.append(np.array(lists, dtype=np.int64))
    return columns


def _slot(values: list[Any], *, exact: bool = False) -> Any:
    """A slot's values: floats, which may also stay as they are, or whole numbers of any size."""
    values = [value.value if isinstance(value, Joint) else value for value in values]
    if not any(isinstance(value, ExactSum) for value in values):
        return np.array(values, dtype=object)
    return values if exact else np.array(list(map(float, values)))


def load_columns(step: Any, columns: Sequence[Codes], weights: Codes) -> Delta:
    """What the compiled kernel's load step does (see `_kernel.pyi`)."""
    _, _, _, wanted, constants, repeats, never_null, lifts = step
    delta: Delta = {}
    lists = [column.tolist() for column in columns]
    for i, weight in enumerate(weights.tolist()):
        if any(lists[c][i] != code for c, code in constants) or any(lists[a][i] != lists[b][i] for a, b in repeats):
            continue
        if any(lists[c][i] == NULL_CODE for c in never_null):
            continue
        key = tuple(lists[c][i] for c in wanted)
        payload: Payload = weight
        if lifts:
            payload = lift(weight, tuple(_lifted(kind, c, lists, i) for kind, c in lifts))
        old = delta.get(key)
        delta[key] = payload if old is None else add(old, payload)
    return {key: p for key, p in delta.items() if any(p if isinstance(p, tuple) else (p,))}


def _lifted(kind: str, column: int, lists: list[list[int]], i: int) -> Any:
    if kind.startswith(JOINT):
        return Joint(factor(_lifted(kind.removeprefix(JOINT), column, lists, i)))
    if kind == "one":
        return 1
    code = lists[column][i]
    kind, is_square = kind.removesuffix(" square"), kind.endswith(" square")
    if kind == "none" or (code == NULL_CODE and kind != "wide"):
        return 0
    if kind == "float product":
        other = _lifted("float", column + 1, lists, i)
        return product(_lifted("float", column, lists, i), other) if lists[column + 1][i] != NULL_CODE else 0
    if is_square:
        return square(_lifted(kind, column, lists, i))
    if kind == "count":
        return 1
    if kind == "float":
        bits = np.int64(code if code >= 0 else code ^ (2**63 - 1))
        return float(bits.view(np.float64))
    if kind == "wide":
        return (lists[column + 1][i] << 64) | (code & (2**64 - 1))
    return code


def emitted_slots(steps: Sequence[ir.Step], slots: Types, maps: Mapping[str, Types]) -> EmittedTypes:
    """For each view and its emitted deltas in order, the types of the sums that their payloads carry."""
    carried: dict[str, Types] = {}
    emitted: EmittedTypes = {}
    for step in steps:
        match step:
            case ir.Load(target, source):
                carried[target] = slots if source.lifts else ()
            case ir.Scan(target, name, _, indicator):
                carried[target] = () if indicator else maps[name]
            case ir.Join(target, origin, reads, _, _):
                factors = [carried[origin], *(maps[read.map] for read in reads if read.payload)]
                carried[target] = max(factors, key=len)
            case ir.Rename() | ir.Project() | ir.Filter():
                carried[step.target] = carried[step.origin]
            case ir.Exists(target) | ir.Distinct(target):
                carried[target] = ()
            case ir.Emit(origin, view):
                emitted.setdefault(view, []).append(carried[origin])
    return emitted


def sums_of(delta: Mapping[Any, Payload], types: Types) -> list[Any]:
    """The sums of a delta by slot, whole numbers of any size or floats."""
    sums = [[p[i] if isinstance(p, tuple) else 0 for p in delta.values()] for i in range(1, len(types) + 1)]
    return [
        np.array(list(map(float, each)), np.float64) if type_ == "f64" else _slot(each)
        for each, type_ in zip(sums, types, strict=True)
    ]


def by_column(keys: Noted, width: int) -> tuple[list[Codes], list[Codes]]:
    rising, falling = (columns_of(dict.fromkeys(side), width) for side in keys)
    return rising, falling


def columns_of(delta: Mapping[Any, Any], width: int) -> list[Codes]:
    return [np.array([key[i] for key in delta], dtype=np.int64) for i in range(width)]


def counts_of(delta: Mapping[Any, Payload]) -> Codes:
    return numbers_of([count(payload) for payload in delta.values()])


def numbers_of(counts: list[int]) -> Codes:
    try:
        return np.array(counts, dtype=np.int64)
    except OverflowError:
        raise PureOverflow("a count does not fit 64 bits") from None


def check_range(payload: Payload | None, slots: Sequence[str]) -> None:
    values = payload if isinstance(payload, tuple) else (payload or 0,)
    for value, type_ in zip(values, ("i64", *slots), strict=False):
        if type_ == "i64" and not -(2**63) <= value < 2**63:
            raise PureOverflow("a count does not fit 64 bits")


_LIMITS = {"int": 2**63, "decimal": 10**38}


def fits(payload: Payload | None, limits: Sequence[str]) -> bool:
    """Whether the sums of an entry are within the limits of a map."""
    sums = payload[1:] if isinstance(payload, tuple) else ()
    totals = [total.value if isinstance(total, Joint) else total for total in sums]
    return all(not limit or abs(total) < _LIMITS[limit] for total, limit in zip(totals, limits, strict=False))
