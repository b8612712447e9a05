"""Why a request is refused, as a status and a message."""

from __future__ import annotations

import json

from ivme.errors import BrokenViewError, DataError, IvmeError, StaleCursor, StorageError, UnknownNameError
from ivme.serve.grants import RefusedError


class Problem(Exception):  # noqa: N818
    """A request that is not answered; nothing was changed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def body(self) -> bytes:
        """The answer; a lone surrogate, as an older name may have it, is escaped."""
        message = self.message.encode("utf-8", "backslashreplace").decode()
        return json.dumps({"error": message}).encode()


_STATUS: tuple[tuple[type[IvmeError], int], ...] = (
    (RefusedError, 403),
    (UnknownNameError, 404),
    (DataError, 422),
    (StaleCursor, 409),
    (StorageError, 503),
    (BrokenViewError, 503),
)


def problem_of(error: IvmeError) -> Problem:
    """The refusal that an error of the database is; what a user can mend is never the server's fault."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 422)
    return Problem(status, str(error))
