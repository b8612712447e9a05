"""A directory of change files: each is applied once, in the order of names, or put into quarantine with the reason.

A file is judged before it is planned by what needs no reading of its rows: its name (one that sorts before what has
been applied is late), its content (one that has been applied under another name is a duplicate) and its columns.
Rows are read by Spark, all files of a batch in one job; only if that fails is each file read on its own, to find the
ones to blame.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from ivme.errors import DataError, IvmeError, SchemaError, SparkError
from ivme.pipeline.journal import ChangeFile, RunJournal
from ivme.pipeline.model import TableSource
from ivme.spark.pipeline.load import read_files, shaped, to_rows, weight_of
from ivme.spark.pipeline.schema import check_columns, check_names, file_schema
from ivme.spark.pipeline.source import Plan, TableChanges, delta_of
from ivme.spark.session.failure import is_data_failure, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Refuse = Callable[[ChangeFile, Path, str], None]
"""Puts a file into quarantine, or raises if the pipeline stops at bad files."""


class BadFilesError(IvmeError):
    """Files of a batch that cannot be read, with the reasons."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))


class Directory:
    """The change files of one table."""

    def __init__(self, spark: SparkSession, source: TableSource, journal: RunJournal, refuse: Refuse) -> None:
        assert source.changes is not None
        self.table, self._changes = source.table, source.changes
        self.folder = Path(str(source.changes.rows.path))
        self.limit = source.changes.files_per_batch
        self._spark, self._journal, self._refuse = spark, journal, refuse
        self._seen: dict[str, tuple[int, int]] = {}
        self._layout = self._files_layout()

    def _files_layout(self) -> StructType:
        from pyspark.sql.types import LongType, StringType, StructType

        if self._changes.rows.schema is not None:
            layout = StructType.fromDDL(self._changes.rows.schema)
            assert isinstance(layout, StructType)
            return layout
        extra = [(self._changes.operation, StringType()), (self._changes.weight, LongType())]
        return file_schema(self.table, [(name, kind) for name, kind in extra if name is not None])

    # What is there

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        """The next files in the order of names. What is refused on the way goes into quarantine."""
        chosen: list[ChangeFile] = []
        for path in self._waiting():
            if len(chosen) == self.limit:
                break
            file = ChangeFile(path.name, _digest(path))
            self._seen[path.name] = _stamp(path)
            if any(digest == file.digest for digest, _ in self._journal.known(self.table.name, file.name)):
                continue
            reason = self._objection(file, path, chosen)
            if reason is None:
                chosen.append(file)
            else:
                self._refuse(file, path, reason)
        return (files_plan(chosen), chosen) if chosen else None

    def lag(self) -> int:
        return sum(1 for _ in self._waiting())

    def first(self) -> int:
        return 0

    def _waiting(self) -> list[Path]:
        """Files that have not been looked at as they are now. Hidden ones, and those being written, do not count."""
        if not self.folder.is_dir():
            raise SparkError(f"the directory of changes {self.folder} of table {self.table.name} does not exist")
        found = sorted(path for path in self.folder.iterdir() if path.is_file() and path.name[0] not in "._")
        return [path for path in found if self._seen.get(path.name) != _stamp(path)]

    def _objection(self, file: ChangeFile, path: Path, chosen: list[ChangeFile]) -> str | None:
        """Why a file is not to be applied, as far as that can be told without its rows."""
        source = self.table.name
        if any(reason is None for _, reason in self._journal.known(source, file.name)):
            return f"duplicate: a file named {file.name} with other content has been applied"
        if self._changes.once_by_content:
            same = self._journal.same_content(source, file.digest)
            same = same or next((other.name for other in chosen if other.digest == file.digest), None)
            if same is not None:
                return f"duplicate: it has the same content as {same}, which has been applied"
        last = self._journal.greatest_name(source)
        if self._changes.ordered and last is not None and file.name < last:
            return f"late: files are applied in the order of names, and {last} has been applied"
        try:
            self._check_layout(path)
        except (SchemaError, DataError) as error:
            return str(error)
        return None

    def _check_layout(self, path: Path) -> None:
        what = f"the file {path.name} of table {self.table.name}"
        if self._changes.rows.format == "csv":
            check_names(what, _header(path, dict(self._changes.rows.options)), self._layout.names, exactly=True)
        if self._changes.rows.format == "parquet":
            try:
                empty = pq.read_schema(path).empty_table()
            except (pa.ArrowInvalid, OSError) as error:
                raise DataError(f"malformed: {what} is no Parquet file: {error}") from error
            check_columns(what, self._spark.createDataFrame(empty).schema, self._layout, exactly=True)

    # Its rows

    def read(self, plan: Plan) -> TableChanges:
        """The changes of the planned files; `BadFilesError` names those that cannot be read."""
        paths = self.unchanged(ChangeFile(*file) for file in plan["files"])
        try:
            return delta_of(*to_rows(self.frame(paths), self.table))
        except Exception as error:
            if not is_data_failure(self._spark, error):
                raise
            self._blame(paths, error)
            raise

    def unchanged(self, files: Iterable[ChangeFile]) -> list[Path]:
        """The paths of files, which must be as they were when they were planned."""
        paths = []
        for file in files:
            path = self.folder / file.name
            if not path.exists() or _digest(path) != file.digest:
                what = "was changed" if path.exists() else "is gone"
                raise SparkError(f"{path} {what} after it was applied, or while it was; bring it back as it was")
            paths.append(path)
        return paths

    def frame(self, paths: list[Path]) -> DataFrame:
        """The changes of files as a frame with weights."""
        from functools import reduce

        rows, weight = self._changes.rows, weight_of(self._changes, strict=True)
        if rows.format == "json":
            from ivme.spark.pipeline.json_lines import read_json

            return shaped(read_json(self._spark, rows, self._layout, map(str, paths)), rows, self.table, weight)
        if rows.format != "csv":
            return shaped(read_files(self._spark, rows, self._layout, map(str, paths)), rows, self.table, weight)
        frames = [
            shaped(read_files(self._spark, rows, layout, map(str, group)), rows, self.table, weight)
            for layout, group in self._by_header(paths)
        ]
        return reduce(lambda one, other: one.unionByName(other), frames)

    def _by_header(self, paths: list[Path]) -> list[tuple[StructType, list[Path]]]:
        """CSV is read by position, so that files with the columns in another order need a layout of their own."""
        from pyspark.sql.types import StructType

        fields = {field.name.lower(): field for field in self._layout}
        groups: dict[tuple[str, ...], list[Path]] = {}
        for path in paths:
            groups.setdefault(tuple(_header(path, dict(self._changes.rows.options))), []).append(path)
        return [(StructType([fields[name.lower()] for name in header]), group) for header, group in groups.items()]

    def _blame(self, paths: list[Path], error: Exception) -> None:
        """Reads each file on its own; raises `BadFilesError` if some of them are to blame."""
        if len(paths) == 1:
            raise BadFilesError({paths[0].name: f"malformed: {reason_of(error)}"}) from error
        reasons = {}
        for path in paths:
            try:
                to_rows(self.frame([path]), self.table)
            except Exception as found:
                if not is_data_failure(self._spark, found):
                    raise
                reasons[path.name] = f"malformed: {reason_of(found)}"
        if reasons:
            raise BadFilesError(reasons) from error


def files_plan(files: Iterable[ChangeFile]) -> Plan:
    """The plan of a batch that consists of files."""
    return {"files": [[file.name, file.digest] for file in files]}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _header(path: Path, options: dict[str, str]) -> list[str]:
    """The names in the first line of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            delimiter = options.get("sep", options.get("delimiter", ","))
            return [name.strip() for name in next(csv.reader(file, delimiter=delimiter), [])]
    except UnicodeDecodeError as error:
        raise DataError(f"malformed: {path.name} is no text: {error}") from error
