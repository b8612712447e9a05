"""What a database installs for its views, assembled over the maps that are there; the engine executes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.installed import Installed, group_key
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.rebalancing import check_moves, measured_by, partitions_of
from ivme.plan.assemble.storage import Existing
from ivme.plan.ir.program import Enumeration, Map, Partition, Step
from ivme.query.typed import TypedQuery


@dataclass(frozen=True, slots=True)
class AssembledView:
    """What a view, or a check, runs on its own, over the maps of a group.

    A relation that it alone reads has its trigger; that of one which others read as well is assembled from all of them.
    """

    group: str
    name: str
    blueprint: Blueprint
    assembly: Assembly
    maps: tuple[Map, ...]
    declared: Existing
    triggers: dict[str, tuple[Step, ...]]
    build: tuple[Step, ...]
    """What fills its views from its leaves where none of them is filled."""
    enumeration: Enumeration
    partitions: tuple[Partition, ...]
    measured: tuple[str, ...]
    needed: list[str]
    """The maps that it needs."""

    def fits(self, group: str, maps: Existing, blueprint: Blueprint) -> bool:
        """Whether it can be installed in a group that has these maps now: what it shares is there under the same name,
        and what is new has a name that is free."""
        if self.group != group or self.blueprint is not blueprint:
            return False
        new = {stored[0] for key, stored in self.declared.items() if maps.get(key) != stored}
        return not any(key in maps for key, stored in self.declared.items() if stored[0] in new) and not any(
            name in new for name, _ in maps.values()
        )


def assemble_alone(group: str, maps: Existing, name: str, blueprint: Blueprint) -> AssembledView:
    """What a view runs, over the maps that are there. Takes long for large queries; needs no lock."""
    assembly = group_assembly(group, maps, {name: blueprint})
    triggers = {relation: assembly.trigger(relation) for relation in assembly.relations}
    check_moves(assembly)
    return completed_view(assembly, group, name, blueprint, triggers, assembly.build(name))


def completed_view(
    assembly: Assembly,
    group: str,
    name: str,
    blueprint: Blueprint,
    triggers: dict[str, tuple[Step, ...]],
    build: tuple[Step, ...],
) -> AssembledView:
    """With how rows are read, and the partitions. How keys move between their sides is assembled when some do: that
    takes longer than all of this, and reads by no other indexes (`check_moves`)."""
    enumeration = assembly.enumeration(name)
    partitions, measured = partitions_of(assembly), measured_by(assembly)
    stored, declared, needed = assembly.storage.maps(), assembly.storage.declared(), assembly.maps_of(name)
    return AssembledView(
        group,
        name,
        blueprint,
        assembly,
        stored,
        declared,
        triggers,
        build,
        enumeration,
        partitions,
        measured,
        needed,
    )


def assemble_triggers(
    group: str, maps: Existing, views: Mapping[str, Blueprint], relations: Iterable[str]
) -> tuple[dict[str, tuple[Step, ...]], tuple[Map, ...]]:
    """The triggers of some relations, for all views of a group that read one of them, and the maps that they read."""
    assembly = group_assembly(group, maps, views)
    triggers = {relation: assembly.trigger(relation) for relation in relations}
    return triggers, assembly.storage.maps()


def group_assembly(name: str, maps: Existing, blueprints: Mapping[str, Blueprint]) -> Assembly:
    """The assembly of some of a group's views, under the names that its maps have."""
    return Assembly(catalog_of(blueprints), maps, prefix=f"{name}.", exponents=False)


def assemble_view(name: str, typed: TypedQuery, plan: Plan, installed: Installed) -> AssembledView:
    """What has to be installed for a new view: what was drafted when its plan was chosen, if that fits."""
    group = installed.group(group_key(name, typed.slots, is_split=bool(plan.blueprint.splits)))
    draft = plan.draft
    if draft is None or not draft.fits(group, name, plan.blueprint):
        return assemble_alone(group.name, group.maps, name, plan.blueprint)
    triggers = {each.relation: each.steps for each in draft.program.triggers}
    return completed_view(draft.assembly, group.name, name, plan.blueprint, triggers, draft.program.build)
