"""A blueprint assembled as far as its costs need it, under the names that it has where it would be installed.

A plan that is compared is drafted: its triggers and its build are assembled, and its costs are read off their joins, so
that what is printed is what runs. The draft of the plan that is chosen is completed by how rows are read, and
installed; those of the others are thrown away. Without a site, which an explanation has none of, names are the query's.
"""

from __future__ import annotations

from dataclasses import dataclass

from ivme.plan.assemble.assemble import Assembly
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.assemble.catalog import catalog_of, qualifier
from ivme.plan.assemble.rebalancing import check_moves
from ivme.plan.ir.program import Enumeration, Program, Trigger
from ivme.site import Group, Site

_UNREAD = Enumeration((), (), (), (), ())


@dataclass(frozen=True, slots=True)
class Draft:
    """The assembly of a blueprint for a view of this name. `program` has no enumeration, moves and partitions yet."""

    assembly: Assembly
    blueprint: Blueprint
    group: Group
    name: str
    program: Program

    def partition(self, name: str) -> str:
        """What a partition of the blueprint is called in the assembly."""
        return f"{qualifier(self.name)}{name}"

    def fits(self, group: Group, name: str, blueprint: Blueprint) -> bool:
        """Whether this is what would be assembled for a view in a group as it stands."""
        return self.group == group and self.name == name and self.blueprint is blueprint


def drafted(blueprint: Blueprint, site: Site | None) -> Draft:
    """The draft of a blueprint for the site of its view."""
    name, group = "", Group()
    if site is not None:
        name, group = site.view, site.parted if blueprint.splits else site.plain
    prefix = f"{group.name}." if group.name else ""
    assembly = Assembly(catalog_of({name: blueprint}), group.maps, prefix)
    triggers = tuple(Trigger(relation, assembly.trigger(relation)) for relation in assembly.relations)
    build = assembly.build(name)
    check_moves(assembly)
    sources = assembly.catalog.blueprints[name].leaves.sources
    program = Program(sources, assembly.storage.maps(), triggers, build, _UNREAD, blueprint.lazy)
    return Draft(assembly, blueprint, group, name, program)
