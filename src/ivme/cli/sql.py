"""`ivme sql`: runs statements on a database and prints their results as tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.errors import IvmeError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from ivme.database import Database
    from ivme.statements.result import Result

MEMORY = ":memory:"
_MOST_ROWS = 1000
"""So many rows of a result are printed."""


def run_sql(target: str, files: Sequence[Path], text: str | None, console: Console) -> None:
    """Runs the texts one after the other, each statement printed when it is done; the first error ends it."""
    from ivme.statements.session import Session

    with open_database(target) as db:
        session = Session(db)
        for name, script in _texts(files, text):
            try:
                for result in session.results(script, {}):
                    show_result(result, console)
            except IvmeError as error:
                raise (IvmeError(f"{name}: {error}") if name else error) from error
        if session.in_transaction:
            raise IvmeError("the last transaction has no COMMIT: its changes were not made")


def open_database(target: str) -> Database:
    """The database of a directory, which is made if there is none; one in memory for :memory:."""
    from ivme.database import Database

    if Path(target).is_file():
        raise IvmeError(f"{target} is a file; name the database before it, as in ivme sql {MEMORY} {target}")
    return Database() if target == MEMORY else Database(target)


def _texts(files: Sequence[Path], text: str | None) -> Iterator[tuple[str, str]]:
    """The scripts with the names of their files, in order; - is what comes from stdin."""
    if text is not None:
        yield "", text
    for file in (each for given in files for each in _scripts(given)):
        if str(file) == "-":
            yield "stdin", sys.stdin.read().removeprefix("\N{BYTE ORDER MARK}")
            continue
        try:
            yield str(file), file.read_text("utf-8-sig")
        except FileNotFoundError:
            raise IvmeError(f"there is no file {file}; give statements by -c: ivme sql shop -c '...'") from None
        except (OSError, UnicodeDecodeError) as error:
            raise IvmeError(f"{file} cannot be read: {error}") from error


def _scripts(given: Path) -> list[Path]:
    """A script, or those of a directory in the order of their names."""
    if not given.is_dir():
        return [given]
    found = sorted(given.glob("*.sql"))
    if not found:
        raise IvmeError(f"there is no script *.sql in {given}; the database is named first: ivme sql shop {given}")
    return found


def show_result(result: Result, console: Console) -> None:
    """Prints the rows of a result, or what was done."""
    from ivme.shown_table import counted

    if result.message:
        console.print(result.message, markup=False, highlight=False)
        return
    console.print(result_table(result))
    rows = counted(len(result), "row")
    more = f", the first {_MOST_ROWS:,} are shown" if len(result) > _MOST_ROWS else ""
    console.print(f"{rows}{more}", markup=False, highlight=False)


def result_table(result: Result) -> Table:
    """The first rows of a result; numbers to the right, and NULL as a word."""
    from itertools import islice

    from rich.table import Table
    from rich.text import Text

    from ivme.shown_table import is_number

    table = Table()
    for field in result.schema:
        table.add_column(Text(field.name), justify="right" if is_number(field.type) else "left")
    for row in islice(result, _MOST_ROWS):
        table.add_row(*(Text("NULL", "dim") if value is None else Text(str(value)) for value in row))
    return table
