"""Views that share maps: one set of triggers for all views whose payloads have the same shape.

When a view comes or goes, or is followed or no longer, the triggers are assembled anew from all blueprints; maps that
exist already keep their contents and their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ivme.engine.backend import Backend, Block, Codes, Cursor, Listed
from ivme.engine.domains import Domain, Domains
from ivme.engine.feed import Feed
from ivme.plan.assemble import Assembly
from ivme.plan.blueprint import Blueprint
from ivme.plan.catalog import Catalog, catalog_of
from ivme.plan.program import Enumeration, Map
from ivme.plan.storage import Existing
from ivme.query.types import Type

Types = Mapping[str, Mapping[str, Type]]
"""The types of the variables of each view."""


class Group:
    """The views of one payload shape; `slots` are the types of the sums beside the count."""

    def __init__(self, name: str, backend: Backend, domains: Domains, slots: tuple[str, ...]) -> None:
        self.name = name
        self.slots = slots
        self.feeds: dict[str, Feed] = {}
        self.enumerations: dict[str, Enumeration] = {}
        self.blueprints: dict[str, Blueprint] = {}
        self.assembly = self._assembled({}, {})
        self._backend = backend
        self._domains = domains
        self._maps: Existing = {}

    def trigger(self, relation: str) -> str:
        """The name of the trigger for a relation."""
        return f"{self.name} on {relation}"

    def install(self, blueprints: Mapping[str, Blueprint], types: Types) -> frozenset[str]:
        """Takes these views and no others; which maps held data before.

        If it fails, or what comes after it, another call with the blueprints as they were puts everything back:
        maps that hold data are dropped only at the end, and those that came are known from the start.
        """
        before = frozenset(name for name, _ in self._maps.values())
        self.assembly = assembly = self._assembled(blueprints, self._maps)
        steps = {relation: assembly.trigger(relation) for relation in assembly.relations}
        enumerations = {view: assembly.enumeration(view) for view in blueprints}
        for view in blueprints:
            assembly.build(view)  # declares the indexes that a build reads
        wanted = assembly.storage.declared()
        self._maps = {**self._maps, **wanted}
        for declared in assembly.storage.maps():
            self._backend.install((declared,), self.slots, self._orders(declared, assembly.catalog, types))
        for relation, listed in steps.items():
            feeds = self._backend.set_trigger(self.trigger(relation), listed, self.slots)
            self.feeds[relation] = feeds.get(relation, Feed(()))
        for view, enumeration in enumerations.items():
            self._backend.set_reader(view, enumeration)
            self._backend.set_reader(point_reader(view), point(enumeration))
        self._forget(set(self.feeds) - set(steps), set(self.blueprints) - set(blueprints))
        self.enumerations, self.blueprints = enumerations, dict(blueprints)
        self._maps = wanted
        for name in before - {name for name, _ in wanted.values()}:
            self._backend.drop_map(name)
        return before

    def maps_of(self, view: str) -> list[str]:
        """The names of the maps that a view needs, those that it shares included."""
        alone = self._assembled({view: self.blueprints[view]}, self._maps)
        for relation in alone.relations:
            alone.trigger(relation)
        alone.enumeration(view)
        alone.build(view)
        return [name for name, _ in alone.storage.declared().values()]

    def open(self, view: str, inputs: Sequence[int]) -> Cursor:
        """The answer to an access request of a view, lazily."""
        return self._backend.open(view, inputs)

    def request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:
        """The answer to an access request as lists; None if it may have more rows than the limit."""
        return self._backend.request(view, inputs, limit)

    def request_many(self, reader: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The answers to many access requests; the reader is a view, or one of its single rows (`point_reader`)."""
        return self._backend.request_many(reader, columns)

    def _assembled(self, blueprints: Mapping[str, Blueprint], existing: Existing) -> Assembly:
        return Assembly(catalog_of(blueprints), existing, prefix=f"{self.name}.")

    def _forget(self, relations: set[str], views: set[str]) -> None:
        for relation in relations:
            self._backend.drop_trigger(self.trigger(relation))
            del self.feeds[relation]
        for view in views:
            self._backend.drop_reader(view)
            self._backend.drop_reader(point_reader(view))

    def _orders(self, declared: Map, catalog: Catalog, types: Types) -> dict[str, Domain]:
        """How the values of a map's columns are compared where the order of their codes is not theirs.

        Variables of different views may have one name and different types; those of one map are one view's.
        """
        view = next(v for v, b in catalog.blueprints.items() if declared.atoms[0] in b.labels)
        originals = dict(catalog.blueprints[view].leaves.inputs)
        domains = {v: self._domains.domain(types[view][originals.get(v, v)]) for v in declared.schema}
        return {variable: domain for variable, domain in domains.items() if not domain.orders_by_code}


def point_reader(view: str) -> str:
    """The name of the reader of single rows, which no view has."""
    return f"{view}\0"


def point(enumeration: Enumeration) -> Enumeration:
    """The enumeration of a single row: its outputs are given, too."""
    given = enumeration.inputs + tuple((variable, variable) for variable in enumeration.outputs)
    checks = tuple(loop for loop in enumeration.loops if not loop.new)
    return Enumeration(given, (), enumeration.slots, checks, enumeration.factors, enumeration.extremes)
