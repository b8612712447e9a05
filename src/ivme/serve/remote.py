"""What statements that come over a network may do: not more than what HTTP's other doors allow.

Files of the server's machine are never read for a client, and a database that a pipeline changes is read only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ivme.errors import PlanError
from ivme.serve.grants import Grant, RefusedError
from ivme.serve.needed_scopes import check_scopes
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


class OwnedError(RefusedError):
    """A change of a database that something else changes, such as a pipeline."""


def check_remote(database: Database, settings: Settings, grant: Grant) -> Callable[[Statement], None]:
    """A function that raises for statements that a client may not run."""

    def check(statement: Statement) -> None:
        if isinstance(statement, Insert | CreateTableAs) and isinstance(statement.rows, File):
            place = statement.source.tokens[0].start
            instead = "send the rows in INSERT, or run ivme sql on the machine of the database"
            raise statement.source.unsupported("files are not read for clients", place, instead)
        if settings.owner and not isinstance(statement, (*READS, Transaction)):
            raise OwnedError(settings.owner)
        check_scopes(database, grant, statement)

    return check


def remote_session(database: Database, settings: Settings, grant: Grant) -> Session:
    """A session for a client."""
    return Session(database, check_remote(database, settings, grant), grant.sees)


def check_length(text: str, settings: Settings) -> None:
    """Refuses a text whose reading would take long."""
    if len(text) > settings.statement_characters:
        raise PlanError(
            f"a statement has at most {settings.statement_characters:,} characters here; send rows in batches"
        )
