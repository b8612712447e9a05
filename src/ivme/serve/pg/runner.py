"""Runs the statements of one client: settings and transactions as PostgreSQL has them, everything else by ivme."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.errors import (
    CancelledError,
    DataError,
    IvmeError,
    MemoryLimitError,
    ParseError,
    PlanError,
    SchemaError,
    StorageError,
    UnknownNameError,
)
from ivme.serve.grants import Grant, RefusedError
from ivme.serve.pg.catalog import TABLES, PostgresCatalog
from ivme.serve.pg.catalog_text import VERSION, asks_catalog
from ivme.serve.pg.text import Piece, any_parameters, ivme_text, parameter_count, parameter_name, query_text
from ivme.serve.pg.values import list_of
from ivme.serve.remote import OwnedError, check_length, remote_session
from ivme.serve.settings import Settings

if TYPE_CHECKING:
    from ivme.database import Database

READS = {"SELECT", "WITH", "TABLE", "VALUES", "EXPLAIN", "SHOW", "DESCRIBE", "DESC", "("}
"""The first words of statements that change nothing, and may be interrupted."""

_QUERIES = {"SELECT", "WITH", "("}
_DIALECTS = ("postgres", "spark")
"""The meanings of a query, as SET dialect chooses one."""

_CHANGES = {"INSERT": "INSERT 0", "UPDATE": "UPDATE", "DELETE": "DELETE", "MERGE": "MERGE"}
_DEFINITIONS = {"CREATE", "DROP", "ALTER"}
_ENDS = {"COMMIT": "COMMIT", "END": "COMMIT", "ROLLBACK": "ROLLBACK", "ABORT": "ROLLBACK"}

SETTINGS = {
    "server_version": VERSION,
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
}
"""What a client is told when it connects."""

_SHOWN = {
    **{name.lower(): value for name, value in SETTINGS.items()},
    "search_path": "public",
    "transaction_isolation": "serializable",
    "transaction isolation level": "serializable",
    "max_identifier_length": "255",
    "transaction_read_only": "off",
    "default_transaction_isolation": "serializable",
    "bytea_output": "hex",
    "extra_float_digits": "1",
}
_FREE = {
    "application_name", "client_min_messages", "extra_float_digits", "search_path", "statement_timeout", "lock_timeout",
    "idle_in_transaction_session_timeout", "session", "transaction", "jit", "row_security", "synchronize_seqscans",
}  # fmt: skip
"""Settings that change nothing here."""

_FIXED = {
    "client_encoding": {"utf8", "utf-8", "unicode", "sql_ascii"},
    "datestyle": {"iso", "iso, mdy", "iso, ymd", "iso, dmy"},
    "intervalstyle": {"postgres"},
    "timezone": {"utc", "gmt", "etc/utc"},
    "standard_conforming_strings": {"on", "true", "1"},
    "bytea_output": {"hex"},
    "names": {"utf8"},
}
"""Settings of which other values would change the meaning of what is sent."""

_CODES: tuple[tuple[type[IvmeError], str], ...] = (
    (UnknownNameError, "42P01"),
    (ParseError, "42601"),
    (DataError, "22000"),
    (SchemaError, "42P16"),
    (MemoryLimitError, "53200"),
    (CancelledError, "57014"),
    (StorageError, "58030"),
    (OwnedError, "25006"),
    (RefusedError, "42501"),
)


def code_of(error: IvmeError) -> str:
    """The class of an error in PostgreSQL's list of five characters."""
    if isinstance(error, AbortedError):
        return "25P02"
    if isinstance(error, UnknownNameError) and error.message.startswith("there is no column"):
        return "42703"
    return next((code for kind, code in _CODES if isinstance(error, kind)), "0A000")


class AbortedError(IvmeError):
    """A statement within a transaction that has failed."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement gave: rows if it is a query, what is told when it is complete, and a notice."""

    data: pa.Table | None
    tag: str
    notice: str = ""


class Runner:
    """The session of a client. Its methods are called in threads, one at a time."""

    def __init__(self, database: Database, settings: Settings, catalog: PostgresCatalog, grant: Grant) -> None:
        self._session = remote_session(database, settings, grant)
        self._database = database
        self._dialect = "postgres"
        self._settings = settings
        self._catalog = catalog
        self._has_failed = False

    @property
    def status(self) -> bytes:
        """The state of the transaction, as the protocol tells it."""
        return b"E" if self._has_failed else b"T" if self._session.in_transaction else b"I"

    def failed(self) -> None:
        """A statement was refused: of a transaction, nothing will be done."""
        self._has_failed = self._session.in_transaction

    def close(self) -> None:
        self._session.close()

    def run(self, piece: Piece, parameters: Sequence[Any]) -> Outcome:
        """Runs a statement with values for `$1`, `$2` and so on."""
        check_length(piece.text, self._settings)
        if len(parameters) != parameter_count(piece):
            raise DataError(f"the statement has {parameter_count(piece)} parameters, and {len(parameters)} values came")
        first = piece.words[0]
        if self._has_failed and first not in _ENDS:
            raise AbortedError("the transaction has failed: nothing is done before ROLLBACK")
        if first in _OWN:
            return _OWN[first](self, piece)
        if asks_catalog(piece, TABLES):
            found = self._catalog.run(piece, parameters)
            return Outcome(found, f"SELECT {found.num_rows}")
        return self._run(piece, parameters)

    def returned_schema(self, piece: Piece) -> pa.Schema | None:
        """The columns of a change with RETURNING, which is not made for that; None for other statements."""
        if piece.words[0] not in _CHANGES or "RETURNING" not in piece.words:
            return None
        return self._session.returned_schema(ivme_text(piece))

    def _run(self, piece: Piece, parameters: Sequence[Any]) -> Outcome:
        first, notice = piece.words[0], ""
        if first in _DEFINITIONS and self._session.in_transaction:
            self._session.run("COMMIT", {})
            notice = (
                "definitions are not part of a transaction: what came before is committed, and this is done at once"
            )
            try:
                outcome = self._statement(piece, parameters)
            finally:
                self._session.run("BEGIN", {})
            return Outcome(outcome.data, outcome.tag, notice)
        return self._statement(piece, parameters)

    def _statement(self, piece: Piece, parameters: Sequence[Any]) -> Outcome:
        words, lists = piece.words, any_parameters(piece)
        named = {
            parameter_name(number): list_of(value, str) if isinstance(value, str) and number in lists else value
            for number, value in enumerate(parameters, 1)
        }  # drivers send lists of texts, and empty ones, without a type
        result = self._session.run(self._in_ivme(piece), named)
        if words[0] in _CHANGES:
            data = result.to_arrow() if result.is_query else None
            return Outcome(data, f"{_CHANGES[words[0]]} {result.count or 0}")
        if result.is_query:
            data = result.to_arrow()
            if data.num_rows > self._settings.rows:
                raise PlanError(
                    f"the answer has more than {self._settings.rows:,} rows; ask for fewer, or follow a view"
                )
            return Outcome(data, f"SELECT {data.num_rows}" if words[0] not in ("EXPLAIN", "SHOW") else words[0])
        kinds = [word for word in words[1:6] if word in ("TABLE", "VIEW")]
        return Outcome(None, " ".join([words[0], *kinds[:1]]))

    def _in_ivme(self, piece: Piece) -> str:
        """The statement in the SQL of ivme: what a query means in PostgreSQL, unless the client has set its dialect."""
        if piece.words[0] in _QUERIES and self._dialect == "postgres":
            return query_text(piece, self._database.definitions.relations())
        return ivme_text(piece)

    # What ivme has no statement for

    def _begin(self, piece: Piece) -> Outcome:  # noqa: ARG002
        if self._session.in_transaction:
            return Outcome(None, "BEGIN", "a transaction has begun already")
        self._session.run("BEGIN", {})
        return Outcome(None, "BEGIN")

    def _end(self, piece: Piece) -> Outcome:
        if "PREPARED" in piece.words:
            raise PlanError("there are no prepared transactions; COMMIT or ROLLBACK")
        if "TO" in piece.words:
            self._session.release_savepoint(piece.tokens[-1].text, roll_back=True)
            self._has_failed = False
            return Outcome(None, "ROLLBACK")
        act = "ROLLBACK" if self._has_failed else _ENDS[piece.words[0]]
        self._has_failed = False
        if not self._session.in_transaction:
            return Outcome(None, act, "no transaction has begun")
        self._session.run(act, {})
        return Outcome(None, act)

    def _set(self, piece: Piece) -> Outcome:
        words = [token.text for token in piece.tokens[1:] if token.text.upper() not in ("SESSION", "LOCAL")]
        name = words[0].lower() if words else "session"
        name = "timezone" if [word.lower() for word in words[:2]] == ["time", "zone"] else name
        value = (
            " ".join(words[1:]).lower().removeprefix("zone ").removeprefix("= ").removeprefix("to ").replace(" ,", ",")
        )
        if name == "dialect":
            return self._set_dialect(value.strip("'"))
        if name in _FREE or (name in _FIXED and value in _FIXED[name] | {"default"}):
            return Outcome(None, "SET")
        if name in _FIXED:
            raise PlanError(f"{name} cannot be {value!r} here; it is {_SHOWN.get(name, 'utf8')}")
        raise UnknownNameError(f"there is no setting {name}")

    def _set_dialect(self, value: str) -> Outcome:
        chosen = _DIALECTS[0] if value == "default" else value
        if chosen not in _DIALECTS:
            raise PlanError(f"dialect cannot be {value!r} here; it is one of {', '.join(_DIALECTS)}")
        self._dialect = chosen
        return Outcome(None, "SET")

    def _show(self, piece: Piece) -> Outcome:
        name = " ".join(token.text.lower() for token in piece.tokens[1:])
        if name in ("tables", "views"):
            return self._run(piece, ())
        if name == "dialect":
            return Outcome(pa.table({name: [self._dialect]}), "SHOW")
        if name not in _SHOWN:
            raise UnknownNameError(f"there is no setting {name}; SHOW TABLES and SHOW VIEWS list what there is")
        return Outcome(pa.table({name: [_SHOWN[name]]}), "SHOW")

    def _nothing(self, piece: Piece) -> Outcome:
        return Outcome(None, piece.words[0] + (" ALL" if piece.words[1:2] == ["ALL"] else ""))

    def _savepoint(self, piece: Piece) -> Outcome:
        self._session.set_savepoint(piece.tokens[-1].text)
        return Outcome(None, "SAVEPOINT")

    def _release(self, piece: Piece) -> Outcome:
        self._session.release_savepoint(piece.tokens[-1].text, roll_back=False)
        return Outcome(None, "RELEASE")


_OWN: dict[str, Callable[[Runner, Piece], Outcome]] = {
    "BEGIN": Runner._begin,
    "START": Runner._begin,
    **dict.fromkeys(_ENDS, Runner._end),
    "SET": Runner._set,
    "SHOW": Runner._show,
    **dict.fromkeys(("RESET", "DISCARD", "DEALLOCATE", "CLOSE", "UNLISTEN"), Runner._nothing),
    "SAVEPOINT": Runner._savepoint,
    "RELEASE": Runner._release,
}
