"""What a database installs for its views, assembled over the maps that are there; the engine executes it.

Views whose payloads have the same shape share maps and triggers: they are a group. A view with heavy and light parts is
a group of its own, since its leaves are parts that no other view reads. So are its checks, where they have such parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.plan import Check, Plan
from ivme.plan.assemble.rebalancing import measured_by, moves_of, partitions_of
from ivme.plan.assemble.storage import Existing
from ivme.plan.ir.program import Enumeration, Map, Move, Partition, Step
from ivme.query.aggregates import payload_slots
from ivme.query.typed import TypedQuery

GroupKey = tuple[str, ...]
"""What the views of a group have in common: the types of their sums, and of a view with parts its name."""


@dataclass(frozen=True, slots=True)
class InstalledGroup:
    """A group as it stands: its name and its maps."""

    name: str
    maps: Existing = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Installed:
    """What a database has installed; `next_name` is that of the next group."""

    groups: Mapping[GroupKey, InstalledGroup]
    next_name: str

    def group(self, key: GroupKey) -> InstalledGroup:
        return self.groups.get(key) or InstalledGroup(self.next_name)


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
    enumeration: Enumeration
    moves: tuple[Move, ...]
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
    enumeration = assembly.enumeration(name)
    assembly.build(name)  # declares the indexes that a build reads
    moves, partitions, measured = moves_of(assembly), partitions_of(assembly), measured_by(assembly)
    stored, declared, needed = assembly.storage.maps(), assembly.storage.declared(), assembly.maps_of(name)
    return AssembledView(
        group,
        name,
        blueprint,
        assembly,
        stored,
        declared,
        triggers,
        enumeration,
        moves,
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
    """What has to be installed for a new view."""
    group = installed.group(group_key(name, typed.slots, plan.blueprint))
    return assemble_alone(group.name, group.maps, name, plan.blueprint)


def group_key(name: str, slots: tuple[str, ...], blueprint: Blueprint) -> GroupKey:
    """The group of a view or a check: that of its slots; one with heavy and light parts is alone."""
    return (*slots, "skew", name) if blueprint.splits else slots


def named_checks(view: str, plan: Plan) -> dict[str, Check]:
    """The checks of a plan by the names that they get, which no view has."""
    return {f"\0check {number}\0{view}": check for number, check in enumerate(plan.checks)}


def view_of(name: str) -> str:
    """The view that a view or a check of this name belongs to."""
    return name.rpartition("\0")[2]


def check_slots(check: Check, typed: TypedQuery) -> tuple[str, ...]:
    """The sums in the payloads of a check: those of its view, or none."""
    return typed.slots if payload_slots(check.query) else ()
