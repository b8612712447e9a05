"""What `ivme plan` says of a file and a state, and which declarations a table may get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ivme.pipeline import read_pipeline
from ivme.pipeline.declarations import declaration, declared_columns, edit_of
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.plan_changes import VIEWS, definitions, described, planned_steps
from ivme.pipeline.tables_of_source import tables_of
from ivme.query.model import table as declare

_FILE = """\
tables:
  t:
    columns: {id: int, city: string}
    primary_key: id
    changes: {directory: changes, format: csv, upsert: true, sequence_by: lsn}
views:
  v:
    sql: SELECT city, COUNT(*) AS n FROM t GROUP BY city
sinks:
  s: {view: v, format: parquet, path: out}
  m: {view: v, mode: merge, format: delta, path: merged}
"""


def _steps(folder: Path, *edits: tuple[str, str]) -> list[str]:
    """The steps from the file as it is to one with edits, for a state that has run the first."""
    path = folder / "p.yml"
    path.write_text(_FILE)
    pipeline, journal = read_pipeline(path), RunJournal(None)
    for source in pipeline.tables:
        for table in tables_of(pipeline, source):
            journal.note(f"table {table.name}", declaration(table))
    journal.note(VIEWS, json.dumps(definitions(pipeline)))
    for sink in pipeline.sinks:
        journal.note(f"sink {sink.name}", described(sink))
    journal.wrote([sink.name for sink in pipeline.sinks], 0)
    text = _FILE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    found = [str(step) for step in planned_steps(read_pipeline(path), journal)]
    journal.close()
    return found


def test_a_state_that_is_new_has_everything_to_do(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text(_FILE)
    found = [str(step) for step in planned_steps(read_pipeline(tmp_path / "p.yml"), RunJournal(None))]
    assert "table t: is created" == found[0]
    assert "sink m: starts with all rows of v" == found[-1]


def test_a_file_that_is_as_it_was_has_nothing_to_do(tmp_path: Path) -> None:
    assert [] == _steps(tmp_path)


def test_an_added_column_a_rewritten_view_and_a_new_sink_are_told(tmp_path: Path) -> None:
    found = _steps(
        tmp_path,
        ("city: string}", "city: string, fare: int}"),
        ("COUNT(*) AS n FROM t", "COUNT(*) AS n FROM t WHERE id > 3"),
        ("sinks:\n", "sinks:\n  more: {view: v, mode: rows, format: parquet, path: more}\n"),
    )
    expected = [
        "table t: gets the column fare int",
        "view v: has a new definition, and is rebuilt; its sinks get the difference",
        "sink more: starts with all rows of v",
    ]
    assert expected == found


def test_what_cannot_be_done_is_refused(tmp_path: Path) -> None:
    (step,) = _steps(tmp_path, ("city: string}", "city: int}"))[:1]
    assert step.startswith("refused: table t: not every string of column city is a int")
    (step,) = _steps(tmp_path, ("path: out", "path: other"))
    assert step.startswith("refused: sink s: wrote")
    steps = _steps(tmp_path, ("COUNT(*) AS n", "COUNT(*) AS n, MAX(id) AS last"))
    assert [step for step in steps if step.startswith("refused: sink s: has changes of view v with the columns")]
    assert not [step for step in steps if "sink m" in step]  # it is written again as a whole


def test_a_table_that_is_gone_stays_and_a_view_is_dropped(tmp_path: Path) -> None:
    found = _steps(
        tmp_path,
        ("views:\n", "  u:\n    columns: {a: int}\nviews:\n  w:\n    sql: SELECT a FROM u\n"),
        (", sequence_by: lsn", ""),
    )
    assert ["table u: is created", "table ivme_sequence_t: is not in the file; it stays in the state"] == found[:2]
    assert "view w: is built" in found


@pytest.mark.parametrize(
    ("old", "new", "is_possible"),
    [
        ("int", "decimal(19,0)", True),
        ("int", "decimal(20,2)", False),
        ("int", "float", False),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(12,5)", False),
        ("date", "timestamp", True),
        ("timestamp", "date", False),
        ("string", "binary", False),
    ],
)
def test_a_type_becomes_wider_only(old: str, new: str, is_possible: bool) -> None:
    noted = declaration(declare("t", {"a": old, "b": "struct<x int, y decimal(3,1)>"}))
    edit = edit_of(noted, declare("t", {"a": new, "b": "struct<x int, y decimal(3,1)>"}))
    assert is_possible == (not edit.refused)
    assert not is_possible or [str(pair[1].type) for pair in edit.widened] == [new]


def test_a_declaration_is_read_as_it_was_written() -> None:
    table = declare("t", {"a": "decimal(3,1)", "b": "array<int>", "c": "struct<x int, y string>"}, primary_key="a")
    assert (table.columns, " primary key (a)") == declared_columns(declaration(table))
