"""From the rows of a relation to the tuples of a leaf: constants, repeated variables, predicates, lifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ivme.algebra.ring import Joint, Payload, Ring, add, factor, is_nothing, lift, multiply, product, square
from ivme.engine.expression.row_expression import Row, getter
from ivme.engine.reference.indexed_map import Tally
from ivme.plan.ir.program import Lift, Source
from ivme.query.aggregates import JOINT
from ivme.query.model import Constant

Changes = Mapping[Row, int]
"""Rows with their change of multiplicity, consolidated."""


def load(source: Source, changes: Changes, tally: Tally, ring: Ring | None = None) -> dict[Row, Payload]:
    """The delta of a leaf: rows that pass, each as a tuple over the source's schema, consolidated.

    With a ring, payloads are products of its lifted values in place of the sums that the source asks for.
    """
    read = reader(source)
    delta: dict[Row, Payload] = {}
    for row, weight in changes.items():
        tally.operations += 1
        values = read(row)
        if values is None or weight == 0:
            continue
        lifted = _payload(source, values, weight, ring) if source.lifts else weight
        old = delta.get(values)
        delta[values] = lifted if old is None else add(old, lifted)
    return {values: payload for values, payload in delta.items() if not is_nothing(payload)}


def _payload(source: Source, values: Row, weight: int, ring: Ring | None) -> Payload:
    if ring is None:
        return lift(weight, tuple(_lifted(slot, values) for slot in source.lifts))
    payload: Payload = weight
    for slot in source.lifts:
        if slot is not None:
            payload = multiply(payload, ring.lift(source.atom.variables[slot.column], values[slot.column]))
    return payload


def reader(source: Source) -> Callable[[Row], Row | None]:
    """A function from a row of the relation to the tuple it stands for, or None if it does not pass."""
    atom = source.atom
    getters = [getter(column, source.row) for column in atom.columns]
    first = {variable: atom.terms.index(variable) for variable in atom.variables}
    repeats = [(i, first[t]) for i, t in enumerate(atom.terms) if isinstance(t, str) and first[t] != i]
    constants = [(i, t.value) for i, t in enumerate(atom.terms) if isinstance(t, Constant)]
    positions = [first[variable] for variable in atom.variables]
    where = None if atom.where is None else getter(atom.where, source.row)

    def read(row: Row) -> Row | None:
        if where is not None and where(row) is not True:
            return None
        values = [get(row) for get in getters]
        if any(values[i] is None or values[i] != constant for i, constant in constants):
            return None
        if any(values[i] != values[j] for i, j in repeats):
            return None
        result = tuple(values[position] for position in positions)
        return None if any(result[position] is None for position in source.not_null) else result

    return read


def _lifted(slot: Lift | None, values: Row) -> Any:
    """The value that a slot of the payload takes for one row of weight 1; NULL adds nothing."""
    if slot is not None and slot.function.startswith(JOINT):
        return Joint(factor(_lifted(replace(slot, function=slot.function.removeprefix(JOINT)), values)))
    if slot is not None and slot.function == "one":
        return 1
    if slot is None or values[slot.column] is None:
        return 0
    if slot.partner is not None:
        return 0 if values[slot.partner] is None else product(values[slot.column], values[slot.partner])
    if slot.function == "square":
        return square(values[slot.column])
    return 1 if slot.function == "count" else values[slot.column]
