"""Triggers of heavy and light parts for as long as nothing is heavy: what is left is as short as without parts.

Where no key is heavy, the parts with heavy sides are empty, and so are the views over them. A step that asks such a map
yields nothing, and one that asks for keys which it does not have yields all rows. Which maps stay empty is found from
the triggers themselves; the kernel checks that they are before it runs the short ones (`kernel/row_path.hpp`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ivme.plan.assemble.prune import without_dead_steps
from ivme.plan.ir import program as ir

Triggers = Mapping[str, Sequence[ir.Step]]


def light_triggers(triggers: Triggers) -> dict[str, tuple[tuple[ir.Step, ...], tuple[str, ...]]]:
    """The triggers while nothing is heavy, each with the maps of its own that have to be empty for that."""
    filled: set[str] = set()
    before = -1
    while before < len(filled):
        before = len(filled)
        for steps in triggers.values():
            filled.update(step.map for step in _left(steps, filled) if isinstance(step, ir.Add))
    found = {}
    for relation, steps in triggers.items():
        asked = {name for step in steps for name in _maps(step)}
        found[relation] = without_dead_steps(_left(steps, filled)), tuple(sorted(asked - filled))
    return found


def _maps(step: ir.Step) -> list[str]:
    """The maps that a step asks or changes."""
    if isinstance(step, ir.Join):
        return [read.map for read in step.reads]
    if isinstance(step, ir.Filter):
        return [step.read.map]
    return [step.map] if isinstance(step, ir.Add | ir.Exists | ir.Scan) else []


def _left(steps: Sequence[ir.Step], filled: set[str]) -> list[ir.Step]:
    """The steps that do something while only these maps have entries."""
    same: dict[str, str] = {}
    """For each delta that may have rows, the one that has the same."""
    left: list[ir.Step] = []
    for step in steps:
        if isinstance(step, ir.Load):
            same[step.target] = step.target
            left.append(step)
        elif isinstance(step, ir.Scan):
            raise AssertionError("a trigger scans nothing")
        elif step.origin in same:
            kept = _kept(step, same, filled)
            if kept is not None:
                left.append(kept)
                if not isinstance(kept, ir.Add | ir.Emit | ir.Watch):
                    same[kept.target] = kept.target
            elif isinstance(step, ir.Filter) and not step.present:
                same[step.target] = same[step.origin]
    return left


def _kept(step: ir.Step, same: Mapping[str, str], filled: set[str]) -> ir.Step | None:
    """A step under the names that are left; None if it yields nothing, or what it is given."""
    assert not isinstance(step, ir.Load | ir.Scan)
    if isinstance(step, ir.Filter) and step.read.map not in filled:
        return None
    if isinstance(step, ir.Join):
        reads = tuple(replace(read, pending=same.get(read.pending or "")) for read in step.reads)
        if any(read.map not in filled and read.pending is None for read in reads):
            return None
        step = replace(step, reads=reads)
    return replace(step, origin=same[step.origin])
