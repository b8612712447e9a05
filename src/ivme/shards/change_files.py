"""The files with the changes of followed views, under the checkpoint.

`changes/VIEW/STEP-SHARD-PATTERN` has the change of rows that one engine knows by itself. Where a row or group has parts
in several shards, their changes wait in `partial/VIEW/`, until the driver has merged them into `changes/VIEW/STEP-m-m`.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ivme.errors import SparkError
from ivme.shards.journal import StepJournal

PARTIAL = "partial"


def change_files(journal: StepJournal, view: str, after: int, upto: int) -> dict[int, list[Path]]:
    """The files with a view's changes in the steps after one and up to another, by step."""
    found: dict[int, list[Path]] = {}
    for path in (journal.root / "changes" / view).glob("*-*-*"):
        number = path.name.split("-")[0]
        if number.isdecimal() and path.name.count("-") == 2 and "." not in path.name and after < int(number) <= upto:
            found.setdefault(int(number), []).append(path)
    return dict(sorted(found.items()))


def read_change(path: Path) -> pa.Table:
    """The change of a view's rows in one step and shard, with the weights as last column."""
    data = path.read_bytes()
    return pa.ipc.open_stream(pa.py_buffer(data[data.index(b"\n") + 1 :])).read_all()


def merged_path(root: Path, view: str, step: int) -> Path:
    """The file with the change of a view in a step that the driver merged."""
    return root / "changes" / view / f"{step}-m-m"


def partial_files(root: Path, view: str) -> dict[int, list[Path]]:
    """The files with changes of parts that are not merged yet, by step."""
    found: dict[int, list[Path]] = {}
    for path in (root / PARTIAL / view).glob("*-*-*"):
        if "." not in path.name:
            found.setdefault(int(path.name.split("-")[0]), []).append(path)
    return dict(sorted(found.items()))


def merged_up_to(root: Path, view: str, after: int, step: int) -> int:
    """The last step up to which all changes of a view after another step are there for readers.

    The driver merges a step before it begins the next: one that is older and not merged never will be.
    """
    waiting = [number for number in partial_files(root, view) if after < number <= step]
    if waiting and waiting[0] < step:
        raise SparkError(f"what step {waiting[0]} changed in view {view} could not be merged; follow the view anew")
    return waiting[0] - 1 if waiting else step
