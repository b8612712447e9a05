"""The driver's side of steps: put, prepare, record, commit. One step is in flight.

A step has happened when its record is there. Until then everything can be taken back, and the driver looks at what no
shard can see alone; afterwards nothing can fail: a shard that does not hear of the commit reads it in the checkpoint.
Whether a record exists whose writing failed is not known before its number is taken: by that record, or by a claim.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ivme.errors import IvmeError, SparkError, StorageError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.checkpoint import Checkpoint, Record
from ivme.shards.cluster import Cluster
from ivme.shards.distribute import packed_by_shard
from ivme.shards.exchange import Told, last_round, placed_changes
from ivme.shards.message import Message, Question, raise_error
from ivme.shards.parts import PackedPart, changed_rows

_logger = logging.getLogger("ivme")

_NOTHING = Message({})

LEAST_LOG_ROWS = 200_000
LONGEST_LOG = 500
"""Shards write snapshots when the steps since the last ones have more rows than the shards have entries, and at least
this many; when they are this many steps, they write what has changed since."""

PutPlace = tuple[int, tuple[str, str]]
"""A shard, and the key under which it was put parts."""


@dataclass(frozen=True, slots=True)
class StepInput:
    """What a step is made of: the places where its rows were put, and what else changes."""

    transaction: str
    places: Sequence[PutPlace] = ()
    catalog: ShardCatalog | None = None
    clipped: Sequence[str] = ()
    source: tuple[str, int] | None = None


@dataclass(slots=True)
class OpenStep:
    """A step that all shards have prepared: their answers, by shard, and the catalog that it makes or leaves."""

    transaction: str
    answers: dict[int, Message]
    catalog: ShardCatalog

    def large_views(self) -> set[str]:
        """The views whose sums may not fit, as far as the answers know."""
        return {view for answer in self.answers.values() for view in answer.head["large"]}

    def partial_changes(self) -> dict[str, list[Any]]:
        """The changes of views whose rows have parts in several shards."""
        found: dict[str, list[Any]] = {}
        for answer in self.answers.values():
            for view, change in zip(answer.head["partial"], answer.tables, strict=True):
                found.setdefault(view, []).append(change)
        return found


Merge = Callable[["Coordinator", OpenStep], list[Told]]
"""The changes of views that feed others, of those whose rows have parts in several shards, after a round."""

Decide = Callable[[OpenStep], list[PackedPart]]
"""Looks at a step over all shards: raises why it cannot happen, or returns the merged changes."""


class Coordinator:
    """The steps of one driver over one checkpoint."""

    def __init__(self, cluster: Cluster, merge: Merge = lambda *_: []) -> None:
        self.cluster = cluster
        self._merge = merge
        self.checkpoint: Checkpoint = cluster.checkpoint
        self.driver = uuid.uuid4().hex
        self.last = self._claimed()
        if self.last.shards not in (None, self.checkpoint.shards):
            raise SparkError(f"the database has {self.last.shards} shards since a moment ago; open it again")
        self.catalog = ShardCatalog.from_json(self.checkpoint.read_catalog(self.last.catalog))
        self.entries: dict[int, dict[str, int]] = {}
        self._large: set[str] = set()
        self._undecided: _Undecided | None = None
        self._attempts = 0
        self._log_rows = self._log_steps = 0

    @property
    def step(self) -> int:
        """The number of the last step."""
        return self.last.number

    def _claimed(self) -> Record:
        """Takes the next step number: whatever another driver had begun has happened before, or never will."""
        while True:
            last = self.checkpoint.last_record() or Record(0, 0, "")
            claim = replace(last.next(self.driver), epoch=last.epoch + 1)
            if self.checkpoint.create_record(claim):
                return claim

    def start(self) -> None:
        """Starts serving the shards; returns when all are served."""
        self.cluster.start(self.last.epoch)
        found = [answer.head for answer in self.ask_all({"op": "status"})]
        self.entries = {each["shard"]: each["entries"] for each in found}
        self._large = {view for each in found for view in each["large"]}
        self._log_steps = len(self.checkpoint.numbers())
        self._publish()

    # Asking

    def ask(self, questions: Sequence[Question]) -> list[Message]:
        """The answers of shards at the present step; raises what one of them reports."""
        known = {"step": self.step, "ended": self._attempts}
        asked = [replace(q, head={**q.head, **known}) for q in questions]
        answers = self.cluster.ask(asked)
        for answer in answers:
            raise_error(answer.head)
        return answers

    def ask_all(self, head: Mapping[str, Any]) -> list[Message]:
        return self.ask([Question(shard, head) for shard in range(self.checkpoint.shards)])

    def within(self, step: OpenStep, head: Mapping[str, Any], tables: tuple[Any, ...]) -> list[Message]:
        """The answers of all shards within the open step; LostError if one has lost it."""
        known = {"step": self.step, "ended": self._attempts - 1}
        open_, before = {**head, "transaction": step.transaction}, {**head, **known}
        shards = range(self.checkpoint.shards)
        asked = [Question(shard, open_ if shard in step.answers else before, tables) for shard in shards]
        answers = self.cluster.ask(asked, patient=False)
        for answer in answers:
            raise_error(answer.head)
        return answers

    # Steps

    def take(self, given: StepInput, decide: Decide) -> None:
        """Takes all shards through a step, or none; raises why not."""
        number, catalog = self._begin(given)
        try:
            answers = self._prepare(given, number, catalog)
            merged = decide(OpenStep(given.transaction, answers, given.catalog or self.catalog))
            record = self._record(given, number, catalog, answers, merged)
        except BaseException:
            self._abort(given.transaction)
            raise
        nothing = self.last.next(self.driver)
        self._decide(_Undecided(record, nothing, given, answers))

    def attempt(self, given: StepInput, decide: Decide) -> None:
        """Does all of a step but its record, and takes it back; raises why it cannot happen."""
        number, catalog = self._begin(given)
        try:
            answers = self._prepare(given, number, catalog)
            decide(OpenStep(given.transaction, answers, given.catalog or self.catalog))
        finally:
            self._abort(given.transaction)

    def _begin(self, given: StepInput) -> tuple[int, str | None]:
        """The number of a new attempt's step, and the name of its catalog."""
        self.settle()
        number, catalog = self.step + 1, self.last.catalog
        if given.catalog is not None:
            catalog = self.checkpoint.write_catalog(number, self.last.epoch, given.catalog.to_json())
        self._attempts += 1
        return number, catalog

    def _prepare(self, given: StepInput, number: int, catalog: str | None) -> dict[int, Message]:
        """The answers of the shards that have something to do in a step; raises the first reason not to take it.

        What a round changes in views that feed others, shards put to each other; who has got something joins the next.
        """
        described = None if given.catalog is None else [catalog, given.catalog.to_json()]
        rounds = 1 if described else 1 + last_round(self.catalog)
        head = {
            "op": "prepare",
            "step": number,
            "transaction": given.transaction,
            "attempt": self._attempts,
            "driver_epoch": self.last.epoch,
            "catalog": described,
            "clipped": list(given.clipped),
            "checked": sorted(self._large),
            "last_round": rounds - 1,
        }
        everyone = range(self.checkpoint.shards if described else 0)
        answers = dict.fromkeys(everyone, _NOTHING)
        places: Sequence[PutPlace] = given.places
        for number in range(rounds):
            answers |= self._ask_round({**head, "round": number}, answers, places)
            places = [(shard, tuple(key)) for each in answers.values() for shard, key in each.head.get("sent", ())]
            if number < rounds - 1:
                places = [*places, *self._put_merged(given.transaction, number, answers)]
        return answers

    def _put_merged(self, transaction: str, number: int, answers: dict[int, Message]) -> list[PutPlace]:
        """Puts what a round has changed in few rows, of which shards have parts, to the views that they feed."""
        told = self._merge(self, OpenStep(transaction, answers, self.catalog))
        packed, key = packed_by_shard(placed_changes(self.catalog, told)), (f"round-{number}-merged", "0")
        self.cluster.put(transaction, key, packed)
        return [(shard, key) for shard in packed]

    def _ask_round(
        self, head: Mapping[str, Any], involved: Iterable[int], places: Sequence[PutPlace]
    ) -> dict[int, Message]:
        by_shard: dict[int, list[tuple[str, str]]] = {shard: [] for shard in sorted(involved)}
        for shard, key in places:
            by_shard.setdefault(shard, []).append(key)
        asked = [Question(shard, {**head, "parts": sorted(keys)}) for shard, keys in by_shard.items()]
        answers = dict(zip(by_shard, self.cluster.ask(asked, patient=False), strict=True))
        failed = [(answer.head, shard) for shard, answer in answers.items() if "error" in answer.head]
        failed.sort(key=lambda each: (not each[0].get("in_table"), each[1]))
        for found, _ in failed:
            raise_error(found)
        return answers

    def _record(
        self,
        given: StepInput,
        number: int,
        catalog: str | None,
        answers: Mapping[int, Message],
        merged: Sequence[PackedPart],
    ) -> Record:
        files = {str(shard): answer.head["file"] for shard, answer in answers.items() if answer.head["file"]}
        if merged:
            files["driver"] = self.checkpoint.write_step(number, "driver", self.last.epoch, merged)
        sources = dict(self.last.sources)
        if given.source is not None:
            sources[given.source[0]] = given.source[1]
        rows = sum(answer.head["rows"] for answer in answers.values())
        following = self.last.next(self.driver)
        clipped = tuple(given.clipped)
        changed = Counter(changed_rows(merged))
        for answer in answers.values():
            changed.update(answer.head["changed"])
        found = replace(following, catalog=catalog, sources=sources, files=files, rows=rows, clipped=clipped)
        return replace(found, changed=dict(changed))

    def lay_out(self, catalog: ShardCatalog, shards: int, merged: Iterable[Told] = ()) -> None:
        """Changes the number of shards, between two steps: afterwards the checkpoint is to be reopened.

        Each shard writes the rows of its tables, which no other shard has, for the shards where they and the views want
        them; these are then built once, to see that they can be. The step happens with its record: a driver that opens
        the checkpoint before that finds the old layout, and the new one afterwards. `merged` are the rows of views that
        feed others and have parts in several shards.
        """
        self.settle()
        number, described = self.step + 1, catalog.to_json()
        name = self.checkpoint.write_catalog(number, self.last.epoch, described)
        head = {"op": "lay_out", "catalog": described, "shards": shards, "driver_epoch": self.last.epoch}
        answers = self.ask_all(head)
        files = {key: file for answer in answers for key, file in answer.head["files"].items()}
        rows = sum(answer.head["rows"] for answer in answers)
        for new, parts in packed_by_shard(placed_changes(catalog, merged)).items():
            owner = f"{new}.merged"
            files[owner] = self.checkpoint.write_step(number, owner, self.last.epoch, parts)
        record = replace(
            self.last.next(self.driver), catalog=name, files=files, rows=rows, shards=shards, layout=number
        )
        rehearsed = {"op": "rehearse", "catalog": described}
        asked = [
            Question(new % self.checkpoint.shards, {**rehearsed, "new": new, "files": record.layout_files(new)})
            for new in range(shards)
        ]
        self.ask(asked)
        try:
            self._made(record)
        except StorageError as error:
            raise StorageError(
                f"whether the database has {shards} shards or {self.checkpoint.shards} is not known, as a record could "
                f"not be made: {error}; open the checkpoint again to find out"
            ) from error

    def _abort(self, transaction: str) -> None:
        """Takes a step back in all shards; one that cannot be reached does so when it hears of the next."""
        head = {"op": "abort", "transaction": transaction, "attempt": self._attempts}
        self.cluster.ask([Question(shard, head) for shard in range(self.checkpoint.shards)], patient=False)

    def settle(self) -> None:
        """Decides a step whose record may or may not have been made, if there is one; raises if that cannot be done.

        Its number is taken by a record that changes nothing, unless its own is there.
        """
        waiting = self._undecided
        if waiting is not None:
            self._ended(waiting, self._made(waiting.nothing))

    def _decide(self, waiting: _Undecided) -> None:
        """Makes the record of a step that all shards have prepared."""
        self._undecided = waiting
        try:
            found = self._made(waiting.record)
        except StorageError as error:
            if not self._is_there(waiting, error):
                raise SparkError(f"nothing was changed: the record of the step could not be made: {error}") from error
            return
        self._ended(waiting, found)
        if self.last != waiting.record:
            raise SparkError(f"nothing was changed: another step took the number {waiting.record.number}; try again")

    def _is_there(self, waiting: _Undecided, error: StorageError) -> bool:
        """Whether a record is there whose making failed."""
        try:
            self.settle()
        except StorageError:
            raise SparkError(
                f"whether the batch of step {waiting.record.number} counts is not known, as its record could not be "
                f"made: {error}; the next call finds out, once the checkpoint can be reached"
            ) from error
        return self.last == waiting.record

    def _made(self, record: Record) -> Record:
        """The record that has a number: this one, or one that was made before."""
        found = record if self.checkpoint.create_record(record) else self.checkpoint.record(record.number)
        if found is None or found.driver != self.driver:
            raise SparkError(
                f"another driver has taken over the checkpoint {self.checkpoint.store.address}; close this database"
            )
        return found

    def _ended(self, waiting: _Undecided, found: Record) -> None:
        """Goes on from the record that a step's number has; an interrupted call may be made again."""
        if found == waiting.record:
            if waiting.given.catalog is not None:
                self.catalog = waiting.given.catalog
            self.last = found
            self._committed(waiting)
        else:
            self.last = found
            self._abort(waiting.given.transaction)
        self._undecided = None
        self._publish()

    def _committed(self, waiting: _Undecided) -> None:
        """Tells the shards that a step has happened."""
        record = waiting.record
        self.entries.update({shard: answer.head["entries"] for shard, answer in waiting.answers.items()})
        self._large.update(view for answer in waiting.answers.values() for view in answer.head["large"])
        head = {"op": "commit", "step": record.number, "sources": dict(record.sources)}
        files = record.files
        self.cluster.ask(
            [Question(s, {**head, "file": files.get(str(s))}) for s in range(self.checkpoint.shards)], patient=False
        )
        self._log_rows += record.rows
        self._log_steps += 1

    def _publish(self) -> None:
        known = {"step": self.step, "ended": self._attempts}
        self.cluster.publish({**known, "epoch": self.last.epoch, "catalog": self.last.catalog})

    # Compaction

    def compact(self, wanted: Callable[[], int], *, now: bool = False) -> None:
        """Replaces steps by snapshots when there are many; `wanted` is the last step whose changes readers have."""
        size = sum(count for entries in self.entries.values() for count in entries.values())
        whole = now or self._log_rows > max(LEAST_LOG_ROWS, size)
        if not whole and self._log_steps <= LONGEST_LOG:
            return
        self._log_rows, self._log_steps = 0 if whole else self._log_rows, 0
        try:
            answers = self.ask_all({"op": "snapshot", "tail": not whole, "driver_epoch": self.last.epoch})
            self.checkpoint.forget(min(answer.head["step"] for answer in answers), wanted(), self.last)
        except IvmeError as error:  # the batch counts all the same
            _logger.warning("the steps of %s stay, as no snapshots were made: %s", self.checkpoint.store.address, error)


@dataclass(frozen=True, slots=True)
class _Undecided:
    """A step whose record is being made, and the record that takes its number if it is not to happen."""

    record: Record
    nothing: Record
    given: StepInput
    answers: Mapping[int, Message]


def new_transaction() -> str:
    """A name for one attempt at a batch."""
    return uuid.uuid4().hex
