"""Steps that are not needed are left out, and sums of sums are taken in one step."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ivme.plan.ir import program as ir


def without_dead_steps(steps: list[ir.Step]) -> tuple[ir.Step, ...]:
    """The steps without those whose result is not used; what happens to maps stays the same."""
    sums = {step.target: step.origin for step in steps if isinstance(step, ir.Project)}
    uses = Counter([step.origin for step in steps if not isinstance(step, ir.Load | ir.Scan)])
    kept: list[ir.Step] = []
    wanted: set[str] = set()
    for step in reversed(steps):
        if isinstance(step, ir.Project) and uses[step.origin] == 1 and step.origin in sums:
            step = replace(step, origin=sums[step.origin])
        if isinstance(step, ir.Add | ir.Emit | ir.Watch) or step.target in wanted:
            kept.append(step)
            if not isinstance(step, ir.Load | ir.Scan):
                wanted.add(step.origin)
            if isinstance(step, ir.Join):
                wanted.update([read.pending for read in step.reads if read.pending])
    return tuple(reversed(kept))
