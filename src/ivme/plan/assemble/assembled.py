"""What a database installs for its views, assembled over the maps that are there; the engine executes it.

Views whose payloads have the same shape share maps and triggers: they are a group. A view with heavy and light parts is
a group of its own, since its leaves are parts that no other view reads. So are its checks, where they have such parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.plan import Check, Plan
from ivme.plan.assemble.rebalancing import measured_by, moves_of, partitions_of
from ivme.plan.assemble.storage import Existing
from ivme.plan.ir.program import Enumeration, Move, Partition, Step
from ivme.query.aggregates import payload_slots
from ivme.query.typed import TypedQuery

GroupKey = tuple[str, ...]
"""What the views of a group have in common: the types of their sums, and of a view with parts its name."""


@dataclass(frozen=True, slots=True)
class InstalledGroup:
    """A group as it stands: its name, its maps, and the blueprints of its views."""

    name: str
    maps: Existing = field(default_factory=dict)
    blueprints: Mapping[str, Blueprint] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Installed:
    """What a database has installed; `next_name` is that of the next group."""

    groups: Mapping[GroupKey, InstalledGroup]
    next_name: str

    def group(self, key: GroupKey) -> InstalledGroup:
        return self.groups.get(key) or InstalledGroup(self.next_name)


@dataclass(frozen=True, slots=True)
class Assembled:
    """What some views run together, assembled for the group of this name while it had these maps."""

    name: str
    maps: Existing
    blueprints: dict[str, Blueprint]
    assembly: Assembly
    triggers: dict[str, tuple[Step, ...]]
    enumerations: dict[str, Enumeration]
    moves: tuple[Move, ...]
    partitions: tuple[Partition, ...]
    measured: tuple[str, ...]

    def fits(self, name: str, maps: Existing, blueprints: Mapping[str, Blueprint]) -> bool:
        """Whether it is what a group would assemble now: nothing was installed or dropped in between."""
        same = self.blueprints.keys() == blueprints.keys()
        same = same and all(self.blueprints[view] is blueprint for view, blueprint in blueprints.items())
        return same and self.name == name and (self.maps is maps or not (self.maps or maps))


def assemble_group(name: str, maps: Existing, blueprints: Mapping[str, Blueprint]) -> Assembled:
    """What these views run, over the maps that are there. Takes long for large queries; needs no lock."""
    assembly = group_assembly(name, maps, blueprints)
    triggers = {relation: assembly.trigger(relation) for relation in assembly.relations}
    enumerations = {view: assembly.enumeration(view) for view in blueprints}
    for view in blueprints:
        assembly.build(view)  # declares the indexes that a build reads
    rebalancing = moves_of(assembly), partitions_of(assembly), measured_by(assembly)
    return Assembled(name, maps, dict(blueprints), assembly, triggers, enumerations, *rebalancing)


def group_assembly(name: str, maps: Existing, blueprints: Mapping[str, Blueprint]) -> Assembly:
    """The assembly of a group's views, under the names that its maps have."""
    return Assembly(catalog_of(blueprints), maps, prefix=f"{name}.", exponents=False)


def assemble_view(name: str, typed: TypedQuery, plan: Plan, installed: Installed) -> Assembled:
    """What has to be installed for a new view, together with those that it shares maps with."""
    key = group_key(name, typed.slots, plan.blueprint)
    checks = {
        each: check.blueprint
        for each, check in named_checks(name, plan).items()
        if key == group_key(each, check_slots(check, typed), check.blueprint)
    }
    group = installed.group(key)
    return assemble_group(group.name, group.maps, {**group.blueprints, name: plan.blueprint, **checks})


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
