"""DataFrames that Python gives to a pipeline: its file names them, and says what their rows mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ivme.errors import PipelineError
from ivme.pipeline.model import FRAME, Rows, TableSource


def with_frames(tables: tuple[TableSource, ...], frames: Mapping[str, Any] | None) -> tuple[TableSource, ...]:
    """The tables with the DataFrames that they are loaded from, or changed by; None if none were given yet."""
    if frames is None:
        return tables
    named = {str(rows.path) for source in tables for rows in _rows(source) if rows.format == FRAME}
    unused = [name for name in frames if name not in named]
    if unused:
        known = ", ".join(sorted(named)) or "none"
        raise PipelineError(f"no table of the pipeline reads the frame {unused[0]}; its tables read: {known}")
    return tuple(_given(source, frames) for source in tables)


def frame_of(rows: Rows, table: str, *, streaming: bool) -> Any:
    """The DataFrame behind rows, which is a stream, or is not."""
    if rows.frame is None:
        raise PipelineError(
            f"{rows.place}: table {table} reads the DataFrame {rows.path}, which only Python can give: "
            f"ivme.Pipeline(file, frames={{{str(rows.path)!r}: frame}})"
        )
    if bool(rows.frame.isStreaming) != streaming:
        wanted = "changed by a streaming DataFrame" if streaming else "loaded from a DataFrame that is not a stream"
        raise PipelineError(f"{rows.place}: table {table} is {wanted}; the frame {rows.path} is not one")
    return rows.frame


def _rows(source: TableSource) -> list[Rows]:
    found = [source.load, None if source.changes is None else source.changes.rows]
    return [rows for rows in found if rows is not None]


def _given(source: TableSource, frames: Mapping[str, Any]) -> TableSource:
    load, changes = source.load, source.changes
    if load is not None:
        load = _with_frame(load, source.table.name, frames)
    if changes is not None:
        changes = replace(changes, rows=_with_frame(changes.rows, source.table.name, frames))
    return replace(source, load=load, changes=changes)


def _with_frame(rows: Rows, table: str, frames: Mapping[str, Any]) -> Rows:
    if rows.format != FRAME:
        return rows
    name = str(rows.path)
    if name not in frames:
        raise PipelineError(f"{rows.place}: table {table} reads the DataFrame {name}, which frames do not have")
    return replace(rows, frame=frames[name])
