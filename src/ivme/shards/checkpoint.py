"""What a sharded database stores in its checkpoint. Everything else can be rebuilt from it.

    database.json                    the number of shards at first, and the identity of the database
    records/N                        the record of step N: its files, and how far each stream is; steps count from 1
    steps/N/SHARD-EPOCH-DIGEST       all that a shard received in step N, and how the views changed that are followed
    catalogs/N-EPOCH                 the tables and views from step N on
    snapshots/SHARD/N-EPOCH-DIGEST   a shard as it was after step N
    tails/SHARD/M-N-EPOCH-DIGEST     what a shard received in steps M to N, to be read after a snapshot
    consumers/NAME                   how far a stream of changes is
    reads/NAME                       the step that the tasks of a query read
    driver                           where the driver listens

A step has happened if its record is there, and only the files that the record names belong to it. A record is created
if it is absent: of two drivers that take the same step, one succeeds.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ivme.errors import SparkError
from ivme.shards.parts import PackedPart, digest_of, pieces, split_parts
from ivme.shards.tails import TailName
from ivme.store.checkpoint_store import CheckpointStore

_FORMAT = 2
_EMPTY_CATALOG: Mapping[str, Any] = {"tables": [], "views": [], "functions": []}


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a step. With no files and a new epoch it is a claim: a driver has opened the checkpoint.

    `catalog` names the catalog from this step on. In the tables of `clipped`, no more copies of a row are deleted
    than there are. `sources` is how far each stream has been applied. `files` are by shard; that of "driver" has the
    changes that were merged.

    `shards` is how many there are from this step on, if that has changed since the beginning; `layout` is the step that
    changed it, or 0. The files of that step have all rows again: those for shard T from shard S are under "T.S".
    """

    number: int
    epoch: int
    driver: str
    catalog: str | None = None
    sources: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0
    clipped: tuple[str, ...] = ()
    shards: int | None = None
    layout: int = 0
    changed: Mapping[str, int] = field(default_factory=dict)
    """How many rows changed in each followed view, as the files of the step have them."""

    @property
    def is_layout(self) -> bool:
        """Whether the step changed the number of shards, and not rows or views."""
        return 0 < self.layout == self.number

    def layout_files(self, shard: int) -> list[str]:
        """The files that a shard starts with in a new layout."""
        return [name for key, name in sorted(self.files.items()) if key.split(".")[0] == str(shard)]

    def next(self, driver: str) -> Record:
        """The record after this one, of a step that changes nothing."""
        return replace(self, number=self.number + 1, driver=driver, files={}, rows=0, clipped=(), changed={})

    def to_bytes(self) -> bytes:
        described = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(described).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Record:
        found = json.loads(data)
        return Record(**{**found, "clipped": tuple(found["clipped"])})


@dataclass(frozen=True, slots=True)
class SnapshotName:
    """A snapshot of a shard, by the step and the epoch at which it was written."""

    step: int
    epoch: int
    digest: str

    @staticmethod
    def parse(name: str) -> SnapshotName:
        step, epoch, digest = name.split("-")
        return SnapshotName(int(step), int(epoch), digest)

    def path(self, shard: int) -> str:
        return f"snapshots/{shard}/{self.step:012d}-{self.epoch}-{self.digest}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The checkpoint of one database."""

    store: CheckpointStore
    identity: str
    shards: int

    @staticmethod
    def open(store: CheckpointStore, shards: int | None) -> Checkpoint:
        """The database of a checkpoint; a new one, if there is none and the number of shards is given."""
        if shards is not None:
            about = {"format": _FORMAT, "identity": uuid.uuid4().hex, "shards": shards}
            if store.read("database.json") is None and store.create("database.json", json.dumps(about).encode()):
                return Checkpoint(store, str(about["identity"]), shards)
        written = store.read("database.json")
        if written is None:
            raise SparkError(f"there is no database at {store.address}")
        about = json.loads(written.to_pybytes())
        if about["format"] != _FORMAT:
            raise SparkError(
                f"the checkpoint {store.address} is of format {about['format']}; this version reads {_FORMAT}: load "
                "the tables into a new database"
            )
        found = Checkpoint(store, str(about["identity"]), int(about["shards"]))
        last = found.last_record()
        if last is not None and last.shards is not None:
            found = replace(found, shards=last.shards)
        if shards is not None and shards != found.shards:
            raise SparkError(
                f"the checkpoint {store.address} has {found.shards} shards, not {shards}; open it with shards="
                f"{found.shards}, and call reshard({shards})"
            )
        return found

    # Records

    def record(self, number: int) -> Record | None:
        """The record of a step; None if it has not happened."""
        found = self.store.read(f"records/{number:012d}")
        return None if found is None else Record.from_bytes(found.to_pybytes())

    def create_record(self, record: Record) -> bool:
        """Makes a step happen; False if another one has its number."""
        return self.store.create(f"records/{record.number:012d}", record.to_bytes())

    def last_record(self) -> Record | None:
        """The record of the last step; None if there is none."""
        found = None
        while found is None:
            numbers = self.numbers()
            if not numbers:
                return None
            found = self.record(numbers[-1])  # None if it was removed since the listing, after a later one
        while (later := self.record(found.number + 1)) is not None:
            found = later  # made since the listing
        return found

    def numbers(self) -> list[int]:
        """The steps whose records are there."""
        return [int(name) for name in self.store.list("records")]

    # Files

    def write_step(self, number: int, owner: str, epoch: int, parts: Sequence[PackedPart]) -> str:
        """Writes the file of a step; its name, which no other content has."""
        data = pieces(parts)
        name = f"steps/{number:012d}/{owner}-{epoch}-{digest_of(data)}"
        self.store.write(name, data)
        return name

    def read_file(self, name: str) -> Iterator[PackedPart]:
        """The parts of a file, after its digest was compared."""
        data = self.store.read(name)
        if data is None:
            raise SparkError(f"the checkpoint {self.store.address} lacks {name}, which a record names")
        if digest_of([data]) != name.rsplit("-", 1)[1]:
            raise SparkError(f"the file {name} of the checkpoint is damaged: its digest is not the one in its name")
        return split_parts(data)

    def write_catalog(self, number: int, epoch: int, catalog: Mapping[str, Any]) -> str:
        name = f"catalogs/{number:012d}-{epoch}"
        self.store.write(name, [json.dumps(catalog).encode()])
        return name

    def read_catalog(self, name: str | None) -> Mapping[str, Any]:
        """The catalog of that name; an empty one before the first."""
        if name is None:
            return _EMPTY_CATALOG
        found = self.store.read(name)
        if found is None:
            raise SparkError(f"the checkpoint {self.store.address} lacks {name}, which a record names")
        return dict(json.loads(found.to_pybytes()))

    # Snapshots

    def write_snapshot(self, shard: int, step: int, epoch: int, parts: Iterable[PackedPart]) -> None:
        data = pieces(parts)
        self.store.write(SnapshotName(step, epoch, digest_of(data)).path(shard), data)

    def snapshots(self, shard: int) -> list[SnapshotName]:
        """The snapshots of a shard, the newest last."""
        found = map(SnapshotName.parse, self.store.list(f"snapshots/{shard}"))
        return sorted(found, key=lambda each: (each.step, each.epoch))

    def write_tail(self, shard: int, first: int, last: int, epoch: int, parts: Iterable[PackedPart]) -> None:
        data = pieces(parts)
        self.store.write(TailName(first, last, epoch, digest_of(data)).path(shard), data)

    def tails(self, shard: int) -> list[TailName]:
        """The tails of a shard, in the order of their steps."""
        found = map(TailName.parse, self.store.list(f"tails/{shard}"))
        return sorted(found, key=lambda each: (each.first, each.last))

    # Streams of changes

    def write_consumer(self, name: str, view: str, step: int) -> None:
        """A stream of a view's changes has those up to a step; later ones are stored for it."""
        self.store.write(f"consumers/{name}", [json.dumps([view, step]).encode()])

    def consumers(self) -> Iterator[tuple[str, str, int]]:
        """The streams of changes: their names, their views, and how far they are."""
        for name in self.store.list("consumers"):
            found = self.store.read(f"consumers/{name}")
            if found is not None:
                view, step = json.loads(found.to_pybytes())
                yield name, view, step

    def forget_consumers(self, view: str) -> None:
        """A view is gone, and so are the streams of its changes."""
        for name, of, _ in list(self.consumers()):
            if of == view:
                self.store.delete(f"consumers/{name}")

    # Forgetting

    def forget(self, snapshot: int, wanted: int, last: Record) -> None:
        """Removes what is older than a step at which all shards have snapshots, but for steps that readers want.

        `wanted` is the last step whose changes all readers have. The last record stays: it says how far streams are.
        """
        for shard in range(self.shards):
            newest = self.snapshots(shard)[-1:]
            for old in self.snapshots(shard):
                if old.step <= snapshot and old not in newest:
                    self.store.delete(old.path(shard))
            for tail in self.tails(shard):
                if newest and tail.last <= newest[0].step:
                    self.store.delete(tail.path(shard))
        for folder in ("snapshots", "tails"):
            for name in self.store.list(folder):
                if int(name) >= self.shards:  # of an older layout with more shards
                    self.store.delete(f"{folder}/{name}")
        upto = min(snapshot, wanted, last.number - 1)
        for number in self.numbers():
            if number <= upto:
                self.store.delete(f"steps/{number:012d}")
                self.store.delete(f"records/{number:012d}")
        for name in self.store.list("catalogs"):
            if int(name.split("-")[0]) <= upto and f"catalogs/{name}" != last.catalog:
                self.store.delete(f"catalogs/{name}")
