"""Without the packages of an extra, every command and public name that needs them says what to install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ivme
from ivme import extras
from ivme.errors import MissingPackageError

PIPELINE = """
tables:
  t: {columns: {a: int}, load: {format: csv, path: t.csv}}
views:
  v: {sql: "SELECT a, COUNT(*) AS n FROM t GROUP BY a"}
"""

WITHOUT = f"""
import importlib.util, json, sys

known = importlib.util.find_spec
missing = {{"pyspark", "uvicorn", "fastapi", "duckdb", "matplotlib", "prompt_toolkit", "obstore"}}
importlib.util.find_spec = lambda name, package=None: None if name in missing else known(name, package)

from pathlib import Path
from typer.testing import CliRunner
import ivme
from ivme.cli import app

Path("p.yml").write_text('''{PIPELINE}''')
ivme.Database("shop").close()
said = {{}}
for line in sys.argv[1:]:
    result = CliRunner().invoke(app, line.split())
    said[line] = [result.exit_code, result.output]

def serving():
    from ivme.serve.server import serving

def checkpoint():
    from ivme.store.checkpoint_store import open_checkpoint_store
    open_checkpoint_store("s3://bucket/folder")

for name, door in {{"checkpoint": checkpoint, "serving": serving, "Pipeline": lambda: ivme.Pipeline("p.yml"),
                   "SparkDatabase": lambda: ivme.SparkDatabase(None),
                   "duckdb": lambda: ivme.Database().sql("SELECT 1", engine="duckdb")}}.items():
    try:
        door()
    except ivme.IvmeError as error:
        said[name] = [2, str(error)]
print(json.dumps(said))
"""

COMMANDS = {
    "run p.yml --once": "spark",
    "verify p.yml": "spark",
    "replay p.yml": "spark",
    "backfill p.yml t --column a --from 1 --to 2": "spark",
    "serve shop": "serve",
    "serve p.yml": "serve",
    "demo flights": "spark",
}
NAMES = {"checkpoint": "objects", "Pipeline": "spark", "SparkDatabase": "spark", "serving": "serve", "duckdb": "sql"}


def test_commands_and_names_say_which_extra_they_need(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT, *COMMANDS], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    said = json.loads(ran.stdout.splitlines()[-1])
    for door, extra in {**COMMANDS, **NAMES}.items():
        code, message = said[door]
        assert code == 2, (door, message)
        assert f"pip install 'ivme[{extra}]', or in a clone pip install '.[{extra}]'" in message, (door, message)


@pytest.mark.parametrize(("method", "package"), [("to_pandas", "pandas"), ("to_polars", "polars")])
def test_a_frame_without_its_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, method: str, package: str
) -> None:
    db = ivme.Database()
    db.create_table("t", {"a": "int"})
    view = db.create_view("v", "SELECT a FROM t")
    monkeypatch.setattr(extras, "find_spec", lambda _name: None)
    for rows in (view, db.table("t"), db.sql("SELECT a FROM t")):
        with pytest.raises(MissingPackageError, match=f"which is not installed: pip install {package}"):
            getattr(rows, method)()


def test_an_import_of_another_module_is_not_explained() -> None:
    assert extras.explained(ModuleNotFoundError("x", name="mine.own")) is None
    assert "ivme[spark]" in str(extras.explained(ModuleNotFoundError("x", name="deltalake.exceptions")))


def test_a_sink_whose_package_is_missing_is_refused_before_anything_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The tables were loaded and the views built first, for minutes."""
    from ivme.pipeline.read import read_pipeline
    from ivme.spark.pipeline import writers

    (tmp_path / "p.yml").write_text(
        "tables: {t: {columns: {a: int}}}\nviews: {v: {sql: SELECT a FROM t}}\n"
        "sinks:\n  s: {view: v, format: iceberg, table: gold.v, options: {type: sql}}\n"
        "  d: {view: v, format: delta, path: d}\n",
        "utf-8",
    )
    pipeline = read_pipeline(tmp_path / "p.yml")
    writers.require_packages(pipeline, has_jar=False)
    for package, sink in (("pyiceberg", "s"), ("deltalake", "d")):
        monkeypatch.setattr(extras, "find_spec", lambda name, missing=package: None if name == missing else name)
        with pytest.raises(MissingPackageError, match=f"sink {sink} needs {package}"):
            writers.require_packages(pipeline, has_jar=False)
