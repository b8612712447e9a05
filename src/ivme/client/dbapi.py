"""PEP 249, Python's interface to databases, over `Database.sql`.

import ivme.client.dbapi

with ivme.client.dbapi.connect("shop") as connection:
    cursor = connection.cursor()
    cursor.execute("SELECT item, n FROM totals WHERE n > :least", {"least": 3})
    cursor.fetchall()

Parameters are named: `:name`. A connection begins a transaction by itself with the first statement that changes rows,
as PEP 249 wants it, unless it was made with autocommit=True; statements that define tables and views are done at once,
and commit what was before them.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from ivme.database import Database
from ivme.errors import DataError as IvmeDataError
from ivme.errors import IvmeError, MemoryLimitError, QueryError, SchemaError, StorageError
from ivme.statements.model import Delete, Describe, Explain, Insert, Merge, Select, Show, Statement, Transaction, Update
from ivme.statements.parse import parse_statements
from ivme.statements.result import Result
from ivme.statements.session import Session

apilevel = "2.0"
threadsafety = 1
paramstyle = "named"

Row = tuple[Any, ...]

Binary = bytes
Date = datetime.date
Timestamp = datetime.datetime
DateFromTicks = datetime.date.fromtimestamp
TimestampFromTicks = datetime.datetime.fromtimestamp


class TypeObject:
    """Equals the types of columns, as `Cursor.description` names them, that are of one kind."""

    def __init__(self, *prefixes: str) -> None:
        self._prefixes = prefixes

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, str) and other.startswith(self._prefixes))

    __hash__ = None  # type: ignore[assignment]


STRING = TypeObject("string", "large_string", "bool")
BINARY = TypeObject("binary", "large_binary")
NUMBER = TypeObject("int", "double", "decimal")
DATETIME = TypeObject("date", "timestamp")
ROWID = TypeObject()


class Warning(Exception):  # noqa: N818
    """Never raised; PEP 249 requires it."""


class Error(Exception):
    """The base of the errors of this module; its cause is the error of ivme."""


class InterfaceError(Error):
    """Wrong use of a connection or a cursor."""


class DatabaseError(Error):
    """The database refuses a statement."""


class DataError(DatabaseError):
    """Data that cannot be applied."""


class OperationalError(DatabaseError):
    """The directory cannot be read or written, or memory is used up."""


class IntegrityError(DatabaseError):
    """Never raised: a duplicate key is a `DataError`."""


class InternalError(DatabaseError):
    """Never raised; PEP 249 requires it."""


class ProgrammingError(DatabaseError):
    """A wrong statement, or an unknown name."""


class NotSupportedError(DatabaseError):
    """Never raised; PEP 249 requires it."""


def connect(
    database: Database | str | os.PathLike[str] = ":memory:", *, autocommit: bool = False, **options: Any
) -> Connection:
    """A connection to a directory, to a new database in memory, or to an open database, which stays open."""
    if isinstance(database, Database):
        return Connection(database, is_owner=False, autocommit=autocommit)
    return Connection(open_database(database, **options), is_owner=True, autocommit=autocommit)


def open_database(path: str | os.PathLike[str], **options: Any) -> Database:
    """The database of a directory, or a new one in memory for ":memory:"."""
    try:
        return Database(None if path == ":memory:" else path, **options)
    except IvmeError as error:
        raise _translated(error) from error


class Connection:
    """A session of statements, with its own transaction."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, database: Database, *, is_owner: bool, autocommit: bool) -> None:
        self.autocommit = autocommit
        self._database = database
        self._is_owner = is_owner
        self._session: Session | None = Session(database)

    @property
    def database(self) -> Database:
        """The database of the session."""
        return self._database

    @property
    def is_closed(self) -> bool:
        """Whether the connection was closed."""
        return self._session is None

    def cursor(self) -> Cursor:
        """A cursor, which runs statements and holds their rows."""
        self._open()
        return Cursor(self)

    def execute(self, text: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> Cursor:
        """Runs a statement by a new cursor."""
        return self.cursor().execute(text, parameters)

    def commit(self) -> None:
        """Commits the transaction, if there is one."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        self._end("ROLLBACK")

    def close(self) -> None:
        """Closes the connection; an open transaction is rolled back."""
        if self._session is not None:
            self._session.close()
            self._session = None
            if self._is_owner:
                self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commits, unless there was an error, and closes."""
        try:
            if kind is None and self._session is not None:
                self.commit()
        finally:
            self.close()

    def run(self, text: str, parameters: Mapping[str, Any]) -> Result:
        """Runs the one statement of a text."""
        session = self._open()
        try:
            statements = parse_statements(text, self._database.definitions.functions.defined)
            if len(statements) != 1:
                raise ProgrammingError(f"one statement is run at a time; the text has {len(statements)}")
            self._prepare(session, statements[0])
            return session.run(text, parameters)
        except IvmeError as error:
            raise _translated(error) from error

    def _prepare(self, session: Session, statement: Statement) -> None:
        """Begins a transaction before a change, and ends it before a definition."""
        if self.autocommit or isinstance(statement, Select | Show | Describe | Explain | Transaction):
            return
        if not isinstance(statement, Insert | Update | Delete | Merge):
            self.commit()
        elif not session.in_transaction:
            session.run("BEGIN", {})

    def _end(self, act: str) -> None:
        session = self._open()
        if session.in_transaction:
            try:
                session.run(act, {})
            except IvmeError as error:
                raise _translated(error) from error

    def _open(self) -> Session:
        if self._session is None:
            raise InterfaceError("the connection is closed")
        return self._session


class Cursor:
    """Runs statements, and holds the rows of the last one."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._rows: Iterator[Row] | None = None
        self._is_closed = False

    def execute(self, operation: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> Self:
        """Runs a statement; parameters are a mapping from names to values."""
        self._check()
        if not isinstance(parameters, Mapping):
            if parameters:
                raise ProgrammingError("parameters are named: write :name, and give a mapping from names to values")
            parameters = {}
        result = self.connection.run(operation, parameters)
        self.rowcount = -1 if result.count is None else result.count
        self.description = [_described(field) for field in result.schema] if result.is_query else None
        self._rows = iter(result) if result.is_query else None
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Mapping[str, Any]]) -> Self:
        """Runs a statement for each mapping of parameters."""
        count = 0
        for parameters in seq_of_parameters:
            self.execute(operation, parameters)
            count = -1 if self.rowcount < 0 or count < 0 else count + self.rowcount
        self.rowcount = count
        return self

    def fetchone(self) -> Row | None:
        """The next row; None after the last."""
        return next(self._fetched(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows: so many, or `arraysize`."""
        rows = self._fetched()
        return [row for _, row in zip(range(self.arraysize if size is None else size), rows, strict=False)]

    def fetchall(self) -> list[Row]:
        """All remaining rows."""
        return list(self._fetched())

    def __iter__(self) -> Iterator[Row]:
        return self._fetched()

    def close(self) -> None:
        """Closes the cursor."""
        self._is_closed, self._rows = True, None

    def setinputsizes(self, sizes: object) -> None:
        """Does nothing, as PEP 249 allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as PEP 249 allows."""

    def _fetched(self) -> Iterator[Row]:
        self._check()
        if self._rows is None:
            raise ProgrammingError("there are no rows: the last statement was not a query")
        return self._rows

    def _check(self) -> None:
        if self._is_closed:
            raise InterfaceError("the cursor is closed")


def _described(field: pa.Field) -> tuple[Any, ...]:
    """A column: its name, its type, and what we do not know of it."""
    decimal = pa.types.is_decimal(field.type)
    digits = (field.type.precision, field.type.scale) if decimal else (None, None)
    return (field.name, str(field.type), None, None, *digits, None)


def _translated(error: IvmeError) -> Error:
    kinds: tuple[tuple[type[IvmeError], type[Error]], ...] = (
        (QueryError, ProgrammingError),
        (SchemaError, ProgrammingError),
        (IvmeDataError, DataError),
        (MemoryLimitError, OperationalError),
        (StorageError, OperationalError),
    )
    kind = next((kind for own, kind in kinds if isinstance(error, own)), DatabaseError)
    return kind(str(error))
