"""Views that share maps: one set of triggers for all views whose payloads have the same shape.

A view that comes, goes, is followed or no longer, is assembled on its own over the maps that are there, which keep
their contents and their names: this takes as long as the view is large, however many others there are. The trigger of
a relation that several views read is assembled from all of them when the relation next changes, once for all that came
until then (decision 0250).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING

from ivme.engine.backend import Backend, Block, Codes, Cursor, EmittedDelta, Listed
from ivme.engine.codes.domains import Domain, Domains
from ivme.engine.ingest.feed import Feed
from ivme.engine.runtime.gradual import GradualRebalancer
from ivme.engine.runtime.movers import Movers
from ivme.engine.runtime.observed import Observed
from ivme.engine.runtime.rebalance import Rebalancer
from ivme.engine.runtime.view_readers import ViewReaders, point_reader
from ivme.plan.ir.program import Add, Emit, Enumeration, Map, Step
from ivme.query.types import Type
from ivme.site import Group

if TYPE_CHECKING:  # the assembler is loaded with the first view
    from ivme.plan.assemble.assembled import AssembledView
    from ivme.plan.assemble.blueprint import Blueprint
    from ivme.plan.assemble.storage import Existing
    from ivme.plan.assemble.tuning import Tuning

Types = Mapping[str, Mapping[str, Type]]
"""The types of the variables of each view."""


@dataclass(frozen=True, slots=True)
class LightTrigger:
    """A trigger that does the same as another while some maps are empty, and what it takes."""

    name: str
    feed: Feed
    empty: tuple[str, ...]


class SharedViews:
    """The views of one payload shape; `slots` are the types of the sums beside the count.

    A view with partitions is a group of its own: its leaves are parts that no other view shares, and its batches are
    cut where it has to be rebalanced.
    """

    shares_reading = True
    """Whether several threads may read its views at a time."""

    takes_nan = False
    """Whether its rows may come from others that have what no table holds, a sum of floats that is not a number."""

    def __init__(
        self, name: str, key: tuple[str, ...], backend: Backend, domains: Domains, slots: tuple[str, ...]
    ) -> None:
        self.name = name
        self.key = key
        self.slots = slots
        self.enumerations: dict[str, Enumeration] = {}
        self.blueprints: dict[str, Blueprint] = {}
        self.views: dict[str, AssembledView] = {}
        self.stored_sums: dict[str, list[str]] = {}
        self.limits: dict[str, list[str]] = {}
        self.rebalancer: Rebalancer | None = None
        self.observed = Observed()
        self.tuning: Tuning | None = None
        self._backend = backend
        self._domains = domains
        self._maps: Existing = {}
        self._names: dict[str, tuple[Existing, list[str]]] = {}
        self._trigger_feeds: dict[str, Feed] = {}
        self._outdated: frozenset[str] = frozenset()
        self._light: dict[str, LightTrigger] = {}
        self._movers = Movers(name, backend, slots)
        self._readers = ViewReaders(backend, slots)

    def light_trigger(self, relation: str) -> LightTrigger | None:
        """What does the same as a trigger of a view with parts while nothing is heavy, made with those of its other
        relations when it is first needed; None of a followed view, which emits its changes."""
        if relation not in self._light:
            view = next(view for view in self.views.values() if relation in view.triggers)
            if any(isinstance(step, Emit) for step in view.triggers[relation]):
                return None
            from ivme.plan.assemble.light import light_triggers

            found = light_triggers(view.triggers)
            self._light = {**self._light, **{each: self._set_light(each, *light) for each, light in found.items()}}
        return self._light[relation]

    def _set_light(self, relation: str, steps: Sequence[Step], empty: tuple[str, ...]) -> LightTrigger:
        name = f"{self.trigger(relation)} while nothing is heavy"
        return LightTrigger(name, self._backend.set_trigger(name, steps, self.slots).get(relation, Feed(())), empty)

    def trigger(self, relation: str) -> str:
        """The name of the trigger for a relation."""
        return f"{self.name} on {relation}"

    def reads(self, relation: str) -> bool:
        """Whether a view of the group reads a relation."""
        return relation in self._trigger_feeds or relation in self._outdated

    def feed(self, relation: str) -> Feed:
        """What the trigger of a relation that it reads takes; the trigger is there from then on."""
        self.complete_triggers()
        return self._trigger_feeds[relation]

    def complete_triggers(self) -> None:
        """Assembles the triggers that are outdated. If it is interrupted, they are outdated still."""
        if not self._outdated:
            return
        from ivme.plan.assemble.assembled import assemble_triggers

        relations = sorted(self._outdated)
        readers = {name: view.blueprint for name, view in self.views.items() if self._outdated & view.triggers.keys()}
        triggers, maps = assemble_triggers(self.name, self._maps, readers, relations)
        self._backend.install(maps, self.slots, {})
        feeds = {relation: self._set_trigger(relation, steps) for relation, steps in triggers.items()}
        self._trigger_feeds = {**self._trigger_feeds, **feeds}
        self._outdated = frozenset()

    def _set_trigger(self, relation: str, steps: Sequence[Step]) -> Feed:
        return self._backend.set_trigger(self.trigger(relation), steps, self.slots).get(relation, Feed(()))

    def _drop_trigger(self, relation: str) -> None:
        self._backend.drop_trigger(self.trigger(relation))
        if relation in self._light:
            self._backend.drop_trigger(self._light[relation].name)
            self._light = {other: light for other, light in self._light.items() if other != relation}

    def installed(self) -> Group:
        """What the compiler has to know of the group: its maps are never changed, only replaced."""
        return Group(self.name, self._maps)

    def changed_by(self, blueprints: Mapping[str, Blueprint]) -> list[str]:
        """The views that `install` would assemble."""
        return [name for name, blueprint in blueprints.items() if self.blueprints.get(name) is not blueprint]

    def install(
        self, blueprints: Mapping[str, Blueprint], types: Types, prepared: AssembledView | None = None
    ) -> frozenset[str]:
        """Takes these views and no others; which maps held data before. What was `prepared` is taken if it still fits.

        If it fails, or what comes after it, another call with the blueprints as they were puts everything back:
        maps that hold data are dropped only at the end, and those that came are known from the start.
        """
        before = frozenset(name for name, _ in self._maps.values())
        new = self._assembled(blueprints, prepared)
        gone = [view for name, view in self.views.items() if name not in blueprints]
        left = [view for name, view in self.views.items() if name in new]
        self._maps = {**self._maps, **{key: stored for view in new.values() for key, stored in view.declared.items()}}
        self.views = {name: new.get(name) or self.views[name] for name in blueprints}
        self.blueprints = dict(blueprints)
        for name, view in new.items():
            for declared in view.maps:
                self._backend.install((declared,), self.slots, self._orders(declared, view, types[name]))
        self._split()
        self._renew_triggers({relation for view in (*gone, *left, *new.values()) for relation in view.triggers})
        for name, view in new.items():
            values = [each.variable for each in view.enumeration.gathered]
            self._readers.set(name, view.enumeration, self._domains_of(values, view, types[name]))
        for view in gone:
            self._forget(view.name)
        self.enumerations = {name: view.enumeration for name, view in self.views.items()}
        if gone or left:
            self._maps = {key: stored for view in self.views.values() for key, stored in view.declared.items()}
            for name in before - {name for name, _ in self._maps.values()}:
                self._backend.drop_map(name)
        return before

    def _assembled(
        self, blueprints: Mapping[str, Blueprint], prepared: AssembledView | None
    ) -> dict[str, AssembledView]:
        """The views that are new, or have another blueprint than before."""
        from ivme.plan.assemble.assembled import assemble_alone

        found: dict[str, AssembledView] = {}
        maps = self._maps
        for name in self.changed_by(blueprints):
            made = prepared if prepared is not None and prepared.name == name else None
            if made is None or not made.fits(self.name, maps, blueprints[name]):
                made = assemble_alone(self.name, maps, name, blueprints[name])
            found[name] = made
            maps = {**maps, **made.declared}
        return found

    def _renew_triggers(self, relations: set[str]) -> None:
        """Sets the triggers of relations that one view reads; drops those that are outdated, or that nothing reads."""
        outdated = self._outdated - relations
        feeds = {relation: feed for relation, feed in self._trigger_feeds.items() if relation not in relations}
        for relation in sorted(relations):
            readers = [view for view in self.views.values() if relation in view.triggers]
            if len(readers) == 1:
                self._drop_trigger(relation)
                feeds[relation] = self._set_trigger(relation, readers[0].triggers[relation])
            else:
                self._drop_trigger(relation)
                outdated |= {relation} if readers else set()
        self._trigger_feeds, self._outdated = feeds, outdated

    def _split(self) -> None:
        """Declares the partitions of the only view that has any; what was there before goes on."""
        parted = next((view for view in self.views.values() if view.partitions), None)
        old = () if self.rebalancer is None else self.rebalancer.partitions
        partitions, measured = ((), ()) if parted is None else (parted.partitions, parted.measured)
        for relation in self._trigger_feeds if old else ():
            self._drop_trigger(relation)  # they watch the partitions
        for partition in old:
            self._backend.drop_partition(partition.name)
        for partition in partitions:
            self._backend.set_partition(partition)
        self._movers = self._movers.renewed(parted)
        if parted is None:
            self.rebalancer = None
        elif self.rebalancer is None:
            retune = None if self.tuning is None else self._retuned
            given = self._backend, partitions, measured, self._mover, retune
            gradual = parted.blueprint.gradual
            self.rebalancer = GradualRebalancer(*given, self._gradual_move) if gradual else Rebalancer(*given)
        else:
            self.rebalancer.resume(partitions, measured)

    def _mover(self, partition: str, rising: bool, views: bool) -> str:
        return self._movers.mover(partition, rising, views)

    def _gradual_move(self, partition: str, rising: bool) -> tuple[str, str, str]:
        return self._movers.gradual(partition, rising)

    def _retuned(self, size: int) -> Fraction:
        """The ε for a view that chooses its own, from what it has been used for."""
        assert self.tuning is not None
        return self.tuning.epsilon(size, self.observed.workload())

    def run(self, relation: str, columns: Sequence[Codes], weights: Codes) -> list[EmittedDelta]:
        """Takes the changed rows of a relation, in pieces if they may need rebalancing."""
        trigger = self.trigger(relation)
        if self.rebalancer is None:
            return self._backend.run(trigger, {relation: (columns, weights)})
        emitted: list[EmittedDelta] = []
        if not self.rebalancer.is_one_piece(columns, len(weights)):
            columns, weights = self._backend.net(columns, weights)
        for piece in self.rebalancer.pieces(columns, len(weights)):
            rows = [column[piece] for column in columns], weights[piece]
            emitted += self._backend.run(trigger, {relation: rows})
            self.settle(len(rows[1]))
        return emitted

    def begin(self) -> None:
        """From here on `roll_back` puts the thresholds back; the maps are the kernel's."""
        if self.rebalancer is not None:
            self.rebalancer.begin()

    def settle(self, rows: int) -> None:
        """After rows have come or gone: moves whatever is on the wrong side of a partition."""
        if self.rebalancer is not None:
            self.observed.updates += rows
            self.rebalancer.settle(rows)

    def commit(self) -> None:
        """Thresholds are changed in place."""

    def roll_back(self) -> None:
        if self.rebalancer is not None:
            self.rebalancer.roll_back()

    def held_codes(self) -> list[Codes]:
        """The codes that it has outside of maps."""
        return [] if self.rebalancer is None else self.rebalancer.held_codes()

    def is_lazy(self, view: str) -> bool:
        """Whether rows of its requests are read while they are taken."""
        return self._readers.is_lazy(view)

    def open(self, view: str, inputs: Sequence[int], *, whole: bool = False) -> Cursor:
        """Begins to read an access request; see `Backend.open`."""
        self.observed.requests += 1
        return self._readers.open(view, inputs, whole=whole)

    def request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:
        """The answer to one access request as lists; None if it may have more rows than the limit."""
        return self._answer(view, inputs, limit, waits=True)

    def try_request(self, view: str, inputs: Sequence[int], limit: int) -> Listed | None:
        """The same without waiting; None also while a writer is at work."""
        return self._answer(view, inputs, limit, waits=False)

    def _answer(self, view: str, inputs: Sequence[int], limit: int, *, waits: bool) -> Listed | None:
        answer = self._readers.request(view, inputs, limit, waits=waits)
        if answer is not None and self.rebalancer is not None:
            self.observed.requests += 1
            self.observed.rows += len(answer[1])
        return answer

    def request_many(self, view: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The rows of many access requests, each with the number of its request."""
        return self._readers.request_many(view, columns)

    def points(self, view: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        """The payloads of rows whose inputs and outputs are given, each with the number of its row."""
        return self.request_many(point_reader(view), columns)

    def net(self, columns: Sequence[Codes], weights: Codes) -> tuple[list[Codes], Codes]:
        """Rows with equal codes as one, with the sum of their weights; none where that is zero."""
        return self._backend.net(columns, weights)

    def identities(self, views: Iterable[str] | None = None) -> dict[str, str]:
        """For each map of these views, or of all, that is always up to date: a checksum of its definition."""
        found: dict[str, str] = {}
        for view in (self.views[name] for name in (self.views if views is None else views)):
            built = view.assembly.build(view.name) if view.blueprint.lazy else ()
            late = {step.map for step in built if isinstance(step, Add)}
            texts = view.assembly.storage.identities()
            found.update({name: _checksum((self.key, text)) for name, text in texts.items() if name not in late})
        return found

    def maps_of(self, view: str) -> list[str]:
        """The names of the maps that a view needs, those that it shares included: known since they were installed."""
        return self.views[view].needed

    def map_names(self, view: str, blueprint: Blueprint) -> list[str]:
        """The names that the maps of a view's own program have here, in its order; needs no lock.

        A map that is shared has the name that another view gave it, and a view that is followed may keep others:
        what is not there has a name that `sizes` does not know. Found out once for each set of maps.
        """
        maps = self._maps
        known = self._names.get(view)
        if known is None or known[0] is not maps:
            from ivme.plan.assemble.assemble import program_of
            from ivme.plan.assemble.assembled import group_assembly

            program = program_of(group_assembly(self.name, maps, {view: blueprint}), view)
            known = self._names[view] = (maps, [declared.name for declared in program.maps])
        return known[1]

    def sizes(self, names: Sequence[str]) -> list[int | None]:
        """How many entries maps have; None for one that is not stored now."""
        here = {name for name, _ in self._maps.values()}
        return [self._backend.size(name) if name in here else None for name in names]

    def _forget(self, view: str) -> None:
        self._names.pop(view, None)
        self._readers.drop(view)

    def _orders(self, declared: Map, view: AssembledView, types: Mapping[str, Type]) -> dict[str, Domain]:
        """How the values of a map's columns are compared where the order of their codes is not theirs."""
        if not declared.sorted_by and not declared.ranked_by:
            return {}
        domains = self._domains_of(declared.schema, view, types)
        return {variable: domain for variable, domain in domains.items() if not domain.orders_by_code}

    def _domains_of(
        self, variables: Iterable[str], view: AssembledView, types: Mapping[str, Type]
    ) -> dict[str, Domain]:
        originals = dict(view.blueprint.leaves.inputs)
        return {variable: self._domains.domain(types[originals.get(variable, variable)]) for variable in variables}


def _checksum(definition: object) -> str:
    return blake2b(repr(definition).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
