"""The step at which all tasks of one query read a view.

Spark keeps what a data source planned for as long as a DataFrame or a temporary view lives, so that a step chosen then
would be stale after the next change. The tasks choose it themselves when they run: the first one of a stage writes the
present step to a file of the checkpoint, if there is none yet, and the others read it.
"""

from __future__ import annotations

import os
import time
import uuid
from pathlib import Path

from ivme.shards.present import Present

_FORGOTTEN_AFTER = 3600.0


def agreed_step(root: str, reader: str) -> int:
    """The step of the query that this task belongs to; `reader` tells apart the DataFrames of all applications."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return Present.of(root).step
    folder = Path(root) / "reads"
    folder.mkdir(exist_ok=True)
    return _agreed(folder / f"{reader}-{context.stageId()}", root)


def _agreed(path: Path, root: str) -> int:
    if not path.exists():
        _forget_old(path.parent)
        mine = path.with_name(f".{uuid.uuid4().hex}")
        mine.write_text(str(Present.of(root).step), "utf-8")
        try:
            os.link(mine, path)  # the first one counts
        except FileExistsError:
            pass  # another task of the query was first
        finally:
            mine.unlink()
    return int(path.read_text("utf-8"))


def _forget_old(folder: Path) -> None:
    """Removes the files of queries that ended long ago."""
    before = time.time() - _FORGOTTEN_AFTER
    for path in folder.iterdir():
        if path.stat().st_mtime < before:
            path.unlink(missing_ok=True)
