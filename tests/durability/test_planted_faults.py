"""The suite of the faulty disk finds faults that are planted in the store.

Each fault is a way in which the store could be wrong. The campaigns of some seeds have to fail with it. Two more faults
need a coincidence that campaigns rarely meet, and have tests of their own: a torn end that stays in the log (in
`test_damage.py`), and a snapshot that removes files of a manifest that may be in use (in `test_faulty_disk.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ivme.store import contents, directory, end_file, files, record, segment, snapshot, store, system, view_file
from ivme.store.group_commit import GroupCommit
from ivme.store.log import Log
from tests.durability.campaign import Campaign
from tests.example_counts import some_of

Plant = Callable[[pytest.MonkeyPatch], None]

MOST_SEEDS = 240
STEPS = 40


def a_row_is_lost_on_replay(patch: pytest.MonkeyPatch) -> None:
    add = contents.StoredTable.add

    def losing(self: contents.StoredTable, rows: Any, weights: Any) -> None:
        few = isinstance(rows, list) and len(rows) > 4
        add(self, rows[:-1] if few else rows, weights[:-1] if few else weights)

    patch.setattr(contents.StoredTable, "add", losing)


def only_the_first_table_of_a_batch_is_replayed(patch: pytest.MonkeyPatch) -> None:
    add = contents.Contents._add_batch

    def first(self: Any, content: Any, body: Any, path: Path) -> None:
        add(self, {**content, "batch": content["batch"][:1]}, body, path)

    patch.setattr(contents.Contents, "_add_batch", first)


def a_commit_is_acknowledged_before_its_sync(patch: pytest.MonkeyPatch) -> None:
    def without_sync(self: GroupCommit, written: int) -> None:
        self.durable = written

    patch.setattr(GroupCommit, "_sync_for_all", without_sync)


def a_failed_sync_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    fail = GroupCommit.fail

    def forgotten(self: GroupCommit, error: BaseException) -> Any:
        raised = fail(self, error)
        self._failure = None
        return raised

    patch.setattr(GroupCommit, "fail", forgotten)


def checksums_of_records_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(record, "digest", lambda *_: bytes(16))


def the_checksum_of_a_table_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(snapshot, "digest", lambda _: SimpleNamespace(hex=Equal))


def the_checksum_of_the_views_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(view_file, "digest", lambda _: SimpleNamespace(hex=Equal))


class Equal(str):
    """A text that differs from nothing."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __ne__(self, other: object) -> bool:
        return False


def the_checksum_of_the_manifest_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def unchecked(path: Path) -> Any:
        import json

        return json.loads(files.read(path).partition(b"\n")[2])

    patch.setattr(snapshot, "read_sealed", unchecked)


def what_was_not_synced_is_not_written_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "settle", lambda tail: segment.settle(replace(tail, unsynced=b"")))


def the_end_of_the_log_is_never_stated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(end_file.EndFile, "_write", lambda *_: None)


def the_end_of_the_log_is_not_stated_on_closing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(end_file.EndFile, "note", lambda *_: None)
    close = Log.close

    def closed(self: Log) -> None:
        patch.setattr(self._end, "move", lambda _: None)
        close(self)

    patch.setattr(Log, "close", closed)


def the_end_of_the_log_is_not_noted_after_commits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(end_file.EndFile, "note", lambda *_: None)


def the_end_is_noted_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    wait = Log.wait

    def early(self: Log) -> None:
        self._end.note(getattr(self._mine, "end", end_file.End(0, 0, 0)))
        wait(self)

    patch.setattr(Log, "wait", early)


def the_end_counts_records_that_may_be_taken_back(patch: pytest.MonkeyPatch) -> None:
    append = Log.append

    def eager(self: Log, *arguments: Any) -> None:
        append(self, *arguments)
        self.commits.wait(self.last)
        self._end.note(self._mine.end)

    patch.setattr(Log, "append", eager)


def the_end_is_not_looked_at_on_opening(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "_read_end", lambda *_: None)


def damage_before_later_records_is_taken_for_a_torn_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(segment, "last_committed", lambda *_: 0)
    patch.setattr(directory, "_read_end", lambda *_: None)


def a_file_is_renamed_before_it_is_synced(patch: pytest.MonkeyPatch) -> None:
    """The sync of the file comes after the rename and the sync of the directory."""

    def renamed(old: Path, new: Path) -> None:
        system.rename(old, new)
        system.sync_directory(new.parent)
        descriptor = system.open_to_write(new)
        try:
            system.sync(descriptor)
        finally:
            system.close(descriptor)

    patch.setattr(files, "system", Calls(sync=lambda _: None, rename=renamed))


def a_directory_is_not_synced_after_a_rename(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(files, "system", Calls(sync_directory=lambda _: None))


def names_are_not_synced_on_opening(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(directory, "system", Calls(sync_directory=lambda _: None))


class Calls:
    """The calls of the store, with some others in their place."""

    def __init__(self, **other: Any) -> None:
        self._other = other

    def __getattr__(self, name: str) -> Any:
        return self._other[name] if name in self._other else getattr(system, name)


def files_are_removed_before_the_manifest_is_replaced(patch: pytest.MonkeyPatch) -> None:
    def removing(path: Path, manifest: snapshot.Manifest) -> None:
        directory.remove_unneeded(path, manifest)
        snapshot.write_manifest(path, manifest)

    patch.setattr(store, "write_manifest", removing)


def a_snapshot_that_fails_forgets_what_changed(patch: pytest.MonkeyPatch) -> None:
    made = store.Store.snapshot

    def forgetful(self: store.Store, most: int | None = None) -> None:
        try:
            made(self, most)
        except BaseException:
            self._changed.clear()
            raise

    patch.setattr(store.Store, "snapshot", forgetful)


def a_snapshot_has_no_positions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        store, "write_manifest", lambda path, made: snapshot.write_manifest(path, replace(made, positions=()))
    )


def a_snapshot_begins_before_the_log_is_durable(patch: pytest.MonkeyPatch) -> None:
    rotate = Log.rotate

    def hasty(self: Log) -> int:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self.commits, "wait", lambda _: None)
            return rotate(self)

    patch.setattr(Log, "rotate", hasty)
    patch.setattr(Log, "flush", lambda _: None)


def a_record_that_was_taken_back_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "roll_back", lambda *_: None)


def taking_a_record_back_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "_make_durable", lambda _: None)


def a_write_that_failed_stays_in_the_log(patch: pytest.MonkeyPatch) -> None:
    def uncut(self: Log, mark: Any) -> None:
        self.commits.roll_back(mark[0], lambda: None)
        self.state.place += 7

    patch.setattr(Log, "_cut", uncut)


def a_short_write_is_taken_for_a_whole_one(patch: pytest.MonkeyPatch) -> None:
    def once(descriptor: int, parts: Any, place: int) -> int:
        for part in parts:
            if len(part):
                system.write(descriptor, part, place)
            place += len(part)
        return place

    for module in (files, end_file, segment):
        patch.setattr(module, "write_fully", once)
    patch.setattr("ivme.store.log.write_fully", once)


FAULTS: list[Plant] = [
    a_row_is_lost_on_replay,
    only_the_first_table_of_a_batch_is_replayed,
    a_commit_is_acknowledged_before_its_sync,
    a_failed_sync_is_forgotten,
    checksums_of_records_are_ignored,
    the_checksum_of_a_table_is_ignored,
    the_checksum_of_the_views_is_ignored,
    the_checksum_of_the_manifest_is_ignored,
    what_was_not_synced_is_not_written_again,
    the_end_of_the_log_is_never_stated,
    the_end_of_the_log_is_not_stated_on_closing,
    the_end_of_the_log_is_not_noted_after_commits,
    the_end_is_noted_before_the_sync,
    the_end_counts_records_that_may_be_taken_back,
    the_end_is_not_looked_at_on_opening,
    damage_before_later_records_is_taken_for_a_torn_end,
    a_file_is_renamed_before_it_is_synced,
    a_directory_is_not_synced_after_a_rename,
    names_are_not_synced_on_opening,
    files_are_removed_before_the_manifest_is_replaced,
    a_snapshot_that_fails_forgets_what_changed,
    a_snapshot_has_no_positions,
    a_snapshot_begins_before_the_log_is_durable,
    a_record_that_was_taken_back_stays,
    taking_a_record_back_is_not_synced,
    a_write_that_failed_stays_in_the_log,
    a_short_write_is_taken_for_a_whole_one,
]


def is_found(folder: Path, plant: Plant, seeds: range) -> int | None:
    """The first seed whose campaign fails with the fault."""
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            plant(patch)
            try:
                Campaign(seed, folder / str(seed)).run(STEPS)
            except Exception:
                return seed
    return None


@pytest.mark.long
@pytest.mark.parametrize("plant", FAULTS)
def test_a_planted_fault_is_found(tmp_path: Path, plant: Plant) -> None:
    assert is_found(tmp_path, plant, range(MOST_SEEDS)) is not None


@pytest.mark.parametrize(
    "plant",
    some_of(
        [
            a_row_is_lost_on_replay,
            a_commit_is_acknowledged_before_its_sync,
            checksums_of_records_are_ignored,
            the_end_of_the_log_is_never_stated,
            a_record_that_was_taken_back_stays,
        ],
        a_row_is_lost_on_replay,
        a_commit_is_acknowledged_before_its_sync,
    ),
)
def test_a_coarse_fault_is_found_at_once(tmp_path: Path, plant: Plant) -> None:
    assert is_found(tmp_path, plant, range(8)) is not None
