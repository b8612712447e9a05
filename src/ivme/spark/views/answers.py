"""The port beside a pipeline's database that Spark's tasks ask for rows of views.

It listens on the driver's own address, answers only callers with the state's token, and changes nothing. Requests and
filters are applied here, so that only rows that are wanted travel. A question is answered from one state of the
database, while batches go on.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.errors import IvmeError, PlanError
from ivme.pipeline.state_database import StateDatabase
from ivme.shards.wire import TokenCheck
from ivme.spark.views.asking import ADDRESS, Address, Described, Question
from ivme.spark.views.conditions import filtered
from ivme.view import View

_ROWS_AT_ONCE = 65_536
_REFUSAL = "the token is not that of the pipeline"


class Answers:
    """A port that is open; its address is in the state until it is closed."""

    def __init__(self, database: StateDatabase, state: Path, host: str = "127.0.0.1") -> None:
        self._path, token = state / ADDRESS, secrets.token_hex(24)
        self._server = _Server(database, host, token)
        self.address = Address(f"grpc://{host}:{self._server.port}", token)
        _write_private(self._path, json.dumps({"place": self.address.place, "token": token}))

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._server.shutdown()


def described(view: View) -> Described:
    """A view as a table of Spark: parameters first."""
    if view.state.typed.query.lists:
        raise PlanError(f"view {view.name} has a list as a parameter, which no table of Spark has; ask it in Python")
    clash = {name.lower() for name in view.parameters} & {name.lower() for name in view.columns}
    if clash:
        raise PlanError(
            f"view {view.name} has a parameter and a column of the name {min(clash)}, which a table cannot have; "
            "rename one of them"
        )
    return Described(view.change_schema, view.parameters, view.asked.defaults)


def answered(database: StateDatabase, question: Question) -> pa.Table:
    """The rows that a question asks for, each with the values of the parameters."""
    told, view = described(database.definitions.map_view(question.view)), database.view(question.view)
    parts = [_with_parameters(view.to_arrow(**request), request, told) for request in question.requests]
    rows = pa.concat_tables(parts) if parts else told.schema.empty_table()
    return filtered(rows, question.conditions)


def _with_parameters(rows: pa.Table, request: Any, told: Described) -> pa.Table:
    given = {**told.defaults, **request}
    for place, name in enumerate(told.parameters):
        field = told.schema.field(name)
        rows = rows.add_column(place, field, pa.repeat(pa.scalar(given[name], field.type), rows.num_rows))
    return rows.cast(told.schema)


class _Server(flight.FlightServerBase):  # type: ignore[misc]
    """Arrow Flight: `describe` and `ping` are actions, and a ticket is a question."""

    def __init__(self, database: StateDatabase, host: str, token: str) -> None:
        super().__init__(f"grpc://{host}:0", middleware={"token": TokenCheck(token, _REFUSAL)})
        self._database = database

    def do_action(self, _context: Any, action: flight.Action) -> Iterator[bytes]:
        if action.type == "ping":
            return iter([b"here"])
        if action.type != "describe":
            raise flight.FlightServerError(f"there is no action {action.type}")
        with _errors_told():
            view = self._database.definitions.map_view(action.body.to_pybytes().decode())
            return iter([described(view).to_bytes()])

    def do_get(self, _context: Any, ticket: flight.Ticket) -> flight.FlightDataStream:
        with _errors_told():
            rows = answered(self._database, Question.from_bytes(ticket.ticket))
        return flight.RecordBatchStream(
            pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(max_chunksize=_ROWS_AT_ONCE))
        )


@contextmanager
def _errors_told() -> Iterator[None]:
    """Errors of ivme are sent to the caller; gRPC reports others as they are."""
    try:
        yield
    except IvmeError as error:
        raise flight.FlightServerError(str(error)) from None


def _write_private(path: Path, text: str) -> None:
    """Writes a file that only its owner may read, whole."""
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    partial.replace(path)
