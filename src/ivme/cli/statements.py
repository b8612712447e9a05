"""The commands that run SQL statements."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ivme.cli.errors import errors_shown
from ivme.errors import IvmeError


def add_statement_commands(app: typer.Typer) -> None:
    """Adds the commands to the command line."""
    app.command()(sql)
    app.command()(shell)


def sql(
    target: Annotated[
        str, typer.Argument(metavar="DIR|:memory:", help="The directory of a database, created if it does not exist.")
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Files with statements, or directories of *.sql; - for stdin."),
    ] = None,
    command: Annotated[str | None, typer.Option("-c", metavar="TEXT", help="Statements, run before the files.")] = None,
) -> None:
    """Run SQL statements on a database, and print their results.

    It stops at the first error, and prints its line and column.

    \b
    Create a database in the directory shop, load a file, and query it:
      ivme sql shop -c "CREATE TABLE sales (item STRING, day DATE, n BIGINT)"
      ivme sql shop -c "COPY sales FROM 'sales.csv'"
      ivme sql shop -c "SELECT item, SUM(n) AS n FROM sales GROUP BY item ORDER BY n DESC LIMIT 10"
    A view is kept up to date by every later change:
      ivme sql shop -c "CREATE VIEW totals AS SELECT item, SUM(n) AS n FROM sales GROUP BY item"
      ivme sql shop -c "INSERT INTO sales VALUES ('pen', DATE '2024-05-01', 3); SELECT * FROM totals"
    Scripts, in this order; statements end with semicolons:
      ivme sql shop schema.sql load.sql report.sql
      ivme sql shop migrations/
    All or nothing:
      ivme sql shop -c "BEGIN; UPDATE sales SET n = n + 1; DELETE FROM sales WHERE n > 100; COMMIT"
    Without a directory:
      ivme sql :memory: script.sql
    """
    from rich.console import Console

    from ivme.cli.sql import run_sql

    with errors_shown():
        if command is None and not files:
            raise IvmeError("there is nothing to run: give files, or statements with -c")
        run_sql(target, files or [], command, Console())


def shell(
    target: Annotated[
        str,
        typer.Argument(metavar="[DIR|:memory:|URL]", help="A directory, created if it does not exist, or a server."),
    ] = ":memory:",
) -> None:
    """Type SQL at a prompt, with completion and history.

    \b
      ivme shell shop/
      IVME_TOKEN=... ivme shell http://localhost:8321
    """
    from rich.console import Console

    from ivme.cli.shell import run_shell

    with errors_shown():
        run_shell(target, os.environ.get("IVME_TOKEN") or None, Console())
