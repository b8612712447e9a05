"""How long planning may go on, and whether the caller still waits for the plan.

The searches of the planner call `spend` as they go. What they may spend is a number of steps, so that a plan does not
depend on how fast the machine is or what else it does; a limit on the time is only for machines on which steps take
much longer than they should. Everything that a search keeps takes a step at least, so that the number of steps bounds
its memory, too.

The budget is a context variable: it concerns all of the planner, and nothing else in it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ivme.errors import CancelledError

SECONDS = 5.0
"""How long planning may take unless the option `planning_seconds` says otherwise."""

STEPS_A_SECOND = 150_000
"""What one of the machines that ivme is measured on does."""

_SLOWEST = 4
"""Planning ends after this many times its seconds of the processor's time, however few steps it took."""

_LOOK = 2_000
"""After this many steps the clock is looked at, and whether planning was cancelled."""


class BudgetSpentError(Exception):
    """A search has spent what it had. It never leaves the planner, which goes on with what it has found."""


class StepsSpentError(Exception):
    """A search has spent the steps that it was to have `at_most`; there is still some budget for others."""


class Cancellation:
    """Whether a request is still wanted: decided once, by `cancel` or by `claim`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._claimed = False

    def cancel(self) -> bool:
        """Ends what is under way, from any thread; False if it took effect before."""
        with self._lock:
            self._cancelled = not self._claimed
            return self._cancelled

    def claim(self) -> None:
        """To be called before anything takes effect that cannot be undone; from then on `cancel` comes too late."""
        with self._lock:
            self.check()
            self._claimed = True

    def check(self) -> None:
        """Raises `CancelledError` if it was cancelled."""
        if self._cancelled:
            raise CancelledError("this was cancelled before it took effect; nothing was changed")


class Budget:
    """The steps and the time that are left for planning; `cut` is whether a search had to stop."""

    def __init__(self, seconds: float = SECONDS, cancellation: Cancellation | None = None) -> None:
        self.seconds = seconds
        self.spent = 0
        self.cut = False
        self._limit = max(1.0, seconds * STEPS_A_SECOND)
        self._end = time.thread_time() + seconds * _SLOWEST
        self._cancellation = cancellation or Cancellation()
        self._look = 0.0

    def spend(self, steps: int) -> None:
        """Counts steps; `BudgetSpentError` if there are none left, `CancelledError` if no caller waits any more."""
        self.spent += steps
        if self.spent >= self._look:
            self._check()

    def _check(self) -> None:
        self._cancellation.check()
        if self.spent > self._limit or time.thread_time() > self._end:
            self.cut = True
            raise BudgetSpentError
        self._look = min(self.spent + _LOOK, self._limit + 1)

    @contextmanager
    def part(self, share: float) -> Iterator[None]:
        """Lets the block spend no more than a share of what is left."""
        limit, end, now = self._limit, self._end, time.thread_time()
        self._limit = self.spent + (limit - self.spent) * share
        self._end = now + (end - now) * share
        self._look = self.spent
        try:
            yield
        finally:
            self._limit, self._end, self._look = limit, end, self.spent

    @contextmanager
    def steps(self, most: int) -> Iterator[None]:
        """Lets the block spend so many steps; `StepsSpentError` beyond them."""
        limit, cut = self._limit, self.cut
        self._limit = min(limit, self.spent + most)
        self._look = self.spent
        try:
            yield
        except BudgetSpentError:
            if self.spent > limit or time.thread_time() > self._end:
                raise
            self.cut = cut
            raise StepsSpentError from None
        finally:
            self._limit, self._look = limit, self.spent


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)
_cancellation: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


def spend(steps: int) -> None:
    """Counts steps of planning under the budget of the context; without one there is no limit."""
    budget = _budget.get()
    if budget is not None:
        budget.spend(steps)


@contextmanager
def within(share: float) -> Iterator[None]:
    """Lets the block spend no more than a share of what the context's budget has left."""
    budget = _budget.get()
    if budget is None:
        yield
        return
    with budget.part(share):
        yield


@contextmanager
def at_most(steps: int) -> Iterator[None]:
    """Lets the block spend so many steps of the context's budget; `StepsSpentError` beyond them."""
    budget = _budget.get()
    if budget is None:
        yield
        return
    with budget.steps(steps):
        yield


@contextmanager
def limited(seconds: float) -> Iterator[Budget]:
    """Gives the block a budget of its own; it ends early if the context's cancellation is."""
    budget = Budget(seconds, _cancellation.get())
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """Lets another thread cancel what the block asks for."""
    token = _cancellation.set(cancellation)
    try:
        yield
    finally:
        _cancellation.reset(token)


def claim() -> None:
    """Says that a request is about to take effect; `CancelledError` if no caller waits for it any more."""
    cancellation = _cancellation.get()
    if cancellation is not None:
        cancellation.claim()
