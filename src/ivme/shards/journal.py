"""The files of a sharded database under its checkpoint. Everything else can be rebuilt from them.

    database.json             the number of shards, and the identity of the database
    log/N.json                step N: what changed, and the files with the rows; steps are counted from 1
    log/N/...                 those files
    outcomes/N.json           what became of step N in each shard, and where each shard's snapshot is
    snapshots/S/N             shard S as it was after step N
    changes/VIEW/N-S-P        the change of a followed view in step N, in shard S and pattern P
    stream, sources/NAME      Spark's own checkpoints

A file appears under its name when it is whole.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ivme.errors import SparkError
from ivme.shards.parts import PartFile

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Step:
    """An entry of the log.

    `catalog` is the new one, if it changed. In the tables of `clipped`, rows are not taken away more often than they
    are there. `undo` names the step before, if it failed somewhere and so must be taken back everywhere. `source` is a
    stream and the number of its batch that this step applies.
    """

    number: int
    catalog: Mapping[str, Any] | None = None
    files: tuple[PartFile, ...] = ()
    clipped: tuple[str, ...] = ()
    undo: int | None = None
    source: tuple[str, int] | None = None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@dataclass(frozen=True, slots=True)
class StepJournal:
    """The folder of a checkpoint."""

    root: Path
    identity: str
    shards: int

    @staticmethod
    def open(root: Path, shards: int | None) -> StepJournal:
        """The database of a checkpoint; a new one, if there is none and the number of shards is given."""
        about = root / "database.json"
        if about.exists():
            found = json.loads(about.read_text())
            if found["format"] != _FORMAT:
                raise SparkError(f"the checkpoint {root} is of format {found['format']}; this version reads {_FORMAT}")
            if shards is not None and shards != found["shards"]:
                raise SparkError(
                    f"the checkpoint {root} has {found['shards']} shards, not {shards}; open it with shards="
                    f"{found['shards']}, or load the tables into a new database"
                )
            return StepJournal(root, found["identity"], found["shards"])
        if shards is None:
            raise SparkError(f"there is no database at {root}")
        identity = uuid.uuid4().hex
        write_whole(about, {"format": _FORMAT, "identity": identity, "shards": shards})
        return StepJournal(root, identity, shards)

    def step_path(self, number: int) -> Path:
        return self.root / "log" / f"{number}.json"

    def write_step(self, step: Step) -> None:
        """Puts a step at the end of the log. From now on it is part of the database's history."""
        write_whole(
            self.step_path(step.number),
            {
                "number": step.number,
                "catalog": step.catalog,
                "files": [file.to_json() for file in step.files],
                "clipped": list(step.clipped),
                "undo": step.undo,
                "source": step.source,
            },
        )

    def read_step(self, number: int, digest: str | None = None) -> Step:
        """A step of the log, with the digest that it was known by."""
        data = self._bytes(self.step_path(number))
        if digest is not None and _digest(data) != digest:
            raise SparkError(f"step {number} in {self.root} is not the one that the state store names; it was changed")
        found = json.loads(data)
        source = found["source"]
        return Step(
            found["number"],
            found["catalog"],
            tuple(PartFile(*file) for file in found["files"]),
            tuple(found["clipped"]),
            found["undo"],
            None if source is None else (source[0], source[1]),
        )

    def digest(self, number: int) -> str:
        return _digest(self._bytes(self.step_path(number)))

    def last_step(self) -> int:
        """The number of the last step; 0 if there is none."""
        return max((int(path.stem) for path in (self.root / "log").glob("*.json")), default=0)

    def write_outcome(self, number: int, outcome: Mapping[str, Any]) -> None:
        write_whole(self.root / "outcomes" / f"{number}.json", outcome)

    def outcome(self, number: int) -> dict[str, Any] | None:
        """What became of a step; None if that is not known yet."""
        path = self.root / "outcomes" / f"{number}.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def last_outcome(self) -> int:
        """The number of the last step that has been through all shards."""
        return max((int(path.stem) for path in (self.root / "outcomes").glob("*.json")), default=0)

    def forget_before(self, number: int, snapshots: Mapping[int, int]) -> None:
        """Removes the log up to a step, older outcomes, and snapshots other than these, by shard."""
        for path in (self.root / "log").glob("*.json"):
            if int(path.stem) <= number:
                shutil.rmtree(path.with_suffix(""), ignore_errors=True)
                path.unlink(missing_ok=True)
        for path in (self.root / "outcomes").glob("*.json"):
            if int(path.stem) < number:
                path.unlink(missing_ok=True)
        for shard, kept in snapshots.items():
            for path in (self.root / "snapshots" / str(shard)).glob("*"):
                if path.name.isdecimal() and int(path.name) < kept:
                    path.unlink(missing_ok=True)

    def _bytes(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise SparkError(f"the checkpoint lacks {path}: {error}") from error


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def write_whole(path: Path, value: Any) -> None:
    """Writes JSON so that the file appears whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}")
    with partial.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
