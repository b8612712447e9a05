"""What tasks of Spark ask a running pipeline, and where it is: the address is in the pipeline's state.

A question names a view, the requests (one for each choice of its parameters), and conditions on rows. The answer is
Arrow, all of one state of the database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

from ivme.errors import PipelineError, SparkError
from ivme.serve.tagged_values import tagged, untagged
from ivme.spark.views.conditions import Condition

ADDRESS = "answers.json"
"""The file of a state that says where the pipeline answers; only its owner may read it."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a pipeline answers, and the token that it asks for."""

    place: str
    token: str

    @staticmethod
    def of(state: str) -> Address:
        """The address in a state; refused if no pipeline has noted one."""
        try:
            told = json.loads((Path(state) / ADDRESS).read_text("utf-8"))
        except OSError as error:
            raise not_running(state) from error
        return Address(told["place"], told["token"])


def not_running(state: str) -> PipelineError:
    return PipelineError(
        f"the pipeline with the state {state} does not run, so its views cannot be read: start it "
        "(`ivme run`, `ivme serve` or ivme.Pipeline), or read what its sinks have written"
    )


@dataclass(frozen=True, slots=True)
class Described:
    """A view as a table of Spark: its parameters, which come first, its columns, and values of parameters left out."""

    schema: pa.Schema
    parameters: tuple[str, ...]
    defaults: Mapping[str, Any]

    def to_bytes(self) -> bytes:
        defaults = {name: tagged(value) for name, value in self.defaults.items()}
        noted = {b"ivme": json.dumps({"parameters": self.parameters, "defaults": defaults}).encode()}
        return bytes(self.schema.with_metadata(noted).serialize())

    @staticmethod
    def from_bytes(told: bytes) -> Described:
        schema = pa.ipc.read_schema(pa.py_buffer(told))
        noted = json.loads(schema.metadata[b"ivme"])
        defaults = {name: untagged(name, value) for name, value in noted["defaults"].items()}
        return Described(schema.remove_metadata(), tuple(noted["parameters"]), defaults)


@dataclass(frozen=True, slots=True)
class Question:
    """The rows of requests to a view for which conditions hold."""

    view: str
    requests: Sequence[Mapping[str, Any]] = ({},)
    conditions: Sequence[Condition] = ()

    def to_bytes(self) -> bytes:
        requests = [{name: tagged(value) for name, value in each.items()} for each in self.requests]
        told = {"view": self.view, "requests": requests, "conditions": [each.to_json() for each in self.conditions]}
        return json.dumps(told).encode()

    @staticmethod
    def from_bytes(told: bytes) -> Question:
        given = json.loads(told)
        requests = [{name: untagged(name, value) for name, value in each.items()} for each in given["requests"]]
        return Question(given["view"], requests, [Condition.from_json(each) for each in given["conditions"]])


def describe(address: Address, view: str) -> Described:
    """The columns and parameters of a view."""
    try:
        (told,) = _client(address.place).do_action(flight.Action("describe", view.encode()), _options(address))
    except flight.FlightError as error:
        raise _told(error) from None
    return Described.from_bytes(told.body.to_pybytes())


def ask(address: Address, question: Question) -> pa.Table:
    """The rows that a question asks for."""
    try:
        return _client(address.place).do_get(flight.Ticket(question.to_bytes()), _options(address)).read_all()
    except flight.FlightError as error:
        raise _told(error) from None


def is_answering(address: Address) -> bool:
    """Whether a server is there that takes the token."""
    try:
        list(_client(address.place).do_action(flight.Action("ping", b""), _options(address)))
    except flight.FlightError:
        return False
    return True


@cache
def _client(place: str) -> flight.FlightClient:
    """The connection of this process to a pipeline; it reconnects by itself."""
    return flight.FlightClient(place)


def _options(address: Address) -> flight.FlightCallOptions:
    return flight.FlightCallOptions(timeout=600, headers=[(b"authorization", f"Bearer {address.token}".encode())])


def _told(error: flight.FlightError) -> SparkError:
    """What a pipeline answered, without what gRPC adds."""
    if isinstance(error, flight.FlightUnavailableError):
        return SparkError("the pipeline does not answer: it has ended, or its host cannot be reached from here")
    return SparkError(str(error).split(". gRPC client debug context:")[0].removeprefix("Flight returned "))
