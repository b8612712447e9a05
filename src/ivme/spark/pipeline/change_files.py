"""The files in a directory of changes: which there are, in what order, and what their folders say.

Files lie in the directory itself or in folders below it, as Spark's `partitionBy` makes them: a folder `day=2026-11-15`
gives all rows of its files the value of the column `day`. Names are compared as people read them: 10.csv comes
after 9.csv.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from ivme.pipeline.journal import Stamp

_NUMBERS = re.compile(r"(\d+)")
_NULL = "__HIVE_DEFAULT_PARTITION__"

Partition = tuple[tuple[str, str | None], ...]
"""The columns that folders give a file, with their values."""


def files_in(folder: Path) -> list[tuple[str, Stamp]]:
    """The files by name, which is the path below the folder, in their order, with their stamps."""
    return sorted(_files(folder, ""), key=lambda found: in_order(found[0]))


def _files(folder: Path, below: str) -> Iterator[tuple[str, Stamp]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name[0] in "._":  # hidden, or being written
                continue
            if entry.is_dir():
                yield from _files(Path(entry.path), f"{below}{entry.name}/")
            elif entry.is_file():
                status = entry.stat()
                yield below + entry.name, (status.st_mtime_ns, status.st_size)


def in_order(name: str) -> tuple[tuple[str | int, ...], str]:
    """What names are compared by: their numbers as numbers.

    >>> sorted(["10.csv", "9.csv", "a/1.csv"], key=in_order)
    ['9.csv', '10.csv', 'a/1.csv']
    """
    parts = _NUMBERS.split(name)
    return tuple(int(part) if number % 2 else part for number, part in enumerate(parts)), name


def partition_of(name: str) -> Partition:
    """What the folders of a file say.

    >>> partition_of("day=2026-11-15/city=S%C3%A3o%20Paulo/part-0.parquet")
    (('day', '2026-11-15'), ('city', 'São Paulo'))
    """
    pairs = (part.partition("=") for part in PurePosixPath(name).parts[:-1])
    return tuple((key, None if value == _NULL else unquote(value)) for key, is_one, value in pairs if is_one)


def header_of(lines: Iterable[str], options: Mapping[str, str]) -> list[str]:
    """The names in the first line of CSV, by Spark's options for it."""
    delimiter = options.get("sep", options.get("delimiter", ","))
    return [name.strip() for name in next(csv.reader(lines, delimiter=delimiter), [])]


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
