"""Plans that follow what views are used for (decision 0380).

The database counts the changed rows of each table, and the requests of each view and the rows read for them. Where
these make another of the plans that were compared much better than the one that a view has, its build included, the
view is replanned, built beside the writers, and exchanged; who reads or follows it goes on. `strategy=`, `favour=`
and other options that name a plan pin it.

The work is counted by the printed bounds, so the same use leads to the same plans at the same time: only what is
counted decides, never a clock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ivme.compile import CompiledView
from ivme.definitions.installing import start_build
from ivme.definitions.measured_plans import counted_plans
from ivme.engine.runtime.observed import Observed
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import IvmeError
from ivme.plan.assemble.points import Observation, Point, costs_of, is_much_better, is_worth_it, undominated
from ivme.view import View

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.build_beside import BuildBeside
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.explain.explanation import Explanation

_logger = logging.getLogger("ivme.planning")

PINNING = ("strategy", "favour", "workload", "space", "rebalance", "changes")
"""Options that say what a plan is to be like, whatever the view is used for; so does an ε that is a number."""

LONG_BUILDS = 16
"""What was observed is forgotten once it took as long as so many builds: what comes after it may be different."""


@dataclass(frozen=True, slots=True)
class Replanned:
    """A view that was planned again: its plans before and after, and why."""

    view: str
    before: str
    after: str
    reason: str


class Replanning:
    """Looks now and then whether the plans of a database suit what its views are used for."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._catalog = definitions.catalog
        self._one_at_a_time = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def start(self) -> None:
        """From now on plans are reviewed in the background."""
        self._catalog.look_at_plans = self._look

    def close(self) -> None:
        """Waits for what is under way; there will be no more. The caller does not hold the lock."""
        self._is_closed = True
        self.wait()

    def wait(self) -> None:
        """Waits for what is under way."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _look(self) -> None:
        """Starts to replan the views for which that pays, in its own thread. Takes no lock."""
        if self._is_closed or self._definitions.is_opening or (self._thread is not None and self._thread.is_alive()):
            return
        due = [name for name in tuple(self._definitions.views) if self._is_due(name)]
        if due:
            self._thread = threading.Thread(target=self._replan_all, args=(due,), name="ivme-planning")
            self._thread.start()

    def _replan_all(self, names: Iterable[str]) -> None:
        for name in names:
            try:
                if not self._is_closed:
                    self.replan(name)
            except IvmeError as error:
                _logger.warning("view %s keeps its plan: %s", name, error)

    def replan_due(self, names: Iterable[str]) -> list[Replanned]:
        """Replans the views for which that pays, before it returns."""
        found = [self.replan(name) for name in names if self._is_due(name)]
        return [each for each in found if each is not None]

    def begin(self, name: str) -> None:
        """What a view is used for counts from now on."""
        for state in self._states(name):
            state.observed = Observed()
            self.observation(state)

    # What was observed

    def _states(self, name: str) -> list[ViewState]:
        """A view and its blocks, those that have plans."""
        definitions = self._definitions
        names = [*definitions.blocks_of(name), name]
        found = [self._catalog.views.get(each) for each in names]
        return [state for state in found if state is not None and state.plan is not None]

    def _changes(self, relations: Iterable[str]) -> dict[str, int]:
        """How many rows of relations, and of the tables below them, have changed so far; of a view, as many as of its
        tables together."""
        found: dict[str, int] = {}
        for relation in relations:
            state, view = self._catalog.tables.get(relation), self._catalog.views.get(relation)
            if state is not None:
                found[relation] = self._catalog.backend.changes(state.rows)
            elif view is not None:
                below = self._changes(view.relations)
                found |= {**below, relation: sum(n for name, n in below.items() if name in self._catalog.tables)}
        return found

    def _size(self, relation: str) -> int:
        state = self._catalog.tables.get(relation)
        if state is not None:
            return self._catalog.backend.size(state.rows)
        view = self._catalog.views.get(relation)
        return 0 if view is None else max((self._size(each) for each in view.relations), default=0)

    def observation(self, state: ViewState, *, is_followed: bool = False) -> Observation:
        """What a view or block has been used for since it was planned.

        Changes before its largest table doubled, or lost half of its rows, do not count: these were loads.
        """
        now, observed = self._changes(state.relations), state.observed
        sizes = tuple((relation, self._size(relation)) for relation in state.relations)
        size = max((rows for _, rows in sizes), default=0)
        if observed.since is None or not observed.size / 2 <= size <= 2 * observed.size:
            observed.since, observed.size = now, size
        changes = tuple((relation, number - observed.since.get(relation, 0)) for relation, number in now.items())
        followed = is_followed or state.followers > 0
        return Observation(changes, observed.requests, observed.rows, sizes, followed)

    def is_pinned(self, options: Mapping[str, object]) -> bool:
        """Whether the options of a view say what its plan is to be like."""
        epsilon = options.get("epsilon")
        pinned = any(name in options for name in PINNING) or options.get("semantics") == "ring"
        return pinned or not (epsilon is None or epsilon == "auto")

    def _is_due(self, name: str) -> bool:
        """Whether one of the plans that were compared for a view or its blocks would be much better."""
        view = self._definitions.views.get(name)
        if not isinstance(view, View) or self.is_pinned(view.made_with[1]):
            return False
        unsuited = [state.name for state in self._states(name) if self._is_unsuited(state)]
        return bool(unsuited)

    def _is_unsuited(self, state: ViewState) -> bool:
        candidates = state.explanation.candidates
        if len(candidates) < 2 and not (candidates and candidates[0].is_split):
            return False
        observed, current = self.observation(state), _point(state)
        points = [point for each in candidates for point in each.points()]
        usable = [point for point in undominated(points) if not (observed.is_followed and point.per_request)]
        spent = current.work(observed)
        found = any(is_much_better(point, current, observed) for point in usable)
        if not found and spent > LONG_BUILDS * max(point.build(observed) for point in (current, *usable)):
            state.observed = Observed()
        return found and spent >= 2 * state.observed.tried

    # Planning again

    def follow(self, name: str) -> Replanned | None:
        """Before a view is followed: one that is evaluated when it is requested is replanned, since it has no changes.

        Where its options pin it, it is maintained by view trees as long as it is followed.
        """
        state = self._catalog.views.get(name)
        if state is None or state.plan is None or state.plan.strategy != "request" or state.followers:
            return None
        return self.replan(name, is_followed=True)

    def replan(self, name: str, *, is_followed: bool = False) -> Replanned | None:
        """Plans a view for what was observed; exchanges its plan if the new one is much better, or it `is_followed`.

        It is built beside the writers if it is large. The caller does not hold the lock.
        """
        with self._one_at_a_time:
            done, found = False, None
            while not done:
                done, found = self._try_replan(name, is_followed=is_followed)
            return found

    def _try_replan(self, name: str, *, is_followed: bool) -> tuple[bool, Replanned | None]:
        """Whether it came to an end, and what that was; it does not if tables or functions changed meanwhile."""
        definitions, catalog = self._definitions, self._catalog
        with catalog.lock:
            view = definitions.views.get(name)
            if not isinstance(view, View) or view.is_gone or self.is_pinned(view.made_with[1]):
                return True, None
            observed = {
                each.name: self.observation(each, is_followed=is_followed and each.name == name)
                for each in self._states(name)
            }
        query, options = view.made_with
        planned, relations, called = definitions.planned(name, query, options, observed=observed)
        blocks = [
            each for each in (*planned.blocks, planned) if isinstance(each, CompiledView) and each.plan is not None
        ]
        if not is_followed and not self._is_worth_it(view, planned, observed):
            return True, None
        planned = replace(planned, explanation=self._explained(planned, view.state, observed))
        large = replace(planned, plan=_as_followed(planned)) if view.state.followers else planned
        build = start_build(definitions.runtime, large)
        with catalog.lock:
            if definitions.views.get(name) is not view:
                return True, None
            if not (definitions.are_current(planned.sources, relations) and definitions.are_defined(called)):
                return False, None
            before = view.state.explanation.strategy or ""
            with definitions.change():
                for each in blocks:
                    self._exchange(each if each.name != name else planned, build if each.name == name else None)
                if definitions.store is not None:
                    definitions.store.change_plan(name, None if called else planned.text())
            self.begin(name)
        definitions.runtime.wait_durable()
        return True, Replanned(name, before, planned.explanation.strategy or "", planned.explanation.reason)

    def _exchange(self, block: CompiledView, build: BuildBeside | None) -> None:
        state = self._catalog.views[block.name]
        assert block.plan is not None
        if state.plan is not None and state.plan.blueprint == block.plan.blueprint:
            state.explanation = block.explanation
            return
        built = None if build is None else build.image()
        self._definitions.runtime.installation.replace_plan(
            state, block.explanation, block.plan, block.assembled, built
        )

    def _is_worth_it(self, view: View, planned: CompiledView, observed: Mapping[str, Observation]) -> bool:
        """Whether the new plan of a view and its blocks is much better than the one that it has, by what is counted."""
        old = self._as_it_is(planned)
        if old is None or old == planned:
            return False
        for each in self._states(view.name):
            each.observed.tried = _point(each).work(observed[each.name])
        changes = {table: number for seen in observed.values() for table, number in seen.changes}
        reads = (view.state.observed.requests, view.state.observed.rows)
        now, new = counted_plans(self._definitions, view, (old, planned), tuple(view.state.observed.asked))
        return is_worth_it(now.work(changes, *reads), new.work(changes, *reads), new.build)

    def _as_it_is(self, planned: CompiledView) -> CompiledView | None:
        """What was planned with the plans that are installed; None if these are for other blocks."""
        blocks = [*planned.blocks, planned]
        for place, each in enumerate(blocks):
            if isinstance(each, CompiledView) and each.plan is not None:
                state = self._catalog.views.get(each.name)
                if state is None or state.plan is None or state.typed != each.typed:
                    return None
                blocks[place] = replace(each, plan=state.plan, assembled=None)
        last = blocks.pop()
        assert isinstance(last, CompiledView)
        return replace(last, blocks=tuple(blocks))

    def _explained(self, planned: CompiledView, state: ViewState, observed: Mapping[str, Observation]) -> Explanation:
        """The explanation of a new plan, which says what it was before, and why that changed."""
        explanation, seen = planned.explanation, observed[planned.name]
        current = _point(state)
        note = f"planned again: {current} would take about {current.work(seen):,.0f} operations for what was observed"
        if seen.is_followed and current.per_request:
            note = f"planned again: its changes are followed, which {current} does not have"
        return replace(explanation, remarks=(note, *explanation.remarks))


def _as_followed(planned: CompiledView) -> Plan | None:
    """The plan as it is installed while the view is followed."""
    plan = planned.plan
    return None if plan is None else replace(plan, blueprint=replace(plan.followed, lazy=False))


def _shared(state: ViewState) -> frozenset[str]:
    return next((each.shared for each in state.explanation.candidates if each.shared), frozenset())


def _point(state: ViewState) -> Point:
    """What the plan that a view has costs."""
    assert state.plan is not None
    return costs_of(state.plan, _shared(state)).at(state.plan.epsilon)
