"""The tests of this folder find what they are there to find: each of these mistakes, planted, is found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from ivme.closure.group import ClosureGroup
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime import catalog, catalog_change, following
from ivme.engine.runtime.positions import Positions
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.transaction import PlainLock, Transaction
from ivme.engine.runtime.view_state import ViewState
from ivme.store.group_commit import GroupCommit
from ivme.store.log import Log
from ivme.views.ring_view import RingView
from tests.example_counts import some_of
from tests.interrupts.means import Lines
from tests.interrupts.scenes import JOIN, Scene
from tests.interrupts.test_interrupts import _alive, go_on, lines_of

Plant = Callable[[pytest.MonkeyPatch], None]


def nothing(*_: object, **__: object) -> None:
    """What should be done is not."""


def _settle_only(committed: bool) -> Callable[[Transaction], None]:
    real = Transaction._end

    def settle(self: Transaction) -> None:
        if self.committed == committed:
            real(self)
        else:
            self._lock.pending = None

    return settle


def _acts(transaction: Transaction) -> list[Callable[[], object]]:
    """What settles it."""
    if transaction.committed:
        return [*(part.commit for part in transaction._parts), *transaction.then]
    return [part.roll_back for part in transaction._parts]


def _settle_half(self: Transaction) -> None:
    acts = _acts(self)
    for act in acts[: len(acts) // 2]:
        act()
    self._lock.pending = None


def _enter_too_late(self: Transaction) -> Transaction:
    """As it was: what is under way is known to its own frame only."""
    return self


def _exit_without_settling(self: Transaction, kind: Any, *_: object) -> None:
    self.committed = kind is None
    for act in _acts(self):
        act()


def _commit_early(self: Transaction) -> Transaction:
    self._lock.pending, self.committed = self, True
    return self


def _without_with(real: Any) -> Any:
    def transact(self: Runtime, *given: Any) -> None:
        self.lock.acquire()
        try:
            real(self, *given)
        except Exception:
            self.lock.release()
            raise
        self.lock.release()

    return transact


class _Condition:
    """A lock that is not given back when an exception comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        assert self._lock.acquire(timeout=5), "waits for ever"

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self._lock.release()


def _leaky_commits(patch: pytest.MonkeyPatch) -> None:
    real = GroupCommit.__init__

    def init(self: GroupCommit, *given: Any) -> None:
        real(self, *given)
        self._syncing = _Condition()  # type: ignore[assignment]

    patch.setattr(GroupCommit, "__init__", init)


def _told_twice(queue: Any, item: object) -> Callable[[], object]:
    return partial(queue.append, item)


def _late(self: Transaction) -> None:
    """Forgets what is under way before it is settled."""
    self._lock.pending = None
    for act in _acts(self):
        act()


FAULTS: dict[str, tuple[str, Plant]] = {
    "nothing is rolled back": ("memory", lambda p: p.setattr(Transaction, "_end", _settle_only(committed=True))),
    "nothing is finished": ("memory", lambda p: p.setattr(Transaction, "_end", _settle_only(committed=False))),
    "half of it is done": ("memory", lambda p: p.setattr(Transaction, "_end", _settle_half)),
    "begun and not noted": ("memory", lambda p: p.setattr(Transaction, "__enter__", _enter_too_late)),
    "forgotten too early": ("memory", lambda p: p.setattr(Transaction, "_end", _late)),
    "committed too early": ("memory", lambda p: p.setattr(Transaction, "__enter__", _commit_early)),
    "a lock without with": (
        "memory",
        lambda p: p.setattr(Runtime, "transact", _without_with(Runtime.transact)),
    ),
    "a lock in Python": ("memory", lambda p: p.setattr(catalog, "StateLock", PlainLock)),
    "followers are not told": ("memory", lambda p: p.setattr(following, "delivery", lambda *_: nothing)),
    "followers are told twice": ("memory", lambda p: p.setattr(following, "delivery", _told_twice)),
    "kept rows are not updated": ("memory", lambda p: p.setattr(following, "partial", lambda *_: nothing)),
    "a view is not outdated": ("memory", lambda p: p.setattr(ViewState, "outdate", nothing)),
    "positions do not advance": ("memory", lambda p: p.setattr(Positions, "advance", nothing)),
    "a ring view is not undone": ("memory", lambda p: p.setattr(RingView, "_roll_back", nothing)),
    "a closure is not undone": ("memory", lambda p: p.setattr(ClosureGroup, "roll_back", nothing)),
    "a closure is not committed": ("memory", lambda p: p.setattr(ClosureGroup, "commit", nothing)),
    "the log is not cut": ("durable", lambda p: p.setattr(Log, "roll_back", nothing)),
    "the lock of a sync leaks": ("durable", _leaky_commits),
}


@pytest.mark.parametrize(
    "name", some_of(FAULTS, "nothing is rolled back", "a lock in Python", "the lock of a sync leaks")
)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, plant = FAULTS[name]
    plant(monkeypatch)
    with pytest.raises(BaseException):  # noqa: B017, PT011  whatever shows it
        go_on(Scene(kind, 1), "lines", 3000, 0)


CATALOG_FAULTS: dict[str, Plant] = {
    "the catalog is not put back": lambda p: p.setattr(catalog_change, "saved", lambda *_: nothing),
    "the kernel's names are not put back": lambda p: p.setattr(NativeBackend, "saved", lambda _: nothing),
    "what has no name stays": lambda p: p.setattr(NativeBackend, "collect", nothing),
}


@pytest.mark.parametrize("name", some_of(CATALOG_FAULTS, "the kernel's names are not put back"))
def test_a_planted_fault_in_the_catalog_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene("memory", 1)
    chosen = lines_of(scene, JOIN, {"strategy": "skew"}, 37)
    CATALOG_FAULTS[name](monkeypatch)
    alive = _alive(scene)

    def make_and_drop() -> None:
        for line in chosen:
            Lines(line).run(partial(scene.db.create_view, "new", JOIN, strategy="skew"))
            if "new" in scene.db.views:
                scene.db.drop_view("new")
            scene.check(scene.tables, scene.tables)
            assert alive == _alive(scene)

    with pytest.raises(Exception):  # noqa: B017, PT011  whatever shows it
        make_and_drop()
    with suppress(Exception):
        scene.close()
