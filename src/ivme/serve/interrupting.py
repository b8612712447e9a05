"""Reading that ends when its request does: a thread that is told so from outside, by an exception.

The kernel looks for one while it works, and an interrupted read leaves the database as it was. What changes rows is not
ended this way: the client would not know whether it was applied.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Generic, TypeVar

Result = TypeVar("Result")

_AGAIN = 0.25
"""After so many seconds a thread that has not ended is interrupted again."""


class InterruptedRead(BaseException):
    """Is raised in a thread whose answer no client waits for any more."""


class _Reading(Generic[Result]):
    """Work in a thread of its own, which may be interrupted until it has ended.

    An interruption that comes into a destructor is lost there, so that it is sent again; one may come while the one
    before it is being handled.
    """

    def __init__(self, work: Callable[[], Result], done: Callable[[], object]) -> None:
        self._work = work
        self._done = done
        self._lock = threading.Lock()
        self._has_begun = self._is_over = False
        self._result: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=copy_context().run, args=(self._run,), name="ivme-read", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over:
            try:
                if not self._has_begun:
                    self._has_begun = True
                    self._work_once()
                with self._lock:  # from here on no interruption is sent
                    self._is_over = True
            except InterruptedRead:
                continue
        self._done()

    def _work_once(self) -> None:
        try:
            self._result.append(self._work())
        except BaseException as error:
            self._error = error

    def interrupt(self) -> None:
        with self._lock:
            if not self._is_over:
                number = ctypes.c_ulong(self._thread.ident or 0)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(InterruptedRead))

    def result(self) -> Result:
        if self._result:
            return self._result[0]
        raise self._error if self._error is not None else InterruptedRead


async def run_interruptible(work: Callable[[], Result], also: Callable[[], object] = lambda: None) -> Result:
    """Runs something that only reads, in a thread, and waits for it. If the request is over before, the thread is
    interrupted, `also` done, and waited for.
    """
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    reading = _Reading(work, lambda: loop.call_soon_threadsafe(ended.set))
    try:
        await ended.wait()
    except asyncio.CancelledError:
        while not ended.is_set():
            reading.interrupt()
            also()
            with suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN):
                    await ended.wait()
        raise
    return reading.result()
