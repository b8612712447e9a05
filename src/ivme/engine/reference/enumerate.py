"""Enumeration: nested view iterators over an access-top tree (source 003, section 4.2).

Every iterator is opened with the values of those before it as its context, so it yields only values that are in
the answer; the delay is constant. The payload of a row is the product of its factors (Figure 4.10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ivme.algebra.ring import Payload, add, count, multiply
from ivme.engine.expression.row_expression import Row
from ivme.engine.reference.indexed_map import IndexedMap
from ivme.engine.reference.pieces import PieceRows
from ivme.plan.ir.program import Enumeration, Extreme, Index, Loop, Read, long_guards, single_guards

if TYPE_CHECKING:
    from ivme.engine.reference.interpreter import PureKernel


def enumerate_items(
    enumeration: Enumeration, maps: Mapping[str, IndexedMap], inputs: Mapping[str, Any]
) -> Iterator[tuple[Row, Payload, Row]]:
    """The output tuples for the given inputs, each with its payload and the values of its ordered aggregates."""
    context = {variable: inputs[original] for variable, original in enumeration.inputs}
    if any(value is None for value in context.values()):
        return
    if enumeration.branches:
        yield from _union(enumeration, maps, context)
        return
    if not all(_finds(loop, maps[loop.read.map], context) for loop in single_guards(enumeration)):
        return
    if not _pass(long_guards(enumeration), maps, context):
        return
    for assignment in _nested(enumeration.loops, maps, context):
        payload = _product(enumeration.factors, maps, assignment)
        if payload is not None:
            extremes = tuple(_extreme(extreme, maps, assignment) for extreme in enumeration.extremes)
            yield tuple(assignment[variable] for variable in enumeration.outputs), payload, extremes


def _union(
    enumeration: Enumeration, maps: Mapping[str, IndexedMap], context: dict[str, Any]
) -> Iterator[tuple[Row, Payload, Row]]:
    """The rows of several branches, each once, with the sum of its payloads over all branches and contexts."""
    total: dict[Row, Payload] = {}
    for branch in enumeration.branches:
        for assignment in _nested(branch.loops, maps, context) if _pass(branch.guards, maps, context) else ():
            payload = _product(branch.factors, maps, assignment)
            if payload is not None:
                row = tuple(assignment[variable] for variable in enumeration.outputs)
                total[row] = add(total[row], payload) if row in total else payload
    yield from ((row, payload, ()) for row, payload in total.items() if count(payload))


def finds_by_steps(enumeration: Enumeration) -> bool:
    """Whether rows are found by steps over requests: of branches without outputs, or one that answers."""
    return any(branch.answer for branch in enumeration.branches) or bool(
        enumeration.branches and not enumeration.outputs
    )


def probed_items(
    enumeration: Enumeration, kernel: PureKernel, requests: Sequence[Row]
) -> Iterator[tuple[int, tuple[Row, Payload, Row]]]:
    """The rows of each request, in the order of these: summed over the probes of branches for a view without outputs,
    or by the steps that answer requests. What is read of maps is read at once."""
    originals = [original for _, original in enumeration.inputs]
    asked = [originals.index(original) for original in dict.fromkeys(originals)]
    keys = [tuple(request[i] for i in asked) for request in requests]
    if enumeration.outputs and enumeration.branches[0].pieces:
        return _pieced(enumeration, kernel, keys)
    total: dict[Row, dict[Row, Payload]] = {}
    for branch in enumeration.branches:
        steps = branch.answer if enumeration.outputs else branch.probe
        for deltas in kernel.execute(steps, lambda _: dict.fromkeys(keys, 1)).values():
            for key, payload in ((key, payload) for _, delta in deltas for key, payload in delta.items()):
                rows, row = total.setdefault(key[: len(asked)], {}), key[len(asked) :]
                rows[row] = add(rows[row], payload) if row in rows else payload
    return (
        (number, (row, payload, ()))
        for number, key in enumerate(keys)
        for row, payload in total.get(key, {}).items()
        if count(payload)
    )


def _pieced(
    enumeration: Enumeration, kernel: PureKernel, keys: Sequence[Row]
) -> Iterator[tuple[int, tuple[Row, Payload, Row]]]:
    """The same for a view whose rows are read off pieces."""
    (branch,) = enumeration.branches
    (emitted,) = kernel.execute(branch.answer, lambda _: dict.fromkeys(keys, 1)).values()
    deltas = [delta for _, delta in emitted]
    rows = PieceRows(branch.pieces, deltas, len(keys[0]) if keys else 0, enumeration.outputs, kernel.tally)
    return ((number, (*item, ())) for number, key in enumerate(keys) for item in rows.of(key))


def _pass(guards: tuple[tuple[Loop, ...], ...], maps: Mapping[str, IndexedMap], context: dict[str, Any]) -> bool:
    """Whether each guarded component has a row."""
    return all(any(True for _ in _nested(guard, maps, context)) for guard in guards)


def _nested(
    loops: tuple[Loop, ...], maps: Mapping[str, IndexedMap], context: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    if not loops:
        yield context
        return
    loop, rest = loops[0], loops[1:]
    for values in _open(loop, maps[loop.read.map], context):
        yield from _nested(rest, maps, {**context, **values})


def _finds(guard: Loop, stored: IndexedMap, context: dict[str, Any]) -> bool:
    """Whether a guard has a match, in O(1)."""
    if not guard.new:
        return stored.get(_key(guard.read, context)) is not None
    index, key = _index(guard, context)
    return stored.size(index, key) > 0


def _index(loop: Loop, context: dict[str, Any]) -> tuple[Index, Row]:
    names = loop.read.variables
    index = Index(
        tuple(i for i, name in enumerate(names) if name not in loop.new),
        tuple(i for i, name in enumerate(names) if name in loop.new),
    )
    return index, tuple(context[names[i] or ""] for i in index.key)


def _open(loop: Loop, stored: IndexedMap, context: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The values of the loop's new variables that go with the context; one empty answer if it only checks."""
    names = loop.read.variables
    if not loop.new:
        if stored.get(_key(loop.read, context)) is not None:
            yield {}
        return
    index, key = _index(loop, context)
    new = [names[i] or "" for i in index.values]
    for values in stored.matches(index, key):
        stored.tally.operations += 1
        yield dict(zip(new, values, strict=True))


def _product(
    factors: tuple[Read, ...], maps: Mapping[str, IndexedMap], assignment: Mapping[str, Any]
) -> Payload | None:
    payload: Payload = 1
    for found in [maps[factor.map].get(_key(factor, assignment)) for factor in factors]:
        if found is None:
            return None
        payload = multiply(payload, found)
    return payload


def _extreme(extreme: Extreme, maps: Mapping[str, IndexedMap], assignment: Mapping[str, Any]) -> Any:
    names = extreme.read.variables
    value = names.index(extreme.variable)
    index = Index(tuple(i for i in range(len(names)) if i != value), (value,))
    key = tuple(assignment[names[i] or ""] for i in index.key)
    return maps[extreme.read.map].extreme(index, key, extreme.function)


def _key(read: Read, assignment: Mapping[str, Any]) -> Row:
    return tuple(assignment[name or ""] for name in read.variables)
