"""Tables and views that come and go, while the data of the others stays.

Whatever fails on the way leaves the database as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from ivme.engine.backend import Codes
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.ingest.feed import Feed
from ivme.engine.ingest.row_batch import Inputs
from ivme.engine.runtime.catalog_change import catalog_change
from ivme.engine.runtime.decoding import RowDecoder
from ivme.engine.runtime.error_check import InstalledCheck, check_slots, new_checks, view_of
from ivme.engine.runtime.external_view import ExternalView
from ivme.engine.runtime.following import Followed, FollowedGroups, keeps_rows
from ivme.engine.runtime.memory import check_memory, limit_growth
from ivme.engine.runtime.relations import Relations, weighted
from ivme.engine.runtime.ring_view import Participant
from ivme.engine.runtime.shared_views import Assembled, SharedViews
from ivme.engine.runtime.stored_sums import check_row, limit_sums
from ivme.engine.runtime.transaction import Act
from ivme.engine.runtime.view_state import TableState, ViewState
from ivme.errors import ExpressionError, PlanError
from ivme.plan.assemble.blueprint import Blueprint
from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir import program as ir
from ivme.plan.strategy.plan import Plan
from ivme.query.model import Aggregate, Atom, Table, column_refs
from ivme.query.typed import TypedQuery


class Installation(Relations):
    """The part of the runtime that changes the catalog. Its callers hold `lock`."""

    def catalog_change(self, undo: Iterable[Act] = (), finish: Iterable[Act] = ()) -> AbstractContextManager[object]:
        """What is done to tables and views in this block is done as a whole, or not at all."""
        return catalog_change(self, undo, finish)

    def add_table(self, table: Table) -> None:
        """Declares a table: its rows, and an index on its primary key."""
        with self.catalog_change():
            domains = [self.domains.domain(declared_type(table, column)) for column in table.columns]
            state = TableState(table, domains, f"table {table.name}", Feed(()))
            self._set_checks(state, ring=False)
            self.tables[table.name] = state

    def _set_checks(self, state: TableState, *, ring: bool) -> None:
        """Sets the trigger that stores a table's rows, which refuses negative multiplicities unless in ring mode."""
        state.feed = self.backend.set_table(state.rows, _whole(state.table), state.table.key_positions, ring=ring)
        state.ring = ring
        self.forget_inputs()

    def drop_table(self, name: str) -> None:
        with self.catalog_change():
            state = self.tables.pop(name)
            self.forget_inputs()
            self.backend.drop_table(state.rows)

    def prepared(self, name: str, typed: TypedQuery, plan: Plan) -> Assembled:
        """What has to be installed for a view as things stand: found out without the lock, as that may take long."""
        key = (*typed.slots, *self._own(name, plan.blueprint))
        checks = {
            each: check.blueprint
            for each, check in new_checks(name, plan).items()
            if key == (*check_slots(check, typed), *self._own(each, check.blueprint))
        }
        with self.lock:
            group = self._groups.get(key) or self._new_group(key, typed.slots)
            blueprints = {**group.blueprints, name: plan.blueprint, **checks}
        return group.assembled(blueprints)

    def add_view(
        self,
        name: str,
        typed: TypedQuery,
        explanation: Explanation,
        plan: Plan,
        table: Table,
        *,
        ring: bool = False,
        prepared: Assembled | None = None,
    ) -> ViewState:
        """Installs a view and fills it from the tables; on any error nothing stays behind."""
        relations = tuple(dict.fromkeys(atom.relation for atom in typed.query.atoms))
        self._check_ring(name, relations, ring=ring)
        try:
            with self.catalog_change():
                limit_growth(self)
                group = self._group(typed.slots, self._own(name, plan.blueprint))
                group.tuning = plan.tuning
                checks = self._new_checks(name, typed, plan)
                self._follow_all(relations)
                mine = {check.name: check.plan.blueprint for check in checks if check.group is group}
                self._install(group, {**group.blueprints, name: plan.blueprint, **mine}, {name: typed}, prepared)
                finisher = RowDecoder(typed, group.enumerations[name], self.domains)
                state = ViewState(name, typed, plan, explanation, group, table, finisher, relations, ring, checks)
                for stored, codes in self._misfits:
                    if name in group.stored_sums.get(stored, ()):
                        check_row(state, codes)
                for check in checks:
                    if check.group is not group:
                        blueprints = {**check.group.blueprints, check.name: check.plan.blueprint}
                        self._install(check.group, blueprints, {name: typed})
                self.views[name] = state
                self._refuse_failures(state)
                self._switch_rings(relations)
                check_memory(self)
        except ExpressionError as error:
            raise error.of_view(name) from error
        return self.views[name]

    def _new_checks(self, name: str, typed: TypedQuery, plan: Plan) -> tuple[InstalledCheck, ...]:
        """The checks of a view, each with the group that it is to be installed in."""
        checks = []
        for each, check in new_checks(name, plan).items():
            group = self._group(check_slots(check, typed), self._own(each, check.blueprint))
            if check.blueprint.splits:
                group.tuning = check.tuning
            checks.append(InstalledCheck(each, group, check))
        return tuple(checks)

    def _refuse_failures(self, state: ViewState) -> None:
        """Raises ExpressionError if a view that was just filled shows a row for which an expression fails."""
        if state.lazy:
            return
        self.backend.begin()
        try:
            self.check_failures(state)
        finally:
            self.backend.rollback()

    def add_maintained(
        self, typed: TypedQuery, explanation: Explanation, table: Table, group: ExternalView, relation: str
    ) -> ViewState:
        """Fills a view that is not made of maps from the one relation that it reads, and keeps it fresh from now on."""
        name = table.name
        self._check_ring(name, (relation,), ring=False)
        with self.catalog_change():
            limit_growth(self)
            self._follow_all((relation,))
            rows = self.rows_to_feed(relation)
            wanted = Inputs(self.relation(relation), self.domains, [("once", group.feeds[relation])])
            self._fill(group, wanted.of(rows)[0][1], rows.weights)
            finisher = RowDecoder(typed, group.enumerations[name], self.domains)
            self.maintained[group.trigger(relation)] = group
            self.views[name] = ViewState(name, typed, None, explanation, group, table, finisher, (relation,))
            self.forget_inputs()
            self._switch_rings((relation,))
            check_memory(self)
        return self.views[name]

    def _follow_all(self, relations: Iterable[str]) -> None:
        """Follows those that are views."""
        for relation in relations:
            if relation in self.views:
                self.follow(relation)

    def _fill(self, group: ExternalView, columns: Sequence[Codes], weights: Codes) -> None:
        try:
            group.change(columns, weights)
            group.commit()
        except Exception as error:
            raise group.refusal(error) or error from None

    def _drop_maintained(self, state: ViewState) -> None:
        (relation,) = state.relations
        del self.maintained[state.group.trigger(relation)]
        if relation in self.views:
            self.unfollow(relation)

    def add_ring_view(self, view: Participant) -> None:
        """Fills a ring view, or an IES, from its tables and keeps it fresh from now on."""
        self._check_ring(view.name, view.relations, ring=False)
        rows = {relation: self.rows_to_feed(relation) for relation in view.relations}
        view.build({relation: weighted(each.data, each.weights) for relation, each in rows.items()})
        with self.catalog_change():
            self._follow_all(view.relations)
            self.ring_views[view.name] = view
            self.forget_inputs()
            self._switch_rings(view.relations)

    def drop_ring_view(self, name: str) -> None:
        with self.catalog_change():
            view = self.ring_views.pop(name)
            self._unfollow_all(view.relations)
            self.forget_inputs()
            self._switch_rings(view.relations)

    def drop_view(self, name: str) -> None:
        """Forgets a view that nobody is built on; those who follow it hear nothing any more."""
        with self.catalog_change():
            state = self.views[name]
            if isinstance(state.group, ExternalView):
                del self.maintained[state.group.trigger(state.relations[0])]
            else:
                self._leave(state)
            self._unfollow_all(state.relations)
            del self.views[name]
            self._queues.pop(name, None)
            self.forget_inputs()
            self._switch_rings(state.relations)

    def _unfollow_all(self, relations: Iterable[str]) -> None:
        for relation in relations:
            if relation in self.views:
                self.unfollow(relation)

    def _group(self, slots: tuple[str, ...], own: tuple[str, ...]) -> SharedViews:
        key = (*slots, *own)
        if key not in self._groups:
            self._groups[key] = self._new_group(key, slots)
            self._groups_made += 1
        return self._groups[key]

    def _new_group(self, key: tuple[str, ...], slots: tuple[str, ...]) -> SharedViews:
        return SharedViews(f"g{self._groups_made}", key, self.backend, self.domains, slots)

    def _own(self, name: str, blueprint: Blueprint) -> tuple[str, ...]:
        """What tells the group of a view from others of its slots: one with heavy and light parts is alone."""
        return ("skew", name) if blueprint.splits else ()

    def _leave(self, state: ViewState) -> None:
        """Takes a view and its checks out of their groups, and a group away if nothing is left in it."""
        gone = {state.name, *(check.name for check in state.checks)}
        for group in dict.fromkeys((state.group, *(check.group for check in state.checks))):
            self._install(group, {view: b for view, b in group.blueprints.items() if view not in gone}, {})
            if not group.blueprints:
                del self._groups[group.key]

    def _check_ring(self, name: str, relations: Iterable[str], *, ring: bool) -> None:
        """Negative multiplicities are for views in ring mode only."""
        for relation in () if ring else relations:
            if relation in self.views and self.views[relation].ring:
                raise PlanError(f"view {name} is built on {relation}, which is in ring mode; give it semantics='ring'")
            if relation in self.tables and self._has_negative(self.tables[relation]):
                raise PlanError(
                    f"table {relation} has rows with negative multiplicities, which only a view in ring mode takes; "
                    f"give view {name} semantics='ring', or insert what is missing first"
                )

    def _has_negative(self, state: TableState) -> bool:
        return state.ring and bool((self.backend.scan(state.rows)[1] < 0).any())

    def _switch_rings(self, relations: Iterable[str]) -> None:
        """Lets tables have negative multiplicities whose views are all in ring mode."""
        for state in (self.tables[name] for name in relations if name in self.tables):
            users = [view.ring for view in self.views.values() if state.table.name in view.relations]
            users += [False for view in self.ring_views.values() if state.table.name in view.relations]
            ring = (bool(users) and all(users)) or self._has_negative(state)
            if ring != state.ring:
                self._set_checks(state, ring=ring)

    def follow(self, name: str) -> None:
        """From now on the changes of the view's rows are computed; within a change of the catalog.

        A view that is recomputed is maintained from here on: its change would else be the difference of two results.
        """
        state = self.views[name]
        if state.followers == 0:
            state.followed = Followed(state, self.change_layout(state))
        if isinstance(state.group, ExternalView):
            state.group.follow(True)
        elif state.followers == 0 and state.plan is not None:
            self._refresh(state)
            followed = {name: state.plan.followed, **self._checks_beside(state)}
            maintained = {each: replace(blueprint, lazy=False) for each, blueprint in followed.items()}
            self._install(state.group, {**state.group.blueprints, **maintained}, {})
            if keeps_rows(state):
                self._keep_rows(state)
        state.followers += 1

    def _keep_rows(self, state: ViewState) -> None:
        """Takes the rows of a view with aggregates, to tell what they were."""
        query = state.typed.query
        kept = self.backend.kept_rows(len(query.output), sum(isinstance(c.source, Aggregate) for c in query.head))
        state.followed = followed = FollowedGroups(state, self.change_layout(state), kept)
        followed.keep(self.blocks(state, ()))
        self.holders.add(followed)

    def unfollow(self, name: str) -> None:
        state = self.views[name]
        state.followers -= 1
        if state.followers == 0:
            state.followed = None
        if isinstance(state.group, ExternalView):
            state.group.follow(state.followers > 0)
        elif state.followers == 0 and state.plan is not None:
            state.stale = True
            alone = {name: state.plan.blueprint, **self._checks_beside(state)}
            self._install(state.group, {**state.group.blueprints, **alone}, {})

    def _checks_beside(self, state: ViewState) -> dict[str, Blueprint]:
        """The checks in the view's own group."""
        return {check.name: check.plan.blueprint for check in state.checks if check.group is state.group}

    def _install(
        self,
        group: SharedViews,
        blueprints: Mapping[str, Blueprint],
        new: Mapping[str, TypedQuery],
        prepared: Assembled | None = None,
    ) -> None:
        """Assembles a group and fills the maps that are new."""
        self.forget_inputs()
        is_new = group.rebalancer is None
        known = {**{name: state.typed for name, state in self.views.items()}, **new}
        types = {name: known[view_of(name)].types for name in blueprints}
        filled = group.install(blueprints, types, prepared)
        self._misfits = limit_sums(self.backend, group, known)
        if self.image is not None:
            filled = self.image.fill(self.backend, group, filled)
        steps = list(group.assembly.fill(filled))
        if is_new and group.rebalancer is not None and group.rebalancer.partitions[0].heavy not in filled:
            self._run_once(steps, group.slots)
            group.rebalancer.start()
            steps = []
        for name, blueprint in blueprints.items():
            mine = () if blueprint.lazy else group.assembly.build(name, filled)
            filled |= {step.map for step in mine if isinstance(step, ir.Add)}
            steps += mine
        if steps:
            self._run_once(steps, group.slots)

    def close(self) -> None:
        """Forgets everything."""
        with self.catalog_change():
            for ring_view in tuple(self.ring_views):
                self.drop_ring_view(ring_view)
            for view in reversed(tuple(self.views)):
                self.drop_view(view)
            for table in tuple(self.tables):
                self.drop_table(table)


def _whole(table: Table) -> ir.Source:
    """A source that reads all columns of a table as they are."""
    atom = Atom(table.name, table.column_names, column_refs(table.column_names))
    return ir.Source(atom, table.column_names, table.column_names)
