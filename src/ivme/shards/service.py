"""A shard as others see it: puts are staged, a step is open from prepare to its decision, and readers wait meanwhile.

A step that is open lives in a thread of its own, which holds the transactions of the engines. Everything that comes
over a network comes late or twice: a prepare that is repeated gets the answer of the first, a commit of a step that is
there already is done, puts of a transaction that nobody prepares are dropped when another one is prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.message import LostError, Message, error_head
from ivme.shards.parts import PackedPart
from ivme.shards.shard import HeldStep, Shard, StepError

PutKey = tuple[str, str]
"""A partition of a transaction, and the attempt of the task that put it."""


class ShardService:
    """One shard, for any number of threads."""

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self._lock = threading.Lock()
        self._control = threading.RLock()
        self._staged: dict[str, dict[PutKey, Sequence[PackedPart]]] = {}
        self._open: _OpenStep | None = None
        self._ended = 0

    # Puts

    def put(self, transaction: str, key: PutKey, parts: Sequence[PackedPart]) -> None:
        """Takes the parts of one attempt at one partition; those that came before under the same key are replaced."""
        with self._control:
            self._staged.setdefault(transaction, {})[key] = parts

    def _sealed(self, transaction: str, keys: Sequence[Sequence[str]]) -> list[PackedPart]:
        """Exactly these parts of a transaction; everything else that was put is dropped."""
        staged = self._staged.get(transaction, {})
        self._staged = {transaction: staged}
        found: list[PackedPart] = []
        for partition, attempt in keys:
            if (partition, attempt) not in staged:
                raise LostError(
                    f"shard {self.shard.number} has no part {partition} of attempt {attempt}, which the step names"
                )
            found += staged[partition, attempt]
        return found

    # Steps

    def prepare(self, head: Mapping[str, Any]) -> Message:
        """Applies a step in an open transaction and writes its file; the same answer when it is asked again."""
        with self._control:
            if self._open is not None and self._open.attempt < head["attempt"]:
                self._resolve()
            if self._open is None:
                self._open = self._opened(head)
            step = self._open
        if step.transaction != head["transaction"]:
            raise SparkError(f"attempt {head['attempt']} at step {head['step']} is over")
        return step.prepared.result()

    def _opened(self, head: Mapping[str, Any]) -> _OpenStep:
        if head["attempt"] <= self._ended or head["step"] <= self.shard.step:
            raise SparkError(f"attempt {head['attempt']} at step {head['step']} is over")
        parts = self._sealed(head["transaction"], head["parts"])
        return _OpenStep(self.shard, self._lock, head, parts)

    def commit(self, number: int, file: str | None, sources: Mapping[str, int]) -> None:
        """Is at a step that has happened: keeps what is open if that is it, and else reads it from the checkpoint."""
        with self._control:
            if number <= self.shard.step:
                return
            step = self._open
            if step is not None:
                self._end(keep=step.number == number and step.file == file)
            with self._lock:
                if self.shard.step == number - 1 and file is None:
                    self.shard.step = number  # nothing was for this shard
                self.shard.ensure_at(number)
                self.shard.sources = sources

    def abort(self, transaction: str, attempt: int) -> None:
        """Takes back an attempt at a step, or what is put or prepared of it later."""
        with self._control:
            self._ended = max(self._ended, attempt)
            self._staged.pop(transaction, None)
            if self._open is not None and self._open.transaction == transaction:
                self._end(keep=False)

    def _resolve(self) -> None:
        """Ends a step of which it was not heard whether it happened, as the checkpoint says."""
        assert self._open is not None
        record = self.shard.checkpoint.record(self._open.number)
        self._end(keep=record is not None and record.files.get(str(self.shard.number)) == self._open.file)
        if record is not None:
            self.shard.sources = record.sources

    def _end(self, *, keep: bool) -> None:
        step, self._open = self._open, None
        assert step is not None
        self._ended = max(self._ended, step.attempt)
        self._staged.pop(step.transaction, None)
        step.decide(keep)

    # Reading

    def reading(self, step: int | None, ended: int, read: Callable[[Shard], Message]) -> Message:
        """What `read` finds at a step; while a step is open, this waits.

        `ended` is the last attempt of which the reader knows that it is decided: a shard may not have heard of that.
        """
        with self._control:
            if self._open is not None and (self._open.attempt <= ended or self._open.number <= (step or 0)):
                self._resolve()
        with self._lock:
            if step is not None:
                self.shard.ensure_at(step)
            return read(self.shard)

    def within(self, transaction: str, read: Callable[[Shard], Message]) -> Message:
        """What `read` finds in the open step."""
        with self._control:
            step = self._open
        if step is None or step.transaction != transaction:
            raise LostError(f"shard {self.shard.number} has no open step of this transaction")
        return step.within(read)


class _OpenStep:
    """A step in its thread: applied, then waiting for reads within it and for its decision."""

    def __init__(self, shard: Shard, lock: threading.Lock, head: Mapping[str, Any], parts: list[PackedPart]) -> None:
        self.transaction: str = head["transaction"]
        self.attempt: int = head["attempt"]
        self.number: int = head["step"]
        self.file: str | None = None
        self.prepared: Future[Message] = Future()
        self._shard, self._lock, self._head, self._parts = shard, lock, head, parts
        self._commands: SimpleQueue[bool | tuple[Callable[[Shard], Message], Future[Message]]] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"ivme-step-{shard.number}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._lock:
            try:
                named = self._head["catalog"]
                catalog = None if named is None else (named[0], ShardCatalog.from_json(named[1]))
                clipped, checked = self._head["clipped"], self._head["checked"]
                self._shard.hold(self.number, catalog, self._parts, clipped, self._decided, checked)
            except StepError as error:
                self._answer(Message({**error_head(error.reason), "in_table": error.in_table}))
            except Exception as error:
                self._answer(Message({**error_head(error), "in_table": False}))

    def _answer(self, message: Message) -> None:
        if not self.prepared.done():
            self.prepared.set_result(message)

    def _decided(self, held: HeldStep) -> bool:
        """Writes the file of the step, answers, and waits."""
        parts = [*held.changes, *self._parts]
        if parts or self._head["catalog"] is not None:
            shard = self._shard
            self.file = shard.checkpoint.write_step(self.number, str(shard.number), self._head["driver_epoch"], parts)
        views = [view for view, _ in held.partial]
        rows = sum(part.rows for part in self._parts)
        head = {"file": self.file, "rows": rows, "entries": held.entries, "partial": views, "large": held.large}
        self._answer(Message(head, tuple(change for _, change in held.partial)))
        while not isinstance(command := self._commands.get(), bool):
            read, found = command
            try:
                found.set_result(read(self._shard))
            except Exception as error:
                found.set_exception(error)
        return command

    def within(self, read: Callable[[Shard], Message]) -> Message:
        found: Future[Message] = Future()
        self._commands.put((read, found))
        return found.result()

    def decide(self, keep: bool) -> None:
        """Ends the step; nothing of it is left open when this returns."""
        self._commands.put(keep)
        self._thread.join()
