"""`ivme sql` runs statements and scripts, and says where one fails."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from ivme.cli import app
from ivme.database import Database


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["sql", *arguments], input=stdin, env={"COLUMNS": "100"})


def test_statements_are_run_and_their_rows_are_printed(tmp_path: Path) -> None:
    create = "CREATE TABLE t (a BIGINT, b STRING); INSERT INTO t VALUES (1, '[red]x'), (20, NULL);"
    result = run(str(tmp_path / "db"), "-c", f"{create} SELECT * FROM t ORDER BY a")
    assert result.exit_code == 0
    assert "table t is created\n2 rows inserted\n" in result.stdout
    assert "│  1 │ [red]x │" in result.stdout
    assert "│ 20 │ NULL   │" in result.stdout
    assert result.stdout.endswith("2 rows\n")
    with Database(tmp_path / "db") as db:
        assert sorted(db.table("t"), key=repr) == [(1, "[red]x"), (20, None)]


def test_scripts_are_run_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("\ufeffCREATE TABLE t (a BIGINT);\n-- one row\nINSERT INTO t VALUES (1);", "utf-8")
    (tmp_path / "b.sql").write_text("SELECT a + 1 AS next FROM t")
    result = run(":memory:", str(tmp_path / "a.sql"), str(tmp_path / "b.sql"))
    assert (result.exit_code, "│    2 │" in result.stdout) == (0, True)


def test_the_scripts_of_a_directory_are_run_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    assert "there is no script *.sql in" in run(":memory:", str(folder)).stderr
    (folder / "2.sql").write_text("INSERT INTO t VALUES (3); SELECT a FROM t")
    (folder / "1.sql").write_text("CREATE TABLE t (a BIGINT)")
    (folder / "notes.txt").write_text("no SQL")
    result = run(":memory:", str(folder))
    assert (0, True) == (result.exit_code, "│ 3 │" in result.stdout)


def test_a_word_that_is_written_wrong_is_guessed() -> None:
    assert "did you mean SELECT?" in run(":memory:", "-c", "SELCT 1").stderr
    assert "begin it with SELECT, CREATE" in run(":memory:", "-c", "PLEASE 1").stderr


def test_the_first_error_ends_it_with_its_place(tmp_path: Path) -> None:
    script = "CREATE TABLE t (a BIGINT);\nSELECT b\nFROM t;\nDROP TABLE t;"
    result = run(str(tmp_path / "db"), "-", stdin=script)
    assert result.exit_code == 2
    assert "ivme: stdin: there is no column 'b' in t (line 2, column 8)" in result.stderr
    with Database(tmp_path / "db") as db:
        assert db.tables == ("t",)


def test_a_transaction_without_end_is_an_error(tmp_path: Path) -> None:
    result = run(str(tmp_path / "db"), "-c", "CREATE TABLE t (a BIGINT); BEGIN; INSERT INTO t VALUES (1)")
    assert (result.exit_code, "no COMMIT" in result.stderr) == (2, True)
    with Database(tmp_path / "db") as db:
        assert list(db.table("t")) == []


def test_a_transaction_goes_on_in_the_next_script(tmp_path: Path) -> None:
    (tmp_path / "a.sql").write_text("INSERT INTO t VALUES (1); COMMIT; SELECT COUNT(*) AS n FROM t")
    result = run(":memory:", str(tmp_path / "a.sql"), "-c", "CREATE TABLE t (a BIGINT); BEGIN")
    assert result.exit_code == 0


def test_what_cannot_be_run_is_told(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("SELECT 1")
    for arguments, message in (
        ((str(tmp_path / "db"),), "nothing to run"),
        ((":memory:", str(tmp_path / "none.sql")), "give statements by -c"),
        ((str(script), str(script)), "name the database before it"),
    ):
        result = run(*arguments)
        assert (result.exit_code, message in result.stderr) == (2, True)
