"""The store on a disk that fails in every way: see `faulty_disk` and `campaign`.

`IVME_DISK_SECONDS` and `IVME_DISK_SEED` say how long the long run takes, and where its seeds begin.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections import Counter
from pathlib import Path

import pytest

from ivme.database import Database
from ivme.errors import StorageError
from tests.durability.campaign import Campaign
from tests.durability.directories import bag, crash
from tests.durability.faulty_disk import Disk

STEPS = 40


def follow(seed: int, folder: Path) -> Counter[str]:
    """Runs the campaign of a seed; a failure names it."""
    campaign = Campaign(seed, folder / str(seed))
    try:
        campaign.run(STEPS)
    except BaseException as error:
        error.add_note(f"seed {seed}: IVME_DISK_SEED={seed} IVME_DISK_SECONDS=0 runs it alone")
        raise
    return campaign.happened


@pytest.mark.parametrize(
    ("first", "seeds"), [(0, 6), *(pytest.param(each, 20, marks=pytest.mark.long) for each in (0, 20, 40, 60))]
)
def test_whatever_the_disk_does_the_directory_is_right_or_refused_by_name(
    tmp_path: Path, first: int, seeds: int
) -> None:
    happened: Counter[str] = Counter()
    for seed in range(first, first + seeds):
        happened += follow(seed, tmp_path)
    assert seeds // 2 < sum(count for name, count in happened.items() if name.startswith("crash"))


def test_two_snapshots_that_fail_anywhere_leave_a_directory_that_opens(tmp_path: Path) -> None:
    """Also if the manifest was replaced and could not be synced: the files of both manifests stay."""
    for first, second in itertools.product(range(1, 24), (1, 9)):
        disk = Disk(tmp_path / f"{first}-{second}")
        with disk.mounted():
            db = Database(disk.path)
            db.create_table("R", {"a": "int"})
            for place in (first, second):
                db.insert("R", [(place,)])
                disk.plan({place: "EIO"})
                with contextlib.suppress(StorageError):
                    db.checkpoint()
                disk.plan({})
            crash(db)
            with Database(disk.path) as db:
                assert Counter([(first,), (second,)]) == bag(db, "R")


@pytest.mark.long
def test_the_same_for_as_long_as_asked(tmp_path: Path) -> None:
    seconds, seed = float(os.environ.get("IVME_DISK_SECONDS", "300")), int(os.environ.get("IVME_DISK_SEED", "1000"))
    stop = time.monotonic() + seconds
    happened = follow(seed, tmp_path)
    while time.monotonic() < stop:
        seed += 1
        happened += follow(seed, tmp_path)
    print(f"seeds up to {seed}: {dict(happened.most_common())}")
