"""A random workload on a disk that fails, against a model that does not.

The model is plain Python: tables are bags of rows, and views are computed from them. After each fault the directory is
opened, and has to be what the model says: everything that was acknowledged, and of the one step that was under way all
or nothing. With durability="async" a loss of power may take the last steps. A directory that was damaged later is what
the model says, or is refused by an error that names the file.
"""

from __future__ import annotations

import copy
import random
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import StorageError
from ivme.store import log as log_module
from ivme.store.end_file import END
from ivme.store.record import HEADER_BYTES, read_record
from ivme.store.segment import NAME
from tests.durability.directories import bag, crash
from tests.durability.faulty_disk import SECTOR, Crash, Disk

SCHEMA = {"a": "int", "b": "string"}


class Model:
    """What a database holds: rows of tables, the table or view that each view reads, and a position."""

    def __init__(self) -> None:
        self.tables: dict[str, Counter[Any]] = {}
        self.views: dict[str, str] = {}
        self.position: int | None = None

    def state(self) -> Any:
        return self.tables, {name: self.rows(name) for name in self.views}, self.position

    def rows(self, view: str) -> Counter[Any]:
        source = self.views[view]
        if source in self.views:
            return Counter({(sum(self.rows(source).values()),): 1})
        groups: dict[Any, list[int]] = {}
        for (a, b), n in self.tables[source].items():
            groups.setdefault(b, []).extend([a] * n)
        return Counter({(b, len(values), sum(values)): 1 for b, values in groups.items()})

    def query(self, view: str) -> str:
        source = self.views[view]
        if source in self.views:
            return f"SELECT COUNT(*) AS n FROM {source}"
        return f"SELECT b, COUNT(*) AS n, SUM(a) AS total FROM {source} GROUP BY b"


def state_of(db: Database) -> Any:
    """The same of a database."""
    assert {} == db.broken_views
    tables = {name: bag(db, name) for name in db.tables}
    return tables, {name: Counter(db.view(name)) for name in db.views}, db.position("s")


class Interrupted(BaseException):
    """Ctrl-C, after the record of a commit was written."""


class Campaign:
    """One run: some steps on one directory, decided by the seed alone."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.choose = random.Random(seed)
        self.folder = folder
        folder.mkdir()
        self.durability = self.choose.choice(["sync", "sync", "async"])
        self.disks = 0
        self.happened: Counter[str] = Counter()
        self.model = Model()
        self.possible = self.without_power = [self.model]
        self.db: Database | None = None
        self.disk = Disk(self._new_folder())

    def _new_folder(self) -> Path:
        self.disks += 1
        return self.folder / f"disk{self.disks}"

    def run(self, steps: int) -> None:
        """All steps, then a closing or a kill, and damage of every kind of file."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_module, "_Syncer", self._syncer())
            self.open()
            for _ in range(steps):
                self.step()
            self.end()
            self.damage()
        self.happened += self.disk.happened

    def _syncer(self) -> Any:
        """Syncs now and then when something is written, also what is taken back later."""
        choose = self.choose

        class Syncer:
            def __init__(self, sync: Callable[[], None]) -> None:
                self._sync = sync

            def wake(self) -> None:
                if choose.random() < 0.3:
                    with suppress(StorageError):  # whoever writes next is told
                        self._sync()

            def stop(self) -> None:
                pass

        return Syncer

    # Steps

    def step(self) -> None:
        kind = self.choose.choice(
            ["row"] * 6 + ["batch"] * 4 + ["catalog"] * 4 + ["checkpoint"] * 3 + ["close", "kill", "power", "interrupt"]
        )
        if kind == "kill":
            return self.reopen(self.killed(), self.possible[-1:], self.possible)
        if kind == "power":
            return self.reopen(self.powerless(), self.possible, self.possible)
        after = copy.deepcopy(self.model)
        action = getattr(self, kind)(after)
        if kind != "interrupt" and self.choose.random() < 0.5:
            self.disk.plan(self.faults())
        try:
            with self.disk.mounted():
                action()
        except Crash:
            self.crashed(after)
        except StorageError as error:
            self.named(error)
            self.failed(after, closed=kind == "close")
        except Interrupted:
            self.check()
            if self.choose.random() < 0.4:  # what was taken back must not return
                return self.reopen(self.powerless(), self.possible, self.possible)
        else:
            self.acknowledged(after, everything=kind in ("checkpoint", "close"))
            if kind == "close":
                self.db = None
                self.reopen(self.disk, self.possible, self.possible)
        self.disk.plan({})
        return None

    def faults(self) -> dict[int, str]:
        """What happens in a step: one fault, or two, mostly early."""
        kinds = ["crash"] * 4 + ["EIO", "ENOSPC", "short"]
        places = self.choose.sample(range(1, self.choose.choice([4, 12, 40])), self.choose.choice([1, 1, 2]))
        return {place: self.choose.choice(kinds) for place in places}

    def row(self, after: Model) -> Callable[[], None]:
        if not after.tables:
            return self.catalog(after)
        db, name = self.opened, self.choose.choice(sorted(after.tables))
        present = sorted(after.tables[name].elements())
        if present and self.choose.random() < 0.3:
            gone = self.choose.choice(present)
            after.tables[name] -= Counter([gone])
            return lambda: db.delete(name, [gone])
        new = self.new_row()
        after.tables[name][new] += 1
        return lambda: db.insert(name, [new])

    def new_row(self) -> tuple[int, str]:
        return self.choose.randrange(50), self.choose.choice(["x", "y", "ü" * self.choose.randrange(300)])

    def batch(self, after: Model) -> Callable[[], None]:
        if not after.tables:
            return self.catalog(after)
        made: dict[str, tuple[list[Any], list[int]]] = {}
        for name in self.choose.sample(sorted(after.tables), self.choose.randint(1, len(after.tables))):
            rows = [self.new_row() for _ in range(self.choose.choice([1, 5, 30]))]
            present = sorted(after.tables[name].elements())
            gone = self.choose.sample(present, min(len(present), self.choose.choice([0, 3])))
            made[name] = rows + gone, [1] * len(rows) + [-1] * len(gone)
            after.tables[name] = after.tables[name] + Counter(rows) - Counter(gone)
        after.position = position = (after.position or 0) + 1
        db = self.opened

        def act() -> None:
            with db.batch(source="s", position=position) as batch:
                for name, (rows, weights) in made.items():
                    batch.apply(name, rows, weights)

        return act

    def interrupt(self, after: Model) -> Callable[[], None]:
        act, store = self.batch(after), self.opened.definitions.store

        def interrupted() -> None:
            raise Interrupted

        def cut_off() -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(store, "_snapshot_if_due", interrupted)
                act()

        return cut_off if after.position != self.model.position else act

    def catalog(self, after: Model) -> Callable[[], None]:
        db, choose = self.opened, self.choose
        read = set(after.views.values())
        free = [name for name in after.views if name not in read]
        unused = [name for name in after.tables if name not in read]
        if after.tables and choose.random() < 0.5:
            name = choose.choice(
                [each for each in ("v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8") if each not in read]
            )
            if name in after.views:
                del after.views[name]
                return lambda: db.drop_view(name)
            plain = [view for view, source in after.views.items() if source in after.tables]
            after.views[name] = choose.choice(sorted(after.tables) + plain)
            query = after.query(name)
            return lambda: void(db.create_view(name, query))
        if free and choose.random() < 0.3:
            gone = choose.choice(free)
            del after.views[gone]
            return lambda: db.drop_view(gone)
        if unused and choose.random() < 0.3:
            table = choose.choice(unused)
            del after.tables[table]
            return lambda: db.drop_table(table)
        made = next((f"t{n}" for n in range(6) if f"t{n}" not in after.tables), "")
        if not made:
            return lambda: None
        after.tables[made] = Counter()
        return lambda: db.create_table(made, SCHEMA)

    def checkpoint(self, _: Model) -> Callable[[], None]:
        return self.opened.checkpoint

    def close(self, _: Model) -> Callable[[], None]:
        return self.opened.close

    # What comes of them

    @property
    def opened(self) -> Database:
        assert self.db is not None
        return self.db

    def acknowledged(self, after: Model, *, everything: bool) -> None:
        self.model = after
        durable = everything or self.durability == "sync"
        self.possible = [after] if durable else [*self.possible, after]

    def failed(self, after: Model, *, closed: bool) -> None:
        """A step that raised changed nothing, unless a sync failed: then nobody knows, and nothing more is written."""
        assert self.db is not None
        store = self.db.definitions.store
        assert store is not None
        with suppress(StorageError):
            if not closed:
                store.log.commits.check()
                self.check()
                return
        possible = [*self.possible, after]
        self.reopen(self.killed(), possible, possible)

    def check(self) -> None:
        assert self.model.state() == state_of(self.opened)

    def crashed(self, after: Model) -> None:
        self.happened += self.disk.happened
        possible = [*self.possible, after]
        if self.choose.random() < 0.5:
            self.reopen(self.killed(), possible[-2:], possible)
        else:
            self.reopen(self.powerless(), possible, possible)

    def killed(self) -> Disk:
        """The process is gone, and what it wrote is there."""
        self.let_go()
        self.disk.dead = False
        return self.disk

    def powerless(self) -> Disk:
        self.let_go()
        return self.disk.without_power(self._new_folder(), self.choose)

    def let_go(self) -> None:
        if self.db is not None and self.db.definitions.store is not None:
            crash(self.db)
        self.db = None

    def reopen(self, disk: Disk, possible: list[Model], without_power: list[Model]) -> None:
        """Opens a directory that is one of what is possible, or, if the power fails on the way, one of some others."""
        self.disk = disk
        disk.plan({})
        self.possible, self.without_power = possible, without_power
        self.open()

    def open(self) -> None:
        """Opens the directory, which may fail on the way and then succeeds; it is one of what is possible."""
        while self.choose.random() < 0.3:
            self.disk.plan(self.faults())
            try:
                with self.disk.mounted():
                    crash(Database(self.disk.path, durability=self.durability))
            except StorageError as error:
                self.named(error)
            except Crash:
                self.happened["crash on opening"] += 1
                self.disk.dead = False
                if self.choose.random() < 0.5:
                    self.disk = self.disk.without_power(self._new_folder(), self.choose)
                    self.possible = self.without_power
            self.disk.plan({})
        with self.disk.mounted():
            self.db = Database(self.disk.path, durability=self.durability)
            found = state_of(self.db)
        matching = [each for each in self.possible if each.state() == found]
        assert matching, f"found {found}, expected one of {[each.state() for each in self.possible]}"
        self.model = copy.deepcopy(matching[-1])
        self.possible = [self.model]

    def named(self, error: StorageError) -> None:
        assert str(self.disk.path) in str(error), error

    # Damage

    def end(self) -> None:
        """Closes the directory, or kills the process, unless the file of the end could not be written just now."""
        store = self.opened.definitions.store
        assert store is not None
        if store.log.commits._failure is not None:  # a sync of its own failed, and nobody has been told
            self.reopen(self.killed(), self.possible[-1:], self.possible)
            store = self.opened.definitions.store
            assert store is not None
        with self.disk.mounted():
            if self.durability == "async" or store.log._end._failed or self.choose.random() < 0.5:
                self.opened.close()
            else:
                crash(self.opened)
        self.db = None

    def damage(self) -> None:
        """Each kind of file is cut, flipped, zeroed and removed at every kind of place, one at a time."""
        files = [path for path in sorted(self.disk.path.iterdir()) if path.name != "lock"]
        kinds: dict[str, list[Path]] = {}
        for path in files:
            kinds.setdefault(path.name.split("-")[0], []).append(path)
        for kind, paths in kinds.items():
            for how in ("flip", "cut", "zero", "remove"):
                path = self.choose.choice(paths)
                self.damaged(path, how)
                self.happened[f"{how} of {kind}"] += 1

    def damaged(self, path: Path, how: str) -> None:
        copied = self._new_folder()
        shutil.copytree(self.disk.path, copied)
        file = copied / path.name
        data = bytearray(file.read_bytes())
        place = self.choose.choice(places(path.name, bytes(data), self.choose))
        if how == "remove":
            file.unlink()
        else:
            if how == "flip":
                data[place] ^= 1 << self.choose.randrange(8)
            elif how == "cut":
                del data[place:]
            else:
                data[place : place + SECTOR] = bytes(len(data[place : place + SECTOR]))
            file.write_bytes(data)
        refusal = self.refusal(copied)
        assert refusal is None or path.name in refusal, refusal
        shutil.rmtree(copied)

    def refusal(self, folder: Path) -> str | None:
        """Why a directory is refused; None if it is what the model says."""
        try:
            with Database(folder) as db:
                found = state_of(db)
        except StorageError as error:
            return str(error)
        assert self.model.state() == found
        return None


def places(name: str, data: bytes, choose: random.Random) -> list[int]:
    """A place of each class: the beginning, the end, anywhere, and in a log each part of a record."""
    found = {0, len(data) // 2, len(data) - 1, choose.randrange(len(data))}
    if name == END:
        found |= {4, 12, 40, 70, 4096, 4100, 4140, 4166}
    if NAME.fullmatch(name):
        view, place = memoryview(data), data.index(b"\n") + 1
        identity = data.split(b" ", 3)[2].decode()
        starts = []
        while (record := read_record(identity, view, place)) is not None:
            starts.append((place, record))
            place = record.end
        found.add(place - 1)
        for start, record in choose.sample(starts, min(len(starts), 3)):
            found |= {start, start + 4, start + 8, start + 16, start + 24, start + 33}
            found |= {start + HEADER_BYTES, record.end - len(record.body) - 1, record.end - 1}
    return sorted(place for place in found if 0 <= place < len(data))


def void(_: object) -> None:
    """An expression as a statement."""
