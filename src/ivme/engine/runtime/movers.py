"""The triggers that take keys of a view's partitions from one side to the other.

Each is assembled and compiled when keys first move that way: to assemble them takes longer than all the rest of a view,
and in many views nothing is ever heavy. Keys that move little by little have all of theirs from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.engine.backend import Backend
from ivme.plan.ir.program import Partition

if TYPE_CHECKING:  # the assembler is loaded with the first view
    from ivme.plan.assemble.assembled import AssembledView


class Movers:
    """The moves of the only view of a group that has partitions.

    A change of the catalog replaces them, so that one that is rolled back has the moves of before again.
    """

    def __init__(self, group: str, backend: Backend, slots: tuple[str, ...], view: AssembledView | None = None) -> None:
        self._group = group
        self._backend = backend
        self._slots = slots
        self._view = view
        self._set: set[str] = set()
        self._found: set[str] = set()
        if view is not None and view.blueprint.gradual:
            for partition in view.partitions:
                self._make_gradual(partition, rising=True)
                self._make_gradual(partition, rising=False)

    def renewed(self, view: AssembledView | None) -> Movers:
        """Drops the moves of the view as it was before; those of the view as it is now, which are made as they come."""
        for name in self._set:
            self._backend.drop_trigger(name)
        for name in self._found:
            self._backend.drop_reader(name)
        return Movers(self._group, self._backend, self._slots, view)

    def mover(self, partition: str, rising: bool, views: bool) -> str:
        """The name of the trigger that moves keys, which is there from then on."""
        name = f"{self._group} {'raises' if rising else 'lowers'} {partition}{'' if views else ' in leaves'}"
        if name not in self._set:
            from ivme.plan.assemble.rebalancing import move_of

            assert self._view is not None, "only a view with partitions moves keys"
            assembly = self._view.assembly
            (split,) = [each for each in assembly.catalog.splits if each.name == partition]
            steps = move_of(assembly, split, rising=rising, views=views)
            self._backend.set_trigger(name, steps, self._slots)
            self._set.add(name)
        return name

    def gradual(self, partition: str, rising: bool) -> tuple[str, str, str]:
        """The names of what moves keys little by little: the flip, the reader of rows, and what carries them over."""
        name = f"{self._group} {'raises' if rising else 'lowers'} {partition}"
        return f"{name}: flip", f"{name}\0rows", f"{name}: rows"

    def _make_gradual(self, partition: Partition, *, rising: bool) -> None:
        from ivme.plan.assemble.rebalancing import gradual_move

        assert self._view is not None, "only a view with partitions moves keys"
        assembly = self._view.assembly
        (split,) = [each for each in assembly.catalog.splits if each.name == partition.name]
        made = gradual_move(assembly, split, rising=rising)
        flipper, finder, carrier = self.gradual(partition.name, rising)
        self._backend.set_trigger(flipper, made.flip, self._slots)
        self._backend.set_reader(finder, made.rows)
        self._backend.set_trigger(carrier, made.steps, self._slots)
        self._set |= {flipper, carrier}
        self._found.add(finder)
