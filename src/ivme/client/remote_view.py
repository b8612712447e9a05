"""A view behind a server: its rows, whole or for given parameters, and its changes as they come."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from http.client import HTTPConnection, HTTPResponse
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Never, Self, overload
from urllib.parse import quote

import pyarrow as pa

from ivme.changes import Subscription
from ivme.client.client_values import query_text, read_table
from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.value_check import checked
from ivme.engine.read.reasons import Finding, Reasons
from ivme.errors import DataError, PlanError, UnnamedValueError, VerificationError, shown
from ivme.extras import pandas_frame, polars_frame
from ivme.query.types import Type, parse_type
from ivme.serve.asking import ARROW
from ivme.serve.tagged_values import untagged
from ivme.serve.values import dumps, json_reader, read_json
from ivme.shown_table import SHOWN_ROWS, html_table, rows_shown
from ivme.views.ordered_reading import PageRequest, check_number, check_position, listed, span_of

if TYPE_CHECKING:
    import pandas
    import polars

    from ivme.client.remote_connection import RemoteConnection

Row = tuple[Any, ...]


class RemoteView:
    """A view behind a server: its rows and changes, by the methods of `View`."""

    def __init__(self, connection: RemoteConnection, described: Mapping[str, Any]) -> None:
        self._connection = connection
        self.name: str = described["name"]
        self.described = described
        self.columns: tuple[str, ...] = tuple(described.get("columns", ()))
        self.parameters: tuple[str, ...] = tuple(described.get("parameters", ()))
        self.relations: tuple[str, ...] = tuple(described.get("reads", ()))

    @property
    def schema(self) -> pa.Schema:
        """The Arrow types of the columns of a row."""
        return pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in self._types("columns")])

    @property
    def change_schema(self) -> pa.Schema:
        """The Arrow types of the columns of a change's row: the parameters in front, then those of a row."""
        types = [*self._types("parameters"), *self._types("columns")]
        return pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in types])

    def _types(self, of: str) -> list[tuple[str, Type]]:
        return [(name, parse_type(type_)) for name, type_ in self.described.get(of, {}).items()]

    # Reading

    def _path(self, what: str = "", parameters: Mapping[str, Any] = MappingProxyType({}), **special: Any) -> str:
        given = {name: value for name, value in special.items() if value is not None}
        return f"/views/{quote(self.name, safe='')}{what}{query_text({**parameters, **given})}"

    def _table(self, path: str) -> pa.Table:
        return read_table(self._connection.request("GET", path, None, ARROW)[1])

    def _asked(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._connection.request("GET", path)[1])
        return found

    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table."""
        return self._table(self._path("", parameters))

    def snapshot(self, **parameters: Any) -> pa.Table:
        """The rows as they are now; the result does not change when the database does."""
        return self.to_arrow(**parameters)

    def __iter__(self) -> Iterator[Row]:
        return self()

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        return iter(listed(self.to_arrow(**parameters)))

    def items(self, **parameters: Any) -> Iterator[tuple[Row, int]]:
        """The distinct rows, with their multiplicities; all from one state of the database."""
        return iter(Counter(self(**parameters)).items())

    def rows(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        after: Row | None = None,
        **parameters: Any,
    ) -> list[Row]:
        """A page of rows in an order; see `View.rows`."""
        PageRequest(None, limit, offset, after).check()
        if limit == 0:
            return []
        order = [] if order_by is None else [order_by] if isinstance(order_by, str) else [*order_by]
        behind = None if after is None else _row_text(after)
        special = {"_order_by": json.dumps(order), "_limit": limit, "_offset": offset or None, "_after": behind}
        return listed(self._table(self._path("", parameters, **special)))

    def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities."""
        return int(self._asked(self._path("/count", parameters))["count"])

    def __len__(self) -> int:
        """How many rows there are. Python asks this when it makes a list of a view, too."""
        return self.count()

    def __bool__(self) -> bool:
        """Whether there is a row; one with parameters is never false."""
        return bool(self.parameters) or self.count() > 0

    def scalar(self, **parameters: Any) -> Any:
        """The only value of the only row."""
        rows = self.to_arrow(**parameters)
        if (rows.num_rows, rows.num_columns) != (1, 1):
            shape = f"{rows.num_rows} rows of {rows.num_columns} columns"
            raise DataError(f"view {self.name} is not a single value: it has {shape}")
        return listed(rows)[0][0]

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> list[Row]: ...
    def __getitem__(self, key: int | slice) -> Row | list[Row]:
        """A row by its position, or those of a slice, in the view's order, or by all columns if it has none."""
        if isinstance(key, slice):
            span_of(key, 0)
            return listed(self._table(self._path("/slice", _start=key.start, _stop=key.stop)))
        check_position(key)
        stop = None if key == -1 else key + 1
        rows = listed(self._table(self._path("/slice", _start=key, _stop=stop)))
        if len(rows) != 1:
            raise IndexError(f"view {self.name} has no row {key}")
        return rows[0]

    def sample(self, count: int, *, seed: int | None = None) -> list[Row]:
        """A random sample of so many rows, or all rows if there are fewer; every set of rows is equally likely."""
        check_number(count, "the number of rows")
        return listed(self._table(self._path("/sample", _count=count, _seed=seed)))

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; 0 if there are none."""
        return int(self._asked(self._path("/multiplicity", parameters, _row=_row_text(row)))["multiplicity"])

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self.multiplicity(row) != 0

    def request_many(self, **columns: Any) -> pa.Table:
        """The rows for many values of the parameters: each parameter is a list, or an array of NumPy or Arrow."""
        given = {name: _listed_column(values) for name, values in columns.items()}
        path = self._path("/requests")
        return read_table(self._connection.request("POST", path, {"parameters": given}, ARROW)[1])

    def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow(**parameters))

    def to_polars(self, **parameters: Any) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return polars_frame(self.to_arrow(**parameters))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The first rows, or the parameters that they need."""
        title = f"<p>view <b>{escape(self.name)}</b></p>"
        if self.parameters:
            return f"{title}<p>parameters: {escape(', '.join(self.parameters))}</p>"
        return title + html_table(self.columns, self[:SHOWN_ROWS], rows_shown(len(self)))

    def _repr_svg_(self) -> str:
        """The picture of its plan: what is stored for it, and of what."""
        return self._connection.request("GET", self._path("/explain"), None, "image/svg+xml")[1].decode()

    # Changes

    def changes(self, *, wait: bool = True, **parameters: Never) -> RemoteChanges:
        """The changes of the view's rows from now on, always waited for: mappings from rows to the change of their
        multiplicity. It ends when the view is dropped or the server stops.
        """
        if parameters:
            raise PlanError(f"changes() of view {self.name} takes no parameters, but gives all changes")
        if not wait:
            raise PlanError("the changes of a remote view are waited for; read them in a separate thread")
        connection, response = self._connection.open_stream(self._path("/changes", _rows=False))
        return RemoteChanges(
            connection, response, [type_ for of in ("parameters", "columns") for _, type_ in self._types(of)]
        )

    def subscribe(self, function: Callable[[dict[Row, int]], object]) -> Subscription:
        """Calls a function, in its own thread, with each change of the view's rows from now on, until it is closed."""
        if not callable(function):
            raise DataError(f"a subscriber is a function of one change; it is {shown(function)}")
        return Subscription(self.name, self.changes(), function)

    # About the view

    def explain(self) -> dict[str, Any]:
        """How the view is maintained and what that costs, as plain values."""
        return self._asked(self._path("/explain"))

    def stats(self) -> dict[str, Any]:
        """The view's sizes, and its heavy and light parts."""
        return self._asked(self._path("/stats"))

    def why(self, row: Row, **parameters: Any) -> Reasons:
        """The rows of the tables that produce a row of the view."""
        return _reasons(self._asked(self._path("/why", parameters, _row=_row_text(row))))

    def why_not(self, row: Row, **parameters: Any) -> Reasons:
        """Why a row is not in the view: the table without a matching row and its key, or the row of the same group."""
        return _reasons(self._asked(self._path("/why_not", parameters, _row=_row_text(row))))

    def verify(self) -> None:
        """Lets the server compute the view in another way; raises VerificationError at the first difference."""
        told = self._asked(self._path("/verify"))
        if not told["verified"]:
            raise VerificationError(told["difference"])

    def read_by(self, connection: RemoteConnection) -> RemoteView:
        """The same view over another connection."""
        return RemoteView(connection, self.described)

    def __repr__(self) -> str:
        return f"<RemoteView {self.name} of {self._connection.url}>"


def _row_text(row: Row) -> str:
    try:
        return dumps(row).decode()
    except TypeError as error:
        raise DataError(f"{shown(row)} has a value of the type {error}, which no column holds") from None


def _listed_column(values: Any) -> list[Any]:
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values)


def _reasons(told: Mapping[str, Any]) -> Reasons:
    findings = tuple(_finding(each) for each in told["findings"])
    return Reasons(told["view"], _row(told["row"]), told["present"], findings)


def _finding(told: Mapping[str, Any]) -> Finding:
    at = tuple((name, _value(value)) for name, value in told["at"])
    below = tuple(_finding(each) for each in told["below"])
    return Finding(told["relation"], at, tuple(map(_row, told["tuples"])), told["more"], below)


def _row(told: list[Any]) -> Row:
    return tuple(map(_value, told))


def _value(told: Any) -> Any:
    found = untagged("a value", told)
    return tuple(found) if isinstance(found, list) else found


class RemoteChanges:
    """The changes of a view behind a server, as they come; `close` ends it, also while another thread waits for one."""

    def __init__(self, connection: HTTPConnection, response: HTTPResponse, types: Sequence[Type]) -> None:
        self._connection = connection
        self._types = types
        self._response = response
        self._line = socket.fromfd(response.fileno(), -1, -1, -1)  # is there also when the response is over
        self._events = self._read()

    def _read(self) -> Generator[dict[Row, int], None, None]:
        event = ""
        try:
            for line in iter(self._response.readline, b""):
                name, _, value = line.rstrip(b"\n").partition(b": ")
                if name == b"event":
                    event = value.decode()
                elif name == b"data" and event == "change":
                    yield {self._row(row): weight for row, weight in read_json(value)["changes"]}
                elif name == b"data" and event == "end":
                    return
        finally:
            self._end()

    def _row(self, row: list[Any]) -> Row:
        """A row of JSON with values of the types of its columns."""
        values = zip(row, self._types, strict=True)
        return tuple(None if value is None else checked(json_reader(t)(value), t, "a change") for value, t in values)

    def _end(self) -> None:
        for each in (self._response, self._connection, self._line):
            each.close()

    def __iter__(self) -> Iterator[dict[Row, int]]:
        return self

    def __next__(self) -> dict[Row, int]:
        return next(self._events)

    def close(self) -> None:
        """Ends it; a thread that waits for a change gets none."""
        with suppress(OSError):  # it has ended already
            self._line.shutdown(socket.SHUT_RDWR)
        with suppress(ValueError):  # a thread that waits ends it
            self._events.close()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
