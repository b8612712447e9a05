"""The folder where refused changes wait for a person, each beside a text that says why it was refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.pipeline.journal import digits

_LETTERS = "rows-"
"""How the names of files start that hold single rows of a batch."""


_REASON = ".reason.txt"
"""How the names of texts end that say why a file was refused."""


def letters_name(batch: int) -> str:
    """The file with the rows of a batch that were refused."""
    return f"{_LETTERS}{digits(batch)}.parquet"


class Quarantine:
    """A folder with a subfolder for each table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep_file(self, table: str, file: Path, reason: str) -> Path:
        """Keeps a copy of a file (a link where that is possible); the file itself stays where it is."""
        folder = self._of(table)
        kept = _free(folder / file.name)
        try:
            os.link(file, kept)
        except OSError:
            shutil.copyfile(file, kept)
        return self._explain(kept, reason)

    def keep_letters(self, table: str, batch: int, rows: pa.Table) -> str:
        """Keeps changes of a batch that the database refused, with their weights and reasons; the name of the file."""
        self._of(table)
        kept = self.letters_of(table, batch)
        partial = kept.with_suffix(".partial")
        pq.write_table(rows, partial)
        partial.replace(kept)
        return kept.name

    def letters(self, table: str, up_to: int) -> list[Path]:
        """The files of changes that were refused, of batches up to a number."""
        folder = self.folder / table
        found = sorted(folder.glob(f"{_LETTERS}*.parquet")) if folder.is_dir() else []
        return [path for path in found if int(path.stem.removeprefix(_LETTERS)) <= up_to]

    def files(self, table: str) -> list[Path]:
        """The whole files of a table that wait."""
        folder = self.folder / table
        found = sorted(folder.glob(f"*{_REASON}")) if folder.is_dir() else []
        return [path.with_name(path.name.removesuffix(_REASON)) for path in found]

    def drop_file(self, kept: Path) -> None:
        """Removes a whole file and its reason."""
        kept.unlink(missing_ok=True)
        kept.with_name(kept.name + _REASON).unlink()

    def letters_of(self, table: str, batch: int) -> Path:
        """Where refused changes of a batch are, if there are any."""
        return self.folder / table / letters_name(batch)

    def waiting(self, table: str = "*") -> int:
        """How many rows wait, of a table or of all."""
        found = self.folder.glob(f"{table}/{_LETTERS}*.parquet") if self.folder.is_dir() else []
        return sum(pq.read_metadata(path).num_rows for path in found)

    def _of(self, table: str) -> Path:
        folder = self.folder / table
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _explain(self, kept: Path, reason: str) -> Path:
        kept.with_name(kept.name + _REASON).write_text(reason + "\n", "utf-8")
        return kept


def _free(path: Path) -> Path:
    """The path, or one beside it where another file of that name waits already."""
    number = 1
    free = path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}.{number}{path.suffix}")
    return free
