"""The command line prints what the library says, and errors without tracebacks."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import ivme
from ivme.cli import app
from ivme.demo.first_look import show_first_look
from ivme.gallery import GALLERY

TRIANGLE = "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def test_a_query_is_explained_as_the_library_does() -> None:
    result = run("explain", TRIANGLE)
    assert (0, f"{ivme.explain(TRIANGLE)}\n") == (result.exit_code, result.stdout)


def test_a_query_may_come_from_a_file_or_from_stdin(tmp_path: Path) -> None:
    path = tmp_path / "view.sql"
    path.write_text("SELECT r.a FROM r WHERE r.b = :b", "utf-8")
    expected = f"{ivme.explain(path.read_text('utf-8'))}\n"
    assert expected == run("explain", str(path)).stdout
    assert expected == run("explain", "-", stdin=path.read_text("utf-8")).stdout


def test_a_byte_order_mark_is_no_part_of_the_query(tmp_path: Path) -> None:
    path = tmp_path / "view.sql"
    path.write_text(TRIANGLE, "utf-8-sig")
    assert f"{ivme.explain(TRIANGLE)}\n" == run("explain", str(path)).stdout
    assert f"{ivme.explain(TRIANGLE)}\n" == run("explain", "-", stdin=f"\N{BYTE ORDER MARK}{TRIANGLE}").stdout


def test_a_query_that_is_longer_than_any_file_name_is_a_query() -> None:
    text = "Q(A) = " + ", ".join(f"{'R' * 100}{i}(A)" for i in range(4))
    assert run("explain", text).exit_code == 0


def test_tables_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tables.yml"
    path.write_text("r: {columns: {a: int, b: int}, static: true}", "utf-8")
    result = run("explain", "SELECT a FROM r", "--tables", str(path))
    assert result.exit_code == 0
    assert "leave out r: a static table does not change" in result.stdout


def test_json_is_the_dict_of_the_explanation() -> None:
    assert ivme.explain(TRIANGLE, epsilon=0.5).to_dict() == json.loads(
        run("explain", TRIANGLE, "--json", "--epsilon", "1/2").stdout
    )


def test_mermaid_and_program_take_the_place_of_the_text() -> None:
    assert f"{ivme.explain(TRIANGLE).mermaid()}\n" == run("explain", TRIANGLE, "--mermaid").stdout
    assert f"{ivme.explain(TRIANGLE).program}\n" == run("explain", TRIANGLE, "--program").stdout


def test_a_picture_is_written_beside_the_text(tmp_path: Path) -> None:
    path = tmp_path / "view.svg"
    result = run("explain", TRIANGLE, "--svg", str(path))
    assert f"{ivme.explain(TRIANGLE)}\n" == result.stdout
    assert ElementTree.fromstring(path.read_text("utf-8")).tag == "{http://www.w3.org/2000/svg}svg"


def test_options_reach_the_library() -> None:
    given = ("--strategy", "classical", "--append-only", "R,S", "--static", "T", "--epsilon", "R=0.5, S=1")
    found = json.loads(run("explain", TRIANGLE, "--json", *given).stdout)
    options: dict[str, Any] = {"strategy": "classical", "append_only": ("R", "S"), "static": "T"}
    assert ivme.explain(TRIANGLE, epsilon={"R": 0.5, "S": 1}, **options).to_dict() == found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("Q(A) = ",), "expected"),
        (("nofile.sql",), "no such file: nofile.sql"),
        (("views/nofile",), "no such file: views/nofile"),
        (("SELECT a FROM r LEFT JOIN s ON r.a = s.a",), "Instead"),
        ((TRIANGLE, "--strategy", "magic"), "there is no strategy 'magic'"),
        (
            (TRIANGLE, "--epsilon", "2"),
            "--epsilon takes a number from 0 to 1, such as 0.5 or 1/3, auto, or R=0.5,S=1; it is '2'\n",
        ),
        ((TRIANGLE, "--epsilon", "much"), "--epsilon takes a number"),
        ((TRIANGLE, "--epsilon", "1/0"), "--epsilon takes a number"),
        ((TRIANGLE, "--static", "X"), "not a table of the query"),
        ((TRIANGLE, "--tables", "no-such-file.yml"), "cannot be read"),
        ((TRIANGLE, "--svg", "no-such-folder/out.svg"), "cannot be written"),
        ((TRIANGLE, "--json", "--program"), "exclude each other"),
        (("Q(X, Y) = closure(edge)", "--program"), "no program to print"),
    ],
)
def test_an_error_goes_to_stderr_with_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run("explain", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_the_first_look_shows_a_view_that_equals_its_recomputation() -> None:
    printed = io.StringIO()
    show_first_look(Console(file=printed, width=100), orders=2_000)
    assert "An update costs a few look-ups" in printed.getvalue()
    assert "Oslo" in printed.getvalue()
    assert "Arrow recomputes the view" in printed.getvalue()


def test_the_demo_shows_every_exhibit_and_a_summary() -> None:
    result = run("demo", "gallery")
    assert result.exit_code == 0, result.stderr
    assert all(exhibit.title in result.stdout for exhibit in GALLERY)
    assert "…" not in result.stdout.partition("what the gallery shows")[2], "the table is cut at 80 columns"


def test_the_demo_without_a_name_is_the_first_look_and_says_what_else_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("ivme.demo.show_demo", lambda what, _: shown.append(what))
    assert "ivme demo flights" in run("demo").stdout
    assert "" == run("demo", "first").stdout
    assert ["first", "first"] == shown


def test_sql_with_a_comma_within_braces_is_refused_with_the_quotes_that_it_needs(tmp_path: Path) -> None:
    """YAML takes the comma of `{sql: SELECT a, b FROM t}` for the end of the field."""
    (tmp_path / "p.yml").write_text(
        "tables: {t: {columns: {a: int}}}\nviews: {v: {sql: SELECT a, COUNT(*) AS n FROM t GROUP BY a}}\n", "utf-8"
    )
    said = run("plan", str(tmp_path / "p.yml")).stderr
    assert "unknown field COUNT(*) AS n FROM t GROUP BY a. Put a text that contains a comma in quotes" in said


def test_a_pipeline_file_that_does_not_exist_is_named(tmp_path: Path) -> None:
    result = run("plan", str(tmp_path / "none.yml"))
    assert f"ivme: there is no file {tmp_path / 'none.yml'}\n" == result.stderr


def test_the_gallery_has_rules_and_sql_and_classes_from_easy_to_hard() -> None:
    classes = {ivme.explain(e.query, e.tables or None, **e.options).query_class for e in GALLERY}
    assert {"CQAP0", "CQAP1", "triangle/C_count", "triangle/C1", "free-connex"} <= classes
    assert {True, False} == {exhibit.query.startswith("SELECT") for exhibit in GALLERY}


def test_help_teaches_with_examples_that_run() -> None:
    text = run("explain", "--help").stdout
    examples = [line.strip() for line in text.split("\n") if line.strip().startswith('ivme explain "')]
    assert len(examples) >= 4
    for example in examples:
        query, rest = example.removeprefix('ivme explain "').split('"')
        assert run("explain", query, *rest.split()).exit_code == 0, example


def test_the_version_is_printed_and_the_module_runs() -> None:
    command = [sys.executable, "-m", "ivme.cli", "--version"]
    assert f"ivme {ivme.__version__}\n" == subprocess.run(command, capture_output=True, text=True, check=True).stdout


# Directories


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with ivme.Database(tmp_path / "db") as db:
        db.create_table("R", {"a": "int", "b": "string"})
        db.create_view("counts", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
        with db.batch(source="orders", position=17) as batch:
            batch.insert("R", [(1, "x"), (1, "y")])
    return tmp_path / "db"


def test_the_views_of_a_directory_are_explained(directory: Path) -> None:
    with ivme.Database(directory) as db:
        expected = db.view("counts").explain()
    assert f"counts\n──────\n{expected}\n" == run("explain", str(directory)).stdout
    assert {"counts": expected.to_dict()} == json.loads(run("explain", str(directory), "--json").stdout)


def test_a_directory_is_shown_with_its_tables_views_and_sources(directory: Path) -> None:
    shown = run("show", str(directory)).stdout
    for line in (("R", "a int, b string", "2"), ("counts", "CQAP0", "view-tree", "O(1)"), ("orders", "17")):
        assert any(all(cell in printed for cell in line) for printed in shown.splitlines()), line


def test_a_directory_is_verified(directory: Path) -> None:
    result = run("verify", str(directory))
    whole, view = result.stdout.splitlines()
    assert whole.startswith(f"{directory}: every file is as it was written; it was closed after record ")
    assert (0, "view counts is what its query gives") == (result.exit_code, view)


def test_a_damaged_directory_is_not_verified(directory: Path) -> None:
    (log,) = directory.glob("log-*")
    log.write_bytes(log.read_bytes().replace(b'"x"', b'"y"'))
    result = run("verify", str(directory))
    assert 2 == result.exit_code
    assert f"{log} is damaged" in result.stderr


@pytest.mark.parametrize("command", ["explain", "show", "verify"])
def test_a_directory_without_a_database_stays_as_it_is(tmp_path: Path, command: str) -> None:
    result = run(command, str(tmp_path))
    assert 2 == result.exit_code
    assert "no ivme database" in result.stderr
    assert not list(tmp_path.iterdir())


def test_serving_to_other_machines_needs_a_token(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IVME_TOKEN", raising=False)
    result = run("serve", str(directory), "--host", "0.0.0.0")
    assert 2 == result.exit_code
    assert "IVME_TOKEN" in result.stderr


def test_a_directory_without_a_database_is_not_served(tmp_path: Path) -> None:
    result = run("serve", str(tmp_path))
    assert 2 == result.exit_code
    assert "no ivme database" in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_server_makes_a_database_if_it_is_told_to(tmp_path: Path) -> None:
    """As the image does with an empty volume. The port is taken, so that nothing is served."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, reason in (("new", "cannot be served"), ("other", "and notes.txt is in it")):
            port = str(taken.getsockname()[1])
            assert reason in run("serve", str(tmp_path / name), "--create", "--port", port).stderr
    assert 0 == run("show", str(tmp_path / "new")).exit_code


def test_a_port_that_is_none_or_taken_is_refused(directory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for port, reason in ((99999, "from 0 to 65535"), (taken.getsockname()[1], "cannot be served")):
            result = run("serve", str(directory), "--port", str(port))
            assert 2 == result.exit_code
            assert reason in result.stderr


def test_a_file_is_no_directory_of_a_database(directory: Path) -> None:
    result = run("show", str(directory / "database.json"))
    assert 2 == result.exit_code
    assert "is a file; give the directory" in result.stderr
