"""How exceptions get in between two instructions: at a chosen line, by a signal, or from another thread."""

from __future__ import annotations

import ctypes
import dis
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ivme

HOME = str(Path(ivme.__file__).parent)

_PURE = tuple(f"{HOME}/{package}/" for package in ("plan", "query", "structure"))
"""Planning changes nothing: it is interrupted as a whole, between the lines of its callers."""


class Interrupted(KeyboardInterrupt):
    """Ours, and nobody else's."""


@cache
def _never_interrupted(code: CodeType) -> frozenset[int]:
    """Where a `with` block calls `__exit__`: CPython lets no exception in just before it, but tracing would."""
    steps = list(dis.get_instructions(code))
    found = [step.offset for step in steps if step.opname == "NOP"]  # of a `try`
    steps = [step for step in steps if step.opname not in ("CACHE", "PRECALL", "NOP")]
    for i in range(len(steps) - 4):
        begin = i + (steps[i].opname == "SWAP")  # a value that is returned lies on top
        nothing = all(step.opname == "LOAD_CONST" and step.argval is None for step in steps[begin : begin + 3])
        normal = nothing and steps[begin + 3].opname == "CALL" and steps[begin + 3].arg == 2
        if normal or (steps[i].opname == "PUSH_EXC_INFO" and steps[i + 1].opname == "WITH_EXCEPT_START"):
            found.append(steps[i].offset)
    return frozenset(found)


class Lines:
    """Counts the lines of ivme that are run, and raises at the n-th of them (or at none)."""

    def __init__(self, at: int | None = None, again: int = 0) -> None:
        self.at = at
        self.again = again
        self.count = 0
        self.raised = 0
        self.where: list[str] = []

    def _line(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line" and frame.f_lasti not in _never_interrupted(frame.f_code):
            self.count += 1
            if self.count == self.at:
                self.raised += 1
                self.where.append(f"{frame.f_code.co_qualname}, line {frame.f_lineno}")
                self.at = self.count + self.again if self.again and self.raised == 1 else None
                raise Interrupted
        return self._line

    def _call(self, frame: FrameType, _event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        return self._line if file.startswith(HOME) and not file.startswith(_PURE) else None

    def run(self, work: Callable[[], object]) -> bool:
        """Whether the work ended by itself."""
        before = sys.gettrace()
        try:
            sys.settrace(self._call)
            work()
        except Interrupted:
            return False
        finally:
            sys.settrace(before)
        return True


@contextmanager
def lost_interrupts() -> Iterator[None]:
    """Python drops an exception that comes in a destructor or a callback of the collector: ours is no failure."""
    usual = sys.unraisablehook

    def drop(dropped: sys.UnraisableHookArgs) -> None:
        if dropped.exc_type is not Interrupted:
            usual(dropped)

    sys.unraisablehook = drop
    try:
        yield
    finally:
        sys.unraisablehook = usual


@contextmanager
def alarms() -> Iterator[Callable[[Callable[[], object], float], bool]]:
    """A function that does some work with a signal after so many seconds; whether the work ended by itself."""
    armed = False

    def ring(_signal: int, _frame: Any) -> None:
        if armed:
            raise Interrupted

    def run(work: Callable[[], object], seconds: float) -> bool:
        nonlocal armed
        done = False
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, seconds)
            work()
            done = True
        except Interrupted:
            return False
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return done

    old = signal.signal(signal.SIGALRM, ring)
    try:
        yield run
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def from_another_thread(work: Callable[[], object], seconds: float) -> bool:
    """Does the work in a thread that gets an exception from this one; whether the work ended by itself."""
    outcome: list[bool] = []
    errors: list[BaseException] = []
    started = threading.Event()

    def run() -> None:
        with suppress(Interrupted):  # one that comes when the work is over
            started.set()
            try:
                work()
                outcome.append(True)
            except Interrupted:
                outcome.append(False)
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    thread.join(seconds)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Interrupted))
    thread.join(30)
    assert not thread.is_alive(), "the work hangs"
    if errors:
        raise errors[0]
    return bool(outcome) and outcome[0]
