"""The shell, typed into through a pseudo-terminal, and its parts."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console

from ivme.cli.shell import Shell, is_complete
from ivme.database import Database
from ivme.serve.server import serving
from ivme.statements.session import Session

pytest.importorskip("prompt_toolkit")

_SECONDS = 60


class Terminal:
    """A shell in a pseudo-terminal: what is typed, and what is seen."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ivme.cli", "shell", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "IVME_HISTORY": str(home / "history")},
        )
        os.close(slave)
        self.seen = ""
        self._place = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> None:
        """Reads until the text has appeared behind what was waited for last."""
        until = time.monotonic() + _SECONDS
        while text not in self._plain()[self._place :]:
            assert time.monotonic() < until, self.seen
            self._read()

        self._place = self._plain().index(text, self._place) + len(text)

    def _plain(self) -> str:
        """What is seen, without colours and movements of the cursor."""
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen)

    def wait_for_end(self) -> int:
        """The exit code; what is written meanwhile is read, so that nothing waits for it."""
        until = time.monotonic() + _SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < until, self.seen
            self._read()
        return self.process.wait()

    def _read(self) -> None:
        if not select.select([self._master], [], [], 0.1)[0]:
            return
        with suppress(OSError):  # the shell has ended, and closed its side
            data = os.read(self._master, 65536)
            if b"\x1b[6n" in data:  # the shell asks where the cursor is
                os.write(self._master, b"\x1b[1;1R")
            self.seen += data.decode(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(_SECONDS)
        os.close(self._master)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def _opened(*arguments: str, home: Path) -> Iterator[Terminal]:
    terminal = Terminal(*arguments, home=home)
    try:
        yield terminal
    finally:
        terminal.close()


def test_statements_are_typed_over_several_lines_and_kept_in_the_directory(home: Path) -> None:
    for terminal in _opened(str(home / "shop"), home=home):
        terminal.wait_for("ivme>")
        terminal.type("CREATE TABLE sales (item STRING,\r n BIGINT);\r")
        terminal.wait_for("table sales is created")
        terminal.wait_for("ivme>")
        terminal.type("INSERT INTO sales VALUES ('pen', 3), ('ink', 4);\r")
        terminal.wait_for("2 rows inserted")
        terminal.wait_for("ivme>")
        terminal.type("SELECT SUM(n) AS total FROM sal\t")
        terminal.wait_for("es")  # only what Tab adds is drawn
        terminal.type(";\r")
        terminal.wait_for("1 row")
        terminal.wait_for("ivme>")
        terminal.type("SELECT nothing FROM sales;\r")
        terminal.wait_for("there is no column 'nothing'")
        terminal.wait_for("ivme>")
        terminal.type("\\d sales\r")
        terminal.wait_for("string")
        terminal.wait_for("ivme>")
        terminal.type("\\nope\r")
        terminal.wait_for("there is no command")
        terminal.wait_for("ivme>")
        terminal.type("\\q\r")
        assert 0 == terminal.wait_for_end()
    with Database(home / "shop") as db:
        assert {("pen", 3), ("ink", 4)} == set(db.table("sales"))
    assert "SELECT SUM(n) AS total" in (home / "history").read_text()


@pytest.mark.long
def test_a_view_of_a_server_is_watched_while_it_changes(home: Path) -> None:
    with Database() as db:
        db.sql("CREATE TABLE sales (item STRING, n BIGINT)")
        db.sql("CREATE VIEW totals AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
        with serving(db) as address:
            for terminal in _opened(address, home=home):
                terminal.wait_for("ivme>")
                terminal.type("\\watch totals\r")
                terminal.wait_for("Ctrl-C ends it")
                db.insert("sales", [("pen", 41)])
                terminal.wait_for("+1  ('pen', 41)")
                os.killpg(terminal.process.pid, signal.SIGINT)
                terminal.wait_for("interrupted")
                terminal.wait_for("ivme>")
                terminal.type("SELECT item FROM totals;\r")
                terminal.wait_for("pen")
                terminal.wait_for("ivme>")
                terminal.type("\x04")
                assert 0 == terminal.wait_for_end()


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT ';", False),
        ("SELECT 'a;'", False),
        ("\\d", True),
        ("", True),
        ("exit", True),
        ("quit", True),
        ("help", True),
        ("help;", True),
    ],
)
def test_a_statement_is_complete_with_its_semicolon(text: str, complete: bool) -> None:
    assert complete == is_complete(text)


def test_commands_and_words_are_those_of_the_database() -> None:
    console = Console(record=True, width=120, file=open(os.devnull, "w"))  # noqa: SIM115
    with Database() as db, console.file:
        session = Session(db)
        shell = Shell(db, lambda text: session.results(text, {}), console)
        assert shell.handle("CREATE TABLE sales (item STRING, n BIGINT);")
        assert shell.handle("\\timing")
        assert shell.handle("\\explain SELECT item FROM sales")
        assert shell.handle("BEGIN;")
        assert shell.handle("INSERT INTO sales VALUES ('pen', 1);")
        assert shell.handle("COMMIT;")
        assert shell.handle("\\?")
        for end in ("\\q", "exit", "quit", "exit;"):
            assert not shell.handle(end)
        assert shell.handle("help")
        assert {"sales", "item", "SELECT", "\\watch"} <= set(shell.words())
        assert [("pen", 1)] == list(db.table("sales"))
    told = console.export_text()
    assert "times are not shown" in told
    assert 2 == told.count("Ctrl-D ends the shell")
    assert "An update costs a few look-ups" in told


def test_statements_from_another_program_are_run_without_a_prompt() -> None:
    made = "CREATE TABLE t (a BIGINT);\nINSERT INTO t\nVALUES (1), (2);\n"
    text = f"{made}SELECT nothing FROM t;\n\\timing\nSELECT SUM(a) AS s FROM t"
    command = [sys.executable, "-m", "ivme.cli", "shell"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=120)
    assert "2 rows inserted" in done.stdout
    assert "no column 'nothing'" in done.stdout + done.stderr
    assert "│ 3 │" in done.stdout
    assert "ivme>" not in done.stdout
