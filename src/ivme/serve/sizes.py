"""How large the parts of a view are: the maps of its program, and the heavy and light sides of its relations."""

from __future__ import annotations

from typing import Any

from ivme.plan.program import Program
from ivme.view import View


def view_stats(view: View) -> dict[str, Any]:
    """What `v.stats()` says, with the sizes of maps under the names that `explain` has for them."""
    state = view._state
    with view._runtime.lock:
        found = {**view.stats(), "maps": {}, "parts": []}
        if state.plan is None:
            return found
        program = state.plan.program
        sizes = state.group.sizes(view.name, state.plan.blueprint)
    found["maps"] = {declared.name: size for declared, size in zip(program.maps, sizes, strict=True)}
    found["parts"] = _parts(program, found["maps"])
    return found


def _parts(program: Program, sizes: dict[str, int | None]) -> list[dict[str, Any]]:
    """The parts of relations that N is counted by, with their HL-signatures; none if nothing is split."""
    found = []
    for declared in program.maps:
        if declared.name in program.measured:
            source = program.source(declared.atoms[0])
            sides = [{"key": list(side.key), "heavy": side.heavy} for side in source.part]
            found.append({"relation": source.atom.relation, "sides": sides, "rows": sizes[declared.name]})
    return found
