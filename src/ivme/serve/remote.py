"""What statements that come over a network may do: not more than what HTTP's other doors allow.

Files of the server's machine are never read for a client, and a database that a pipeline changes is read only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ivme.errors import IvmeError, PlanError
from ivme.serve.settings import Settings
from ivme.statements.model import (
    CreateTableAs,
    Describe,
    Explain,
    File,
    Insert,
    Select,
    Show,
    Statement,
    Transaction,
)
from ivme.statements.session import Session

if TYPE_CHECKING:
    from ivme.database import Database

READS = (Select, Show, Describe, Explain)
"""The statements that change nothing."""

READ_ONLY = "ivme.read_only"
"""The key in the scope of a request whose token is one for reading."""


class RefusedError(IvmeError):
    """A statement that may not be run here."""


def check_remote(settings: Settings, *, read_only: bool = False) -> Callable[[Statement], None]:
    """A function that raises for statements that a client may not run."""

    def check(statement: Statement) -> None:
        if isinstance(statement, Insert | CreateTableAs) and isinstance(statement.rows, File):
            place = statement.source.tokens[0].start
            instead = "send the rows in INSERT, or run ivme sql on the machine of the database"
            raise statement.source.unsupported("files are not read for clients", place, instead)
        if settings.owner and not isinstance(statement, (*READS, Transaction)):
            raise RefusedError(settings.owner)
        if read_only and not isinstance(statement, (*READS, Transaction)):
            raise RefusedError("this token is for reading; changes need the other one")

    return check


def remote_session(database: Database, settings: Settings, *, read_only: bool = False) -> Session:
    """A session for a client."""
    return Session(database, check_remote(settings, read_only=read_only))


def check_length(text: str, settings: Settings) -> None:
    """Refuses a text whose reading would take long."""
    if len(text) > settings.statement_characters:
        raise PlanError(
            f"a statement has at most {settings.statement_characters:,} characters here; send rows in batches"
        )
