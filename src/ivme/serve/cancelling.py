"""Work in a thread that ends when its request does: what has timed out leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from typing import TypeVar

from ivme.budget import Cancellation, cancellable

Result = TypeVar("Result")


async def run_cancellable(work: Callable[[], Result], executor: Executor | None = None) -> Result:
    """Runs something in a thread and waits for it; if the request is over before, cancels it.

    A thread cannot be stopped from outside: it notices at its next step, and undoes what it did. If what it does has
    taken effect by then, the answer is its result, however late.
    """
    cancellation = Cancellation()

    def run() -> Result:
        with cancellable(cancellation):
            return work()

    running = asyncio.get_running_loop().run_in_executor(executor, copy_context().run, run)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if not cancellation.cancel():
            return await running
        running.cancel()
        raise
