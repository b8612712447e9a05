"""Tables and views that come and go, while the data of the others stays.

Whatever fails on the way leaves the database as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.ingest.feed import Feed
from ivme.engine.runtime.catalog_change import catalog_change
from ivme.engine.runtime.decoding import RowDecoder
from ivme.engine.runtime.error_check import InstalledCheck
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.filling import fill_group
from ivme.engine.runtime.following import Followed, FollowedGroups, keeps_rows
from ivme.engine.runtime.memory import check_memory, limit_growth
from ivme.engine.runtime.shared_views import SharedViews
from ivme.engine.runtime.stored_sums import check_row, limit_sums
from ivme.engine.runtime.view_state import TableState, ViewState
from ivme.errors import ExpressionError, PlanError
from ivme.plan.assemble.installed import GroupKey, Installed, check_slots, group_key, named_checks, view_of
from ivme.plan.ir import program as ir
from ivme.query.functions.running import refuse_within_functions
from ivme.query.model import Aggregate, Atom, Table, column_refs

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.image import Image
    from ivme.engine.runtime.participant import MaintainedView
    from ivme.engine.runtime.reader import Reader
    from ivme.engine.runtime.transaction import Act
    from ivme.plan.assemble.assembled import AssembledView
    from ivme.plan.assemble.blueprint import Blueprint
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.explain.explanation import Explanation
    from ivme.query.typed import TypedQuery


class Installation:
    """Changes which tables and views a catalog has. Its callers hold `lock`."""

    def __init__(self, catalog: Catalog, reader: Reader) -> None:
        self.catalog = catalog
        self.reader = reader

    def catalog_change(self, undo: Iterable[Act] = (), then: Iterable[Act] = ()) -> AbstractContextManager[object]:
        """What is done to tables and views in this block is done as a whole, or not at all."""
        refuse_within_functions()
        return catalog_change(self.catalog, undo, then)

    def add_table(self, table: Table) -> None:
        """Declares a table: its rows, and an index on its primary key."""
        with self.catalog_change():
            domains = [self.catalog.domains.domain(declared_type(table, column)) for column in table.columns]
            state = TableState(table, domains, f"table {table.name}", Feed(()))
            self.set_checks(state, ring=False)
            self.catalog.tables[table.name] = state

    def set_checks(self, state: TableState, *, ring: bool) -> None:
        """Sets the trigger that stores a table's rows, which refuses negative multiplicities unless in ring mode."""
        state.feed = self.catalog.backend.set_table(
            state.rows, _whole(state.table), state.table.key_positions, ring=ring, keep_rows=state.table.keep_rows
        )
        state.ring = ring
        self.catalog.forget_inputs()

    def drop_table(self, name: str) -> None:
        with self.catalog_change():
            state = self.catalog.tables.pop(name)
            self.catalog.forget_inputs()
            self.catalog.backend.drop_table(state.rows)

    def installed(self) -> Installed:
        """What is there for a new view to share."""
        with self.catalog.lock:
            shared = {key: group.installed() for key, group in self.catalog.shared.items()}
            return Installed(shared, self._next_group())

    def add_view(
        self,
        name: str,
        typed: TypedQuery,
        explanation: Explanation,
        plan: Plan,
        table: Table,
        *,
        ring: bool = False,
        prepared: AssembledView | None = None,
        built: Image | None = None,
    ) -> ViewState:
        """Installs a view and fills it from the tables, or with what was `built`; on any error nothing stays behind."""
        relations = tuple(dict.fromkeys(atom.relation for atom in typed.query.atoms))
        self._check_ring(name, relations, ring=ring)
        if plan.blueprint.lazy:
            self._refuse_passing(name, relations, "it is computed when it is read")
        try:
            with self.catalog_change():
                limit_growth(self.catalog)
                self._follow_all(relations)
                group, finisher, checks = self._installed(name, typed, plan, plan.blueprint, prepared, built)
                state = ViewState(name, typed, plan, explanation, group, table, finisher, relations, ring, checks)
                self._complete(state)
                self.switch_rings(relations)
                check_memory(self.catalog)
        except ExpressionError as error:
            raise error.of_view(name) from error
        return self.catalog.views[name]

    def replace_plan(
        self,
        state: ViewState,
        explanation: Explanation,
        plan: Plan,
        prepared: AssembledView | None = None,
        built: Image | None = None,
    ) -> None:
        """Maintains a view by another plan from now on; who reads or follows it goes on. On any error nothing changes.

        Its old maps are given up first, but for those that others share; the kernel drops them when all is done.
        """
        with self.catalog_change():
            limit_growth(self.catalog)
            blueprint = replace(plan.followed, lazy=False) if state.followers else plan.blueprint
            self._leave(state)
            installed = self._installed(state.name, state.typed, plan, blueprint, prepared, built)
            state.plan, state.explanation, state.stale = plan, explanation, True
            state.group, state.finisher, state.checks = installed
            self._complete(state)
            check_memory(self.catalog)

    def _installed(
        self,
        name: str,
        typed: TypedQuery,
        plan: Plan,
        blueprint: Blueprint,
        prepared: AssembledView | None,
        built: Image | None,
    ) -> tuple[SharedViews, RowDecoder, tuple[InstalledCheck, ...]]:
        """Fills a view in the group that it belongs to: that, how its rows are decoded, and its checks."""
        group = self._group(typed.slots, group_key(name, typed.slots, is_split=bool(blueprint.splits)))
        group.tuning = plan.tuning
        checks = self._new_checks(name, typed, plan)
        mine = {check.name: check.plan.blueprint for check in checks if check.group is group}
        self._reinstall(group, {**group.blueprints, name: blueprint, **mine}, {name: typed}, prepared, built)
        return group, RowDecoder(typed, group.enumerations[name], self.catalog.domains), checks

    def _complete(self, state: ViewState) -> None:
        """Makes a view that was filled one of the catalog's, and its checks beside it, if it has no row too much."""
        name = state.name
        for stored, codes in self.catalog.misfits:
            if name in state.group.stored_sums.get(stored, ()):
                check_row(state, codes)
        for check in state.checks:
            if check.group is not state.group:
                blueprints = {**check.group.blueprints, check.name: check.plan.blueprint}
                self._reinstall(check.group, blueprints, {name: state.typed})
        self.catalog.views[name] = state
        self._refuse_failures(state)

    def _new_checks(self, name: str, typed: TypedQuery, plan: Plan) -> tuple[InstalledCheck, ...]:
        """The checks of a view, each with the group that it is to be installed in."""
        checks = []
        for each, check in named_checks(name, plan).items():
            slots = check_slots(check, typed)
            group = self._group(slots, group_key(each, slots, is_split=bool(check.blueprint.splits)))
            if check.blueprint.splits:
                group.tuning = check.tuning
            checks.append(InstalledCheck(each, group, check))
        return tuple(checks)

    def _refuse_failures(self, state: ViewState) -> None:
        """Raises ExpressionError if a view that was just filled shows a row for which an expression fails."""
        if state.lazy:
            return
        self.catalog.backend.begin()
        try:
            self.reader.check_failures(state)
        finally:
            self.catalog.backend.roll_back()

    def add_external(
        self, typed: TypedQuery, explanation: Explanation, table: Table, group: ExternalView, relation: str
    ) -> ViewState:
        """Fills a view that is not made of maps from the one relation that it reads, and maintains it from now on."""
        self._refuse_passing(table.name, (relation,), "it reads them again")
        finisher = RowDecoder(typed, group.enumerations[table.name], self.catalog.domains)
        state = ViewState(table.name, typed, None, explanation, group, table, finisher, (relation,))
        with self.catalog_change():
            self.add_participant(group)
            self.catalog.views[table.name] = state
        return state

    def add_block(self, typed: TypedQuery, explanation: Explanation, table: Table, group: ExternalView) -> ViewState:
        """Lets a union, or an order, pass rows on from now on."""
        finisher = RowDecoder(typed, group.enumerations[table.name], self.catalog.domains)
        state = ViewState(table.name, typed, None, explanation, group, table, finisher, group.relations)
        self._check_ring(table.name, group.relations, ring=False)
        with self.catalog_change():
            limit_growth(self.catalog)
            if group.needs_changes:
                self._follow_all(group.relations)
            group.fill()
            self.catalog.participants[table.name] = group
            self.catalog.views[table.name] = state
            self.catalog.forget_inputs()
            self.switch_rings(group.relations)
            check_memory(self.catalog)
        return state

    def add_participant(self, participant: MaintainedView) -> None:
        """Fills a view that maintains itself from its relations, and lets it take part in batches from now on."""
        self._check_ring(participant.name, participant.relations, ring=False)
        self._refuse_passing(participant.name, participant.relations, "it reads them again")
        with self.catalog_change():
            limit_growth(self.catalog)
            self._follow_all(participant.relations)
            participant.build({relation: self.reader.rows_to_feed(relation) for relation in participant.relations})
            self.catalog.participants[participant.name] = participant
            self.catalog.forget_inputs()
            self.switch_rings(participant.relations)
            check_memory(self.catalog)

    def _follow_all(self, relations: Iterable[str]) -> None:
        """Follows those that are views."""
        for relation in relations:
            if relation in self.catalog.views:
                self.follow(relation)

    def drop_view(self, name: str) -> None:
        """Forgets a view of any kind that no view is built on; its followers hear nothing any more."""
        with self.catalog_change():
            state = self.catalog.views.get(name)
            participant = self.catalog.participants.pop(name, None)
            if participant is not None:
                relations = participant.relations
            else:
                relations = self.catalog.views[name].relations
                self._leave(self.catalog.views[name])
            if state is None or _hears_changes(state):
                self._unfollow_all(relations)
            if state is not None:
                del self.catalog.views[name]
            self.catalog.queues.pop(name, None)
            self.catalog.forget_inputs()
            self.switch_rings(relations)

    def _unfollow_all(self, relations: Iterable[str]) -> None:
        for relation in relations:
            if relation in self.catalog.views:
                self.unfollow(relation)

    def _group(self, slots: tuple[str, ...], key: GroupKey) -> SharedViews:
        catalog = self.catalog
        if key not in catalog.shared:
            catalog.shared[key] = SharedViews(self._next_group(), key, catalog.backend, catalog.domains, slots)
            catalog.groups_made += 1
        return catalog.shared[key]

    def _next_group(self) -> str:
        return f"g{self.catalog.groups_made}"

    def _leave(self, state: ViewState) -> None:
        """Takes a view and its checks out of their groups, and a group away if nothing is left in it."""
        gone = {state.name, *(check.name for check in state.checks)}
        for group in dict.fromkeys((state.group, *(check.group for check in state.checks))):
            self._reinstall(group, {view: b for view, b in group.blueprints.items() if view not in gone}, {})
            if not group.blueprints:
                del self.catalog.shared[group.key]

    def _check_ring(self, name: str, relations: Iterable[str], *, ring: bool) -> None:
        """Negative multiplicities are for views in ring mode only."""
        for relation in () if ring else relations:
            if relation in self.catalog.views and self.catalog.views[relation].ring:
                raise PlanError(f"view {name} is built on {relation}, which is in ring mode; give it semantics='ring'")
            if relation in self.catalog.tables and self._has_negative(self.catalog.tables[relation]):
                raise PlanError(
                    f"table {relation} has rows with negative multiplicities, which only a view in ring mode takes; "
                    f"give view {name} semantics='ring', or insert what is missing first"
                )

    def _refuse_passing(self, name: str, relations: Iterable[str], why: str) -> None:
        """Refuses a view that wants the rows of a table after they came, if they are not kept."""
        for relation in relations:
            state = self.catalog.tables.get(relation)
            if state is not None and not state.table.keep_rows:
                raise PlanError(
                    f"view {name} cannot be over table {relation}, which keeps no rows: {why}; create a view of the "
                    f"columns and rows that it needs, which keeps them, and read that in place of {relation}"
                )

    def _has_negative(self, state: TableState) -> bool:
        return state.ring and bool((self.catalog.backend.scan(state.rows)[1] < 0).any())

    def switch_rings(self, relations: Iterable[str]) -> None:
        """Lets tables have negative multiplicities whose views are all in ring mode."""
        for state in (self.catalog.tables[name] for name in relations if name in self.catalog.tables):
            users = [view.ring for view in self.catalog.views.values() if state.table.name in view.relations]
            users += [False for each in self.catalog.participants.values() if state.table.name in each.relations]
            ring = state.table.keep_rows and ((bool(users) and all(users)) or self._has_negative(state))
            if ring != state.ring:
                self.set_checks(state, ring=ring)

    def follow(self, name: str) -> None:
        """From now on the changes of the view's rows are computed; within a change of the catalog.

        A view that is recomputed is maintained from here on: its change would else be the difference of two results.
        """
        state = self.catalog.views[name]
        if state.followers == 0:
            state.followed = Followed(state, self.catalog.change_layout(state))
        if isinstance(state.group, ExternalView):
            state.group.follow(True)
            if state.followers == 0 and not state.group.needs_changes:
                self._follow_all(state.group.relations)
        elif state.followers == 0 and state.plan is not None:
            self.reader.refresh(state)
            followed = {name: state.plan.followed, **self._checks_beside(state)}
            maintained = {each: replace(blueprint, lazy=False) for each, blueprint in followed.items()}
            self._reinstall(state.group, {**state.group.blueprints, **maintained}, {})
            if keeps_rows(state):
                self._keep_rows(state)
        state.followers += 1

    def _keep_rows(self, state: ViewState) -> None:
        """Takes the rows of a view with aggregates, to tell what they were."""
        query = state.typed.query
        kept = self.catalog.backend.kept_rows(
            len(query.output), sum(isinstance(c.source, Aggregate) for c in query.head)
        )
        state.followed = followed = FollowedGroups(state, self.catalog.change_layout(state), kept)
        followed.keep(self.reader.blocks(state, ()))
        self.catalog.holders.add(followed)

    def unfollow(self, name: str) -> None:
        state = self.catalog.views[name]
        state.followers -= 1
        if state.followers == 0:
            state.followed = None
        if isinstance(state.group, ExternalView):
            state.group.follow(state.followers > 0)
            if state.followers == 0 and not state.group.needs_changes:
                self._unfollow_all(state.group.relations)
        elif state.followers == 0 and state.plan is not None:
            state.stale = True
            alone = {name: state.plan.blueprint, **self._checks_beside(state)}
            self._reinstall(state.group, {**state.group.blueprints, **alone}, {})

    def _checks_beside(self, state: ViewState) -> dict[str, Blueprint]:
        """The checks in the view's own group."""
        return {check.name: check.plan.blueprint for check in state.checks if check.group is state.group}

    def _reinstall(
        self,
        group: SharedViews,
        blueprints: Mapping[str, Blueprint],
        new: Mapping[str, TypedQuery],
        prepared: AssembledView | None = None,
        built: Image | None = None,
    ) -> None:
        """Assembles a group and fills the maps that are new."""
        self.catalog.forget_inputs()
        is_new = group.rebalancer is None
        known = {**{name: state.typed for name, state in self.catalog.views.items()}, **new}
        changed = group.changed_by(blueprints)
        filled = group.install(blueprints, {name: known[view_of(name)].types for name in changed}, prepared)
        self.catalog.misfits = limit_sums(self.catalog.backend, group, known)
        image = self.catalog.image if built is None else built
        if image is not None:
            filled = image.fill(self.catalog.backend, group, changed, filled)
        fill_group(group, changed, filled, partial(self.reader.run_once, slots=group.slots), is_new=is_new)

    def close(self) -> None:
        """Forgets everything."""
        with self.catalog_change():
            alone = [name for name in self.catalog.participants if name not in self.catalog.views]
            for view in (*alone, *reversed(tuple(self.catalog.views))):
                self.drop_view(view)
            for table in tuple(self.catalog.tables):
                self.drop_table(table)


def _whole(table: Table) -> ir.Source:
    """A source that reads all columns of a table as they are."""
    atom = Atom(table.name, table.column_names, column_refs(table.column_names))
    return ir.Source(atom, table.column_names, table.column_names)


def _hears_changes(state: ViewState) -> bool:
    """Whether the views that a view reads are followed on its behalf."""
    return not isinstance(state.group, ExternalView) or state.group.needs_changes or state.followers > 0
