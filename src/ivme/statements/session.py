"""Runs statements on a database, one after the other, each as a whole or not at all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.definitions.known_names import refuse_parameterised
from ivme.errors import PlanError, UnknownNameError, UnsupportedError
from ivme.query.sql_advice import NAMED
from ivme.query.table_expression import Parameters
from ivme.shown_table import counted
from ivme.statements import definition
from ivme.statements.change import Taken, delete, insert, update
from ivme.statements.conflict import insert_on_conflict
from ivme.statements.constants import plain_value
from ivme.statements.duckdb_engine import ask_duckdb
from ivme.statements.merge import merge
from ivme.statements.model import Delete, Insert, Merge, Select, Show, Statement, Transaction, Update
from ivme.statements.parse import parse_statements
from ivme.statements.result import Result
from ivme.statements.returning import returned_rows, returned_schema
from ivme.statements.select import select_rows

if TYPE_CHECKING:
    from ivme.database import Database
    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.batch import Batch


class Session:
    """One writer of statements, with the transaction that it has begun.

    Changes within a transaction are collected, and made at COMMIT. Statements that read see what is committed, and what
    their own transaction has changed: its changes are applied for the time of the reading, and taken back. `check` may
    refuse statements before any is run, and SHOW lists what the session `sees`.
    """

    def __init__(
        self,
        database: Database,
        check: Callable[[Statement], None] = lambda _: None,
        sees: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.database = database
        self._check = check
        self._sees = sees
        self._batch: Batch | None = None
        self._savepoints: dict[str, Callable[[], None]] = {}

    @property
    def in_transaction(self) -> bool:
        return self._batch is not None

    def run(self, text: str, parameters: Mapping[str, Any], engine: str = "ivme") -> Result:
        """Runs the statements of a text; the result of the last. An error ends it: what came before stays done."""
        if engine != "ivme":
            return self._ask(text, parameters, engine)
        results = deque(self.results(text, parameters), maxlen=1)
        return results[0] if results else Result(message="there is no statement in the text")

    def results(self, text: str, parameters: Mapping[str, Any]) -> Iterator[Result]:
        """Runs the statements of a text, each when its result is taken."""
        if not isinstance(text, str):
            raise PlanError(f"a statement is a text; it is a {type(text).__name__}")
        self.database.definitions.check_open()
        statements = parse_statements(text, self.database.definitions.functions.defined)
        for statement in statements:
            self._check(statement)
        wanted = {name for statement in statements for name in statement.parameters}
        unused = [name for name in parameters if name not in wanted]
        if unused:
            instead = NAMED if unused[0].isdigit() else "leave it out"
            raise UnknownNameError(f"there is no parameter :{unused[0]} in the text; {instead}")
        for statement in statements:
            mine = {name: plain_value(parameters[name]) for name in statement.parameters if name in parameters}
            try:
                result = self._run(statement, mine)
            except (UnknownNameError, UnsupportedError):
                refuse_parameterised(self.database.definitions.catalog, statement.source)
                raise
            yield result

    def _ask(self, text: str, parameters: Mapping[str, Any], engine: str) -> Result:
        """The answer of another engine to a SELECT, which sees the changes of the transaction, too."""
        if engine != "duckdb":
            raise PlanError(f"the engine is 'ivme' or 'duckdb'; it is {engine!r}")
        self.database.definitions.check_open()
        match parse_statements(text, self.database.definitions.functions.defined):
            case [Select() as query]:
                self._check(query)
                values = {name: plain_value(value) for name, value in parameters.items()}
                read = partial(ask_duckdb, self.database.definitions, query, values)
                return Result(read() if self._batch is None else self._batch.look(read))
        raise PlanError("DuckDB answers one SELECT at a time; run other statements without engine=")

    def close(self) -> None:
        """Gives up the transaction, if there is one."""
        self._batch, self._savepoints = None, {}

    def set_savepoint(self, name: str) -> None:
        """Remembers what the transaction has changed so far."""
        if self._batch is None:
            raise PlanError("a savepoint is a part of a transaction, and none has begun; BEGIN one")
        self._savepoints.pop(name, None)
        self._savepoints[name] = self._batch.mark()

    def release_savepoint(self, name: str, *, roll_back: bool) -> None:
        """Forgets the savepoints behind one; either with that one, or with the changes that came behind it."""
        if name not in self._savepoints:
            raise UnknownNameError(f"there is no savepoint {name}")
        for later in list(self._savepoints)[list(self._savepoints).index(name) + roll_back :]:
            del self._savepoints[later]
        if roll_back:
            self._savepoints[name]()

    def _run(self, statement: Statement, parameters: Mapping[str, Any]) -> Result:
        values = Parameters(parameters)
        if isinstance(statement, Transaction):
            return self._transaction(statement)
        if isinstance(statement, Select):
            return Result(select_rows(self.database.definitions, statement, parameters, batch=self._batch).data)
        if isinstance(statement, Insert | Update | Delete | Merge):
            return self._change(statement, values)
        if self._batch is not None and not isinstance(statement, definition.READS):
            place = statement.source.tokens[0].start
            message = "tables and views cannot be changed within a transaction"
            raise statement.source.unsupported(message, place, "COMMIT or ROLLBACK first")
        if isinstance(statement, Show):
            return definition.show(self.database, statement, self._sees)
        return definition.run(self.database, statement, values)

    # Transactions

    def _transaction(self, statement: Transaction) -> Result:
        place, source = statement.source.tokens[0].start, statement.source
        if statement.act == "BEGIN":
            if self._batch is not None:
                raise source.unsupported("a transaction has begun already", place, "COMMIT or ROLLBACK it first")
            self._batch = self.database.batch().begin()
            return Result(message="a transaction begins")
        if self._batch is None:
            raise source.unsupported("no transaction has begun", place, "write BEGIN first")
        batch, self._batch, self._savepoints = self._batch, None, {}
        if statement.act == "ROLLBACK":
            return Result(message="the transaction is undone")
        with batch:
            pass
        return Result(message="the transaction is committed")

    # Changes

    def _change(self, statement: Insert | Update | Delete | Merge, values: Parameters) -> Result:
        definitions, counts, start = self.database.definitions, list[int](), perf_counter()
        taken: Taken = []
        batch = self._batch or self.database.batch().begin()
        with definitions.runtime.lock:
            with batch.all_or_nothing():
                _add(definitions, statement, values, batch, counts, taken)
                answer = returned_rows(definitions, statement, values, taken) if statement.returning else None
            made = None if batch is self._batch else batch.make()
        if made is not None:
            definitions.runtime.wait_durable()
            definitions.runtime.notify_observers(made, start)
        return _counted(statement, counts[0] if counts else None) if answer is None else Result(answer)

    def returned_schema(self, text: str) -> pa.Schema | None:
        """The columns that a single change answers with by RETURNING, without making it; None for all else."""
        statements = parse_statements(text, self.database.definitions.functions.defined)
        match statements:
            case [Insert() | Update() | Delete() | Merge() as change] if change.returning:
                self._check(change)
                return returned_schema(self.database.definitions, change)
        return None


def _add(
    definitions: Definitions,
    statement: Insert | Update | Delete | Merge,
    values: Parameters,
    batch: Batch,
    counts: list[int],
    taken: Taken,
) -> None:
    """Adds a change to a batch; `counts` gets the number of rows when it is known, and `taken` those for RETURNING."""
    match statement:
        case Insert():
            add = insert if statement.conflict is None else insert_on_conflict
            counts.append(add(definitions, statement, values, batch, taken))
        case Update():
            update(definitions, statement, values, batch, counts, taken)
        case Delete():
            delete(definitions, statement, values, batch, counts, taken)
        case Merge():
            counts.append(merge(definitions, statement, values, batch, taken))


_DONE: Mapping[type[Statement], str] = {Insert: "inserted", Update: "updated", Delete: "deleted", Merge: "merged"}


def _counted(statement: Statement, count: int | None) -> Result:
    done = _DONE[type(statement)]
    if count is None:
        return Result(message=f"rows are {done} at COMMIT")
    return Result(count=count, message=f"{counted(count, 'row')} {done}")
