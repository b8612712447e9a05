"""How large the parts of a view are: the maps of its program, and the heavy and light sides of its relations."""

from __future__ import annotations

from typing import Any

from ivme.plan.ir.program import Program
from ivme.view import View


def view_stats(view: View) -> dict[str, Any]:
    """What `v.stats()` says, with the sizes of maps under the names that `explain` has for them.

    Which maps these are is found out before the lock is taken: that takes some milliseconds, and nothing waits for it.
    """
    state = view.state
    if state.plan is None:
        return {**view.stats(), "maps": {}, "parts": []}
    program, group = state.plan.program, state.group
    names = group.map_names(view.name, state.plan.blueprint)
    with view.lock:
        view.check_alive()
        sizes = dict(zip((declared.name for declared in program.maps), group.sizes(names), strict=True))
        return {
            "strategy": state.explanation.strategy,
            "maps": sizes,
            "parts": _parts(program, sizes),
            **view.engine_stats(),
            **({} if group.rebalancer is None else group.rebalancer.stats()),
        }


def _parts(program: Program, sizes: dict[str, int | None]) -> list[dict[str, Any]]:
    """The parts of relations that N is counted by, with their HL-signatures; none if nothing is split."""
    found = []
    for declared in program.maps:
        if declared.name in program.measured:
            source = program.source(declared.atoms[0])
            sides = [{"key": list(side.key), "heavy": side.heavy} for side in source.part]
            found.append({"relation": source.atom.relation, "sides": sides, "rows": sizes[declared.name]})
    return found
