"""What fails in a pipeline is told in a line: the place in its file, what is wrong there, and what to do."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from ivme.cli import app

FILE = """\
tables:
  t:
    columns: {{id: int, p: "decimal(8, 2)"}}
    {rows}
views:
  v: {{sql: "SELECT id, p FROM t"}}
sinks:
  v: {{view: v, mode: changes, format: json, path: {out}}}
"""


def ivme(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def pipeline(folder: Path, rows: str, out: str = "out") -> Path:
    file = folder / "p.yml"
    file.write_text(FILE.format(rows=rows, out=out))
    return file


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("load", "text", "told"),
    [
        ("format: csv, path: x.csv", None, r"tables.t.load.path: there is no {folder}/x.csv; check the path"),
        ("format: xlsx, path: x.csv", "id,p\n1,1\n", "tables.t.load.format: Spark has no format xlsx"),
        ("format: csv, path: x.csv", "id,p\n1,abc\n", "column p: 'abc' is not of type decimal(8,2)"),
        ("format: csv, path: x.csv", "id,p\nabc,1\n", "column id: 'abc' is not of type int"),
        ("format: csv, path: x.csv", "id;p\n1;1\n", "for values with ';' between them say options: {sep: ';'}"),
        ("format: csv, path: x.csv", "id,q\n1,1\n", "the header of {folder}/x.csv lacks p and has q besides"),
        ("format: csv, path: x.csv", "p,id\n1,1\n", "they must be in the same order"),
    ],
)
def test_a_load_that_fails_is_told_in_one_line_with_its_place(
    tmp_path: Path, load: str, text: str | None, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    if text is not None:
        (tmp_path / "x.csv").write_text(text)
    result = ivme("run", pipeline(tmp_path, f"load: {{{load}}}"), "--once")
    assert 1 == result.exit_code, result.output
    lines = result.stderr.splitlines()
    assert 1 == len(lines)
    assert lines[0].startswith(f"ivme: {tmp_path}/p.yml:4:11: tables.t.load")
    assert told.replace("{folder}", str(tmp_path)) in lines[0]
    assert ("Traceback" in caplog.text) == lines[0].endswith(f"(more is in {tmp_path}/p.state/spark.log)")


@pytest.mark.usefixtures("spark")
def test_a_sink_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    result = ivme("run", pipeline(tmp_path, "append_only: false", "out/v"), "--once")
    assert (1, 1) == (result.exit_code, len(result.stderr.splitlines())), result.output
    place = f"ivme: {tmp_path}/p.yml:8:6: sinks.v: {tmp_path}/out/v cannot be written: "
    assert result.stderr.startswith(place + "Parent path is not a directory")


@pytest.mark.usefixtures("spark")
def test_a_column_of_another_type_at_the_first_load_has_not_drifted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["1"], "p": [1]}), tmp_path / "x.parquet")
    file = pipeline(tmp_path, "load: {format: parquet, path: x.parquet}")
    file.write_text(file.read_text().replace('p: "decimal(8, 2)"', "p: string"))
    result = ivme("run", file, "--once")
    assert 1 == result.exit_code, result.output
    told = (
        "column p of the source of table t is int, and the table has string: declare it as int, or convert it with "
        'select: {p: "CAST(p AS string)"}'
    )
    assert told in result.stderr
    assert "drift" not in result.stderr


def test_a_plan_names_sources_that_are_not_there_without_spark(tmp_path: Path) -> None:
    rows = "load: {format: csv, path: x.csv}\n    changes: {directory: in, format: csv}"
    result = ivme("plan", pipeline(tmp_path, rows))
    assert 1 == result.exit_code
    assert f"there is no {tmp_path}/x.csv; check the path" in result.stdout
    assert f"there is no directory {tmp_path}/in; make it" in result.stdout


@pytest.mark.usefixtures("spark")
def test_files_that_were_refused_whole_are_told_last_and_replayed_once_the_pipeline_is_right(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"{number}.csv").write_text(f"op,id,p\ninsert,{number},1\n")
    file = pipeline(tmp_path, "changes: {directory: in, format: csv, operation: opp}")
    wrong = ivme("run", file, "--once")
    assert 0 == wrong.exit_code, wrong.output
    last = wrong.stdout.splitlines()[-1]
    assert last.startswith("WARNING: 2 files of table t were not applied, and wait in quarantine; the first is 1.csv: ")
    assert f"correct it and run `ivme replay {file}`" in last
    file.write_text(file.read_text().replace("operation: opp", "operation: op"))
    again = ivme("replay", file)
    assert (0, "t: 2 files taken, 0 refused again\n") == (again.exit_code, again.stdout), again.output
    assert [] == [path for path in (tmp_path / "p.state" / "quarantine").rglob("*") if path.is_file()]
    assert 0 == ivme("verify", file).exit_code
    assert "" == ivme("replay", file).stdout
    assert "0 files in quarantine" in ivme("status", file).stdout
