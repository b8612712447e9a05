"""A directory of change files: each is applied once, or put into quarantine with the reason.

A file is judged before it is planned by what needs no reading of its rows: its name and content (the same name with
other content is refused; by choice, equal content and names that come too late are, too) and its columns.
Rows are read by Spark, all files of a batch in one job. Only if that fails are they read again with each row judged, so
that bad rows are set aside alone; files of which nothing can be read are then found one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ivme.errors import DataError, IvmeError, SchemaError, SparkError
from ivme.pipeline.journal import ChangeFile, RunJournal, Stamp
from ivme.pipeline.model import ORIGIN, Rows, TableSource
from ivme.pipeline.source_batch import SourceBatch
from ivme.spark.pipeline.change_files import Partition, digest, files_in, header_of, in_order, partition_of
from ivme.spark.pipeline.envelope import events
from ivme.spark.pipeline.json_lines import judged_json, read_json, read_lines
from ivme.spark.pipeline.load import read_files
from ivme.spark.pipeline.reading import event_frame, sequence_fields, source_batch
from ivme.spark.pipeline.schema import check_columns, check_names, file_schema, spark_schema
from ivme.spark.pipeline.source import Plan
from ivme.spark.pipeline.text_values import narrowed, text_layout
from ivme.spark.pipeline.texts import CORRUPT
from ivme.spark.session.failure import is_data_failure, reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

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
        self._looked_at: dict[str, Stamp] | None = None
        self._layout = self._files_layout()

    def _files_layout(self) -> StructType:
        from pyspark.sql.types import LongType, StringType, StructType

        if self._changes.rows.schema is not None:
            layout = StructType.fromDDL(self._changes.rows.schema)
            assert isinstance(layout, StructType)
            return layout
        extra: list[tuple[str | None, DataType]] = [
            (self._changes.operation, StringType()),
            (self._changes.weight, LongType()),
            *sequence_fields(self._changes, self.table),
        ]
        return file_schema(self.table, [(name, kind) for name, kind in extra if name is not None])

    # What is there

    def next_plan(self) -> tuple[Plan, list[ChangeFile]] | None:
        """The next files in the order of names. What is refused on the way goes into quarantine."""
        chosen: list[ChangeFile] = []
        for name, stamp in self._waiting():
            if len(chosen) == self.limit:
                break
            path = self.folder / name
            file = ChangeFile(name, digest(path), stamp)
            self._seen[name] = stamp
            if any(known == file.digest for known, _ in self._journal.known(self.table.name, name)):
                continue
            reason = self._objection(file, path, chosen)
            if reason is None:
                chosen.append(file)
            else:
                self._refuse(file, path, reason)
        return (files_plan(chosen), chosen) if chosen else None

    def look_again(self) -> list[ChangeFile]:
        """Forgets the refusals of files that are there as they were, so that plans have them again; which."""
        refused = self._journal.refused_files(self.table.name)
        there = [file for file in refused if self._is_there(file)]
        for file in there:
            self._journal.forget_refused(self.table.name, file)
        self._looked_at = None
        return there

    def _is_there(self, file: ChangeFile) -> bool:
        path = self.folder / file.name
        return path.is_file() and digest(path) == file.digest

    @property
    def _seen(self) -> dict[str, Stamp]:
        """The stamps of files that were looked at; needed only once a batch that was not applied is forgotten."""
        if self._looked_at is None:
            self._looked_at = self._journal.stamps(self.table.name)
        return self._looked_at

    def lag(self) -> int:
        return len(self._waiting())

    def first(self) -> int:
        return 0

    def _waiting(self) -> list[tuple[str, Stamp]]:
        """Files that have not been looked at as they are now."""
        if not self.folder.is_dir():
            raise SparkError(f"the directory of changes {self.folder} of table {self.table.name} does not exist")
        return [(name, stamp) for name, stamp in files_in(self.folder) if self._seen.get(name) != stamp]

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
        if self._changes.ordered:
            last = max(self._journal.names(source), key=in_order, default=file.name)
            if in_order(file.name) < in_order(last):
                return f"late: files are applied in the order of names, and {last} has been applied"
        try:
            self._check_layout(file.name, path)
        except (SchemaError, DataError) as error:
            return str(error)
        return None

    def _check_layout(self, name: str, path: Path) -> None:
        what = f"the file {name} of table {self.table.name}"
        partition = partition_of(name)
        unknown = [key for key, _ in partition if key.lower() not in map(str.lower, self._layout.names)]
        if unknown:
            raise SchemaError(f"schema drift: the folders of {what} have {', '.join(unknown)} besides")
        layout = self._without(partition)
        if self._changes.rows.format == "csv":
            check_names(what, _header(path, dict(self._changes.rows.options)), layout.names, exactly=True)
        if self._changes.rows.format == "parquet":
            try:
                empty = pq.read_schema(path).empty_table()
            except (pa.ArrowInvalid, OSError) as error:
                raise DataError(f"malformed: {what} is not a Parquet file: {error}") from error
            check_columns(what, spark_schema(empty.schema), layout, exactly=True)

    def _without(self, partition: Partition) -> StructType:
        """The layout of files whose folders say some of the columns."""
        from pyspark.sql.types import StructType

        said = {key.lower() for key, _ in partition}
        return StructType([field for field in self._layout if field.name.lower() not in said])

    # Its rows

    def read(self, plan: Plan) -> SourceBatch:
        """The changes of the planned files; `BadFilesError` names those that cannot be read."""
        return self.read_paths(self.unchanged(ChangeFile(*file) for file in plan["files"]))

    def read_paths(self, paths: list[Path]) -> SourceBatch:
        """The changes of files, in their order: all at once, or if there is a bad row among them, row by row."""
        paths = paths[-1:] if self._changes.snapshot else paths
        try:
            return self._collected(paths, permissive=self._changes.envelope is not None)
        except Exception as error:
            if not is_data_failure(self._spark, error):
                raise
            return self._judged(paths, error)

    def _judged(self, paths: list[Path], error: Exception) -> SourceBatch:
        """The good rows of files among which are bad ones; files of which nothing can be read are to blame whole."""
        if self._changes.rows.format not in ("csv", "json") or self._changes.snapshot:
            self._blame(paths, error)
            raise error
        try:
            return self._collected(paths, permissive=True)
        except Exception as other:
            if not is_data_failure(self._spark, other):
                raise
            self._blame(paths, other)
            raise

    def _collected(self, paths: list[Path], *, permissive: bool) -> SourceBatch:
        found = self.frame(paths, permissive=permissive).toArrow()
        return source_batch(self._in_order(found, paths), self._changes, self.table)

    def _in_order(self, found: pa.Table, paths: list[Path]) -> pa.Table:
        """The rows in the order of their files, which Spark reads the largest first; files by their names."""
        encoded = found.column(ORIGIN).combine_chunks().dictionary_encode()
        files = [Path(unquote(urlsplit(uri).path)) for uri in encoded.dictionary.to_pylist()]
        numbers = {path: number for number, path in enumerate(paths)}
        ranks = np.array([numbers[path] for path in files], np.int64)[encoded.indices.to_numpy()]
        names = pa.array([self._name(path) for path in files], pa.string()).take(encoded.indices)
        named = found.set_column(found.column_names.index(ORIGIN), ORIGIN, names)
        return named if (np.diff(ranks) >= 0).all() else named.take(pa.array(np.argsort(ranks, kind="stable")))

    def unchanged(self, files: Iterable[ChangeFile]) -> list[Path]:
        """The paths of files, which must be as they were when they were planned."""
        paths = []
        for file in files:
            path = self.folder / file.name
            if not path.exists() or digest(path) != file.digest:
                what = "was changed" if path.exists() else "is gone"
                raise SparkError(f"{path} {what} after it was applied, or while it was; bring it back as it was")
            paths.append(path)
        return paths

    def frame(self, paths: list[Path], *, permissive: bool = False) -> DataFrame:
        """The changes of files as a frame with weights; `permissive` also has the rows that do not fit."""
        from functools import reduce

        by_partition: dict[Partition, list[Path]] = {}
        for path in paths:
            by_partition.setdefault(partition_of(self._name(path)), []).append(path)
        frames = [
            event_frame(self._with_partition(frame, partition), self._changes, self.table, permissive=permissive)
            for partition, group in by_partition.items()
            for frame in self._frames(self._without(partition), group, permissive=permissive)
        ]
        return reduce(lambda one, other: one.unionByName(other), frames)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _frames(self, layout: StructType, paths: list[Path], *, permissive: bool) -> Iterator[DataFrame]:
        """What is in files that have the same columns, with the files that rows are from."""
        rows, corrupt = self._changes.rows, CORRUPT if permissive else None
        names = list(map(str, paths))
        if self._changes.envelope is not None:
            yield events(read_lines(self._spark, names), self._changes, self.table, layout)
        elif rows.format == "json":
            texts = text_layout(layout, rows)
            judge = judged_json if permissive else read_json
            yield narrowed(judge(self._spark, rows, texts, names), layout, rows, permissive=permissive)
        else:
            groups = self._by_header(layout, paths) if rows.format == "csv" else [(layout, paths)]
            for own, group in groups:
                texts = text_layout(own, rows) if rows.format == "csv" else own
                frame = read_files(self._spark, rows, texts, map(str, group), corrupt, _parquet_layout(rows, group))
                frame = frame.selectExpr("*", f"_metadata.file_path AS {ORIGIN}")
                yield narrowed(frame, own, rows, permissive=permissive) if rows.format == "csv" else frame

    def _with_partition(self, frame: DataFrame, partition: Partition) -> DataFrame:
        """The rows with the columns that the folders of their files say."""
        from pyspark.sql import functions as sf

        types = {field.name.lower(): field for field in self._layout}
        for key, value in partition:
            field = types[key.lower()]
            frame = frame.withColumn(field.name, sf.lit(value).cast(field.dataType))
        return frame

    def _by_header(self, layout: StructType, paths: list[Path]) -> list[tuple[StructType, list[Path]]]:
        """CSV is read by position, so that files with the columns in another order need a layout of their own."""
        from pyspark.sql.types import StructType

        fields = {field.name.lower(): field for field in layout}
        groups: dict[tuple[str, ...], list[Path]] = {}
        for path in paths:
            groups.setdefault(tuple(_header(path, dict(self._changes.rows.options))), []).append(path)
        return [(StructType([fields[name.lower()] for name in header]), group) for header, group in groups.items()]

    def _blame(self, paths: list[Path], error: Exception) -> None:
        """Reads each file on its own; raises `BadFilesError` if some of them are to blame."""
        if len(paths) == 1:
            raise BadFilesError({self._name(paths[0]): f"malformed: {reason_of(error)}"}) from error
        reasons: dict[str, str] = {}
        for path in paths:
            try:
                self.read_paths([path])
            except BadFilesError as bad:
                reasons |= bad.reasons
        if reasons:
            raise BadFilesError(reasons) from error


def files_plan(files: Iterable[ChangeFile]) -> Plan:
    """The plan of a batch that consists of files."""
    return {"files": [[file.name, file.digest] for file in files]}


_PLAIN = (
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.bool_(), pa.date32()),
)


def _parquet_layout(rows: Rows, paths: list[Path]) -> StructType | None:
    """The columns of Parquet files that have all the same and plain ones, for which Spark would start a job of its own;
    None where it is to find out."""
    if rows.format != "parquet" or rows.schema is not None:
        return None
    try:
        first, *others = map(pq.read_schema, paths)
    except (pa.ArrowInvalid, OSError):
        return None  # Spark says what is wrong with them
    is_plain = all(_is_plain(field.type) for field in first)
    return spark_schema(first) if is_plain and all(first.equals(other) for other in others) else None


def _is_plain(type_: pa.DataType) -> bool:
    """Whether Spark reads a type of Parquet as Arrow names it."""
    return type_ in _PLAIN


def _header(path: Path, options: dict[str, str]) -> list[str]:
    """The names in the first line of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return header_of(file, options)
    except UnicodeDecodeError as error:
        raise DataError(f"malformed: {path.name} is not text: {error}") from error
