"""A shard as others see it: puts are staged, a step is open from prepare to its decision, and readers wait meanwhile.

A step that is open lives in a thread of its own, which holds the transactions of the engines. Everything that comes
over a network comes late or twice: a prepare that is repeated gets the answer of the first, a commit of a step that is
there already is done, puts of a transaction that is never prepared are dropped when another one is prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import pyarrow as pa

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.distribute import packed_by_shard
from ivme.shards.exchange import placed_changes, readers
from ivme.shards.held_step import HeldStep, Round, StepError
from ivme.shards.message import LostError, Message, error_head
from ivme.shards.parts import PackedPart, changed_rows
from ivme.shards.shard import Shard

PutKey = tuple[str, str]
"""A partition of a transaction, and the attempt of the task that put it."""

Forward = Callable[[int, str, PutKey, list[PackedPart]], None]
"""Puts parts to another shard: its number, the transaction, partition and attempt, and the parts."""


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

    def prepare(self, head: Mapping[str, Any], forward: Forward) -> Message:
        """Applies a round of a step in an open transaction, and writes the step's file after the last one.

        The same answer when it is requested again. `forward` puts what a round changes to other shards.
        """
        with self._control:
            if self._open is not None and self._open.attempt < head["attempt"]:
                self._resolve()
            if self._open is None:
                self._open = self._opened(head, forward)
            step = self._open
            if step.transaction != head["transaction"]:
                raise SparkError(f"attempt {head['attempt']} at step {head['step']} is over")
            number = head.get("round", 0)
            if not step.has(number):
                step.begin(number, self._sealed(head["transaction"], head["parts"]))
            answered = step.answered(number)
        return answered.result()

    def _opened(self, head: Mapping[str, Any], forward: Forward) -> _OpenStep:
        if head["attempt"] <= self._ended or head["step"] <= self.shard.step:
            raise SparkError(f"attempt {head['attempt']} at step {head['step']} is over")
        parts = self._sealed(head["transaction"], head["parts"])
        return _OpenStep(self.shard, self._lock, head, parts, forward)

    def commit(self, number: int, file: str | None, sources: Mapping[str, int]) -> None:
        """Is at a step that has happened: keeps what is open if that is it, and else reads it from the checkpoint."""
        with self._control:
            if number <= self.shard.step:
                return
            step = self._open
            if step is not None:
                self._end(keep=step.number == number and step.is_of(file))
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
        self._end(keep=record is not None and self._open.is_of(record.files.get(str(self.shard.number))))
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


class _Read:
    """Something to read within an open step."""

    def __init__(self, read: Callable[[Shard], Message]) -> None:
        self._read = read
        self.found: Future[Message] = Future()

    def answer(self, shard: Shard) -> None:
        try:
            self.found.set_result(self._read(shard))
        except Exception as error:
            self.found.set_exception(error)


class _OpenStep:
    """A step in its thread: applied round by round, waiting for the next one, reads within it, and its decision."""

    def __init__(
        self,
        shard: Shard,
        lock: threading.Lock,
        head: Mapping[str, Any],
        parts: list[PackedPart],
        forward: Forward,
    ) -> None:
        self.transaction: str = head["transaction"]
        self.attempt: int = head["attempt"]
        self.number: int = head["step"]
        self.file: str | None = None
        self._shard, self._lock, self._head, self._parts = shard, lock, head, parts
        self._is_through = False
        self._told = 0
        self._round: int = head.get("round", 0)
        self._forward = forward
        self._answers: dict[int, Future[Message]] = {self._round: Future()}
        self._commands: SimpleQueue[bool | Round | _Read] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"ivme-step-{shard.number}", daemon=True)
        self._thread.start()

    def is_of(self, file: str | None) -> bool:
        """Whether a record that names this file, or none, is that of this attempt: one that was not through is not."""
        return self._is_through and self.file == file

    def has(self, number: int) -> bool:
        """Whether a round has begun, or is over."""
        return number <= max(self._answers)

    def begin(self, number: int, parts: Sequence[PackedPart]) -> None:
        """Goes on with the next round, for which other shards have sent these parts."""
        self._answers[number] = Future()
        self._commands.put((number, parts))

    def answered(self, number: int) -> Future[Message]:
        """The answer of a round; that of the last one that began, if it has failed."""
        return self._answers.get(number) or self._answers[max(self._answers)]

    def _run(self) -> None:
        with self._lock:
            try:
                named = self._head["catalog"]
                catalog = None if named is None else (named[0], ShardCatalog.from_json(named[1]))
                clipped, checked = self._head["clipped"], self._head["checked"]
                held = self._shard.hold
                held(self.number, catalog, list(self._parts), clipped, self._decided, checked, self._round)
            except StepError as error:
                self._answer(Message({**error_head(error.reason), "in_table": error.in_table}))
            except Exception as error:
                self._answer(Message({**error_head(error), "in_table": False}))

    def _answer(self, message: Message) -> None:
        prepared = self._answers[self._round]
        if not prepared.done():
            prepared.set_result(message)

    def _decided(self, held: HeldStep) -> bool | Round:
        """Sends what a round has changed, or writes the file of the step after the last one; answers, and waits."""
        if self._round < self._head.get("last_round", 0):
            sent, merged = self._send(held), self._unmerged(held)
            self._answer(Message({"sent": sent, "partial": list(merged)}, tuple(merged.values())))
        else:
            self._write(held)
        while not isinstance(command := self._commands.get(), bool):
            if isinstance(command, tuple):
                self._round = command[0]
                self._parts += command[1]
                return command
            command.answer(self._shard)
        return command

    def _send(self, held: HeldStep) -> list[tuple[int, PutKey]]:
        """Puts changes to the shards of the views that they feed; to which, and under which key."""
        shard, key = self._shard, (f"round-{self._round}-from-{self._shard.number}", "0")
        told, held.told = held.told, []
        packed = packed_by_shard(placed_changes(shard.catalog, told))
        for target, parts in packed.items():
            self._forward(target, self.transaction, key, parts)
        return [(target, key) for target in packed]

    def _unmerged(self, held: HeldStep) -> dict[str, pa.Table]:
        """What a round has changed of views that feed others after the driver has merged them."""
        fed, told, self._told = readers(self._shard.catalog), self._told, len(held.partial)
        found: dict[str, list[pa.Table]] = {}
        for view, change in held.partial[told:]:
            if view in fed:
                found.setdefault(view, []).append(change)
        return {view: pa.concat_tables(changes) for view, changes in found.items()}

    def _write(self, held: HeldStep) -> None:
        parts = [*held.changes, *self._parts]
        if parts or self._head["catalog"] is not None:
            shard = self._shard
            self.file = shard.checkpoint.write_step(self.number, str(shard.number), self._head["driver_epoch"], parts)
        views = [view for view, _ in held.partial]
        rows = sum(part.rows for part in self._parts)
        head = {"file": self.file, "rows": rows, "entries": held.entries, "partial": views, "large": held.large}
        head["changed"] = changed_rows(held.changes)
        self._is_through = True
        self._answer(Message(head, tuple(change for _, change in held.partial)))

    def within(self, read: Callable[[Shard], Message]) -> Message:
        asked = _Read(read)
        self._commands.put(asked)
        return asked.found.result()

    def decide(self, keep: bool) -> None:
        """Ends the step; nothing of it is left open when this returns."""
        self._commands.put(keep)
        self._thread.join()
