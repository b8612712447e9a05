"""Sums that are stored as they are shown: they must fit their types when a batch is committed.

Where the payload of a row is a single entry of a map, the kernel notes the entries whose sums exceed their types
(`Backend.limit`), and the batch that leaves one so is refused. A sum that is a product of several entries' payloads is
made when it is read, and refused then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ivme.engine.runtime.following import representatives
from ivme.errors import DataError
from ivme.query.aggregates import slots_of

Misfit = tuple[str, tuple[int, ...]]
"""A map, and the key of an entry of it that has a sum beyond its limit."""

if TYPE_CHECKING:
    from ivme.engine.backend import Backend
    from ivme.engine.runtime.shared_views import SharedViews
    from ivme.engine.runtime.view_state import ViewState
    from ivme.plan.ir.program import Enumeration, Read
    from ivme.query.typed import TypedQuery


def limit_sums(backend: Backend, group: SharedViews, typed: Mapping[str, TypedQuery]) -> list[Misfit]:
    """Tells the backend what the sums of a group's maps must fit, and the group which views show them.

    Entries that were there before and do not fit are returned. A check, which is not among `typed`, shows none.
    """
    limits: dict[str, list[str]] = {}
    stored: dict[str, list[str]] = {}
    for view, enumeration in group.enumerations.items():
        read = _whole_payload(enumeration)
        if read is None or view not in typed or group.blueprints[view].lazy:
            continue
        for i, limit in enumerate(_limits(typed[view], enumeration)):
            if limit:
                limits.setdefault(read.map, [""] * len(enumeration.slots))[i] = limit
                stored.setdefault(read.map, []).append(view)
    gone = {name: [""] * len(group.slots) for name in group.limits if name not in limits}
    changed = {name: mine for name, mine in {**gone, **limits}.items() if group.limits.get(name) != mine}
    misfits = [
        (name, codes)
        for name, mine in changed.items()
        if group.sizes([name]) != [None]
        for codes in backend.limit(name, mine)
    ]
    group.stored_sums, group.limits = stored, limits
    return misfits


def _whole_payload(enumeration: Enumeration) -> Read | None:
    """The one read that has the whole payload of a row and all its variables; None if there is none."""
    if enumeration.branches or len(enumeration.factors) != 1:
        return None
    (read,) = enumeration.factors
    found = set(read.variables)
    inputs = {original: name for name, original in enumeration.inputs if name in found}
    names = {original for _, original in enumeration.inputs}
    return read if names == inputs.keys() and found == {*inputs.values(), *enumeration.outputs} else None


def _limits(typed: TypedQuery, enumeration: Enumeration) -> list[str]:
    """For each slot the type that a sum must fit; empty if it is not shown, or always fits."""
    shown = {slots_of(a)[1] for a in typed.query.aggregates if a.function in ("sum", "sum_product")}
    kinds = [typed.types[variable].kind for _, variable, *_ in enumeration.slots]
    return [
        kind if slot in shown and kind != "float" else "" for slot, kind in zip(enumeration.slots, kinds, strict=True)
    ]


def check_row(state: ViewState, codes: Sequence[int]) -> None:
    """Reads the row of an entry of the view's map; DataError if it does not fit. A row may also not be there."""
    enumeration = state.group.enumerations[state.name]
    (read,) = enumeration.factors
    found = dict(zip(read.variables, codes, strict=True))
    inputs = {original: found[name] for name, original in enumeration.inputs if name in found}
    outputs = [np.array([found[variable]], np.int64) for variable in enumeration.outputs]
    given = [np.array([inputs[variable]], np.int64) for variable in state.typed.query.input]
    _, (_, counts, slots, extremes) = state.group.points(state.name, representatives(state, [*given, *outputs]))
    decode = state.finisher.domain
    values = {variable: decode(variable).decode_value(code) for variable, code in inputs.items()}
    block = ([column[: len(counts)] for column in outputs], counts, slots, extremes)
    try:
        list(state.finisher.rows(block, values))
    except DataError as error:
        raise DataError(f"{error}; nothing was changed") from None
