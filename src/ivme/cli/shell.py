"""`ivme shell`: statements typed at a prompt, on a directory, in memory, or on a server.

A statement ends with a semicolon, and may have many lines. What begins with a backslash is a command of the shell.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ivme.cli.sql import open_database, show_result
from ivme.errors import IvmeError
from ivme.extras import require

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from rich.console import Console

    from ivme.statements.result import Result

_KEYWORDS = tuple(
    """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT JOIN LEFT ON AS AND OR NOT NULL IN BETWEEN LIKE DISTINCT UNION COUNT
    SUM AVG MIN MAX CREATE TABLE VIEW REPLACE DROP ALTER ADD COLUMN INSERT INTO VALUES UPDATE SET DELETE MERGE TRUNCATE
    COPY BEGIN COMMIT ROLLBACK SHOW TABLES VIEWS DESCRIBE EXPLAIN PRIMARY KEY BIGINT STRING DOUBLE DATE TIMESTAMP
    """.split()  # noqa: SIM905
)

_ENDS, _ASKS = ("exit", "quit"), "help"
"""Words that are commands, too: other shells have them."""

_HELP = """\\d            tables and views        \\d NAME       columns of one
\\watch VIEW   rows of a view as they change, until Ctrl-C
\\explain SQL  what a view of a query would cost
\\timing       whether times are shown   \\q            the end
A statement ends with a semicolon; Ctrl-C drops what is typed, Ctrl-D ends the shell."""


class Shell:
    """A database and a terminal. `database` is a `Database` or one behind a server."""

    def __init__(self, database: Any, run: Callable[[str], Iterator[Result]], console: Console) -> None:
        self.database = database
        self._run = run
        self._console = console
        self._shows_time = True
        self._commands: dict[str, Callable[[str], None]] = {
            "\\d": self._describe,
            "\\watch": self._watch,
            "\\explain": self._explain,
            "\\timing": self._timing,
            "\\help": self._help,
            "\\?": self._help,
        }

    def handle(self, text: str) -> bool:
        """Does what a line, or a statement of several lines, says; False if that is to end."""
        text = text.strip()
        word, _, rest = text.partition(" ")
        if word.removesuffix(";") in ("\\q", *_ENDS) and not rest:
            return False
        if word.removesuffix(";") == _ASKS and not rest:
            text = word = "\\?"
        try:
            if text.startswith("\\"):
                command = self._commands.get(word)
                if command is None:
                    raise IvmeError(f"there is no command {word}; \\? lists them")
                command(rest.strip().removesuffix(";"))
            elif text:
                self._statements(text)
        except IvmeError as error:
            self._console.print(str(error), style="red", markup=False, highlight=False)
        except KeyboardInterrupt:
            self._console.print("interrupted", style="red")
        return True

    def _statements(self, text: str) -> None:
        started = time.perf_counter()
        for result in self._run(text):
            show_result(result, self._console)
        if self._shows_time:
            self._console.print(f"{(time.perf_counter() - started) * 1000:.1f} ms", style="dim", highlight=False)

    def _describe(self, name: str) -> None:
        self._statements(f"DESCRIBE {name}" if name else "SHOW TABLES; SHOW VIEWS")

    def _explain(self, query: str) -> None:
        self._statements(f"EXPLAIN {query}")

    def _timing(self, _: str) -> None:
        self._shows_time = not self._shows_time
        self._console.print(f"times are {'shown' if self._shows_time else 'not shown'}")

    def _help(self, _: str) -> None:
        self._console.print(_HELP, markup=False, highlight=False)

    def _watch(self, name: str) -> None:
        """Shows the rows of a view each time they change."""
        view = self.database.view(name)
        feed = view.changes(wait=True)
        self._statements(f"SELECT * FROM `{view.name.replace('`', '``')}`")
        self._console.print("Ctrl-C ends it", style="dim")
        try:
            for change in feed:
                for row, weight in change.items():
                    self._console.print(f"{weight:+d}  {row}", style="green" if weight > 0 else "red", highlight=False)
        finally:
            feed.close()

    def words(self) -> Iterable[str]:
        """What may be typed: keywords, and the names of tables, views and columns."""
        names = [*self.database.tables, *self.database.views]
        columns = {column for name in names for column in self._columns(name)}
        return [*names, *sorted(columns), *_KEYWORDS, *self._commands]

    def _columns(self, name: str) -> tuple[str, ...]:
        relation = getattr(self.database, "relation", None)
        return () if relation is None else tuple(relation(name).column_names)


def is_complete(text: str) -> bool:
    """Whether a text is to be run: a command, nothing, or a statement with its end.

    >>> is_complete("SELECT 1"), is_complete("SELECT ';' -- ;"), is_complete("SELECT 1;"), is_complete("\\\\d")
    (False, False, True, True)
    """
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped in (*_ENDS, _ASKS):
        return True
    from sqlglot.tokenizer_core import TokenType

    from ivme.query.sql_text import tokenize
    from ivme.statements.dialect import StatementDialect

    try:
        tokens = tokenize(stripped, StatementDialect)
    except IvmeError:  # a text that is not closed yet; Ctrl-C drops one that never will be
        return False
    return bool(tokens) and tokens[-1].token_type == TokenType.SEMICOLON


def run_shell(target: str, token: str | None, console: Console) -> None:
    """Opens a database and reads statements until the end of the input."""
    with _opened(target, token) as database:
        shell = Shell(database, _runner(database), console)
        if not sys.stdin.isatty():
            _run_lines(shell, sys.stdin)
            return
        prompt = _prompt(shell)
        console.print(f"ivme on {target}; \\? helps, \\q ends", markup=False, highlight=False)
        while True:
            try:
                text = prompt.prompt("ivme> ")
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if not shell.handle(text):
                return


def _run_lines(shell: Shell, lines: Iterable[str]) -> None:
    """Runs what comes from a file or another program: each command and statement when its end has come."""
    text = ""
    for line in lines:
        text += line
        if is_complete(text):
            if not shell.handle(text.strip()):
                return
            text = ""
    if text.strip():
        shell.handle(text.strip())


def _opened(target: str, token: str | None) -> Any:
    if target.startswith(("http://", "https://")):
        from ivme.client.connection import connect

        return connect(target, token=token)
    return open_database(target)


def _runner(database: Any) -> Callable[[str], Iterator[Result]]:
    """What runs a text: a session, which has a transaction from prompt to prompt; on a server, a text at a time."""
    from ivme.database import Database

    if not isinstance(database, Database):
        return lambda text: iter([database.sql(text)])
    from ivme.statements.session import Session

    session = Session(database)
    return lambda text: session.results(text, {})


def _prompt(shell: Shell) -> PromptSession[str]:
    require("prompt_toolkit", "ivme shell")
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings

    class _Words(Completer):
        def get_completions(self, document: Any, _event: Any) -> Iterator[Completion]:
            before = document.get_word_before_cursor(WORD=True).rsplit(".", 1)[-1].rsplit("(", 1)[-1]
            if before:
                for word in shell.words():
                    if word.lower().startswith(before.lower()):
                        yield Completion(word, start_position=-len(before))

    keys = KeyBindings()

    def unfinished() -> bool:
        return not is_complete(session.default_buffer.text)

    @keys.add("enter", filter=Condition(unfinished))
    def _(event: Any) -> None:
        event.current_buffer.insert_text("\n")

    home = Path(os.environ.get("IVME_HISTORY") or Path.home() / ".ivme_history")
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(home)),
        completer=_Words(),
        complete_while_typing=False,
        multiline=Condition(unfinished),
        key_bindings=keys,
        prompt_continuation="  ... ",
    )
    return session
