"""Batches that come through HTTP: read, checked, applied all or nothing, and with an idempotency key only once.

Keys are rows of the table `ivme_requests`, in the same transaction as the batch: they are as durable as it is. The last
10,000 of them are kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from decimal import Decimal
from itertools import takewhile
from typing import Any

from ivme.database import Database
from ivme.engine.codes.arrow_types import declared_type
from ivme.engine.runtime.batch import Batch
from ivme.errors import IvmeError, ServeError
from ivme.query.model import Table
from ivme.query.names import REQUESTS
from ivme.query.types import Type
from ivme.serve.grants import Grant
from ivme.serve.problem import Problem, problem_of
from ivme.serve.values import json_reader, read_json

KEPT_KEYS = 10_000

_COLUMNS = {"number": "int", "key": "string", "digest": "string"}
_KINDS = ("insert", "delete", "upsert", "replace")
_MOST_KEY = 200


class Writing:
    """Applies batches. Its methods are called in threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._keys: dict[str, tuple[int, str]] = {}
        self._pending: set[str] = set()
        self._number = 0
        if REQUESTS in database.definitions.catalog.tables:
            self._remember()

    def _remember(self) -> None:
        """Knows the keys that the database has, from an earlier server."""
        if self._database.relation(REQUESTS).column_names != tuple(_COLUMNS):
            raise ServeError(f"the table {REQUESTS} is none of the server's, which needs the name; rename yours")
        data, _ = self._database.contents(REQUESTS)
        for row in sorted(data.to_pylist(), key=lambda row: int(row["number"])):
            self._keys[row["key"]] = (row["number"], row["digest"])
            self._number = max(self._number, row["number"])

    def table_changes(self, table: str, body: bytes, key: str | None) -> dict[str, Any]:
        """A batch for one table: `{"insert": [...], "delete": [...], "upsert": [...]}`, or `{"replace": [...]}`."""
        return self._once({table: read_json(body)}, body, key, table)

    def batch(self, body: bytes, key: str | None, grant: Grant) -> dict[str, Any]:
        """A batch for several: `{"changes": {table: {"insert": [...], "delete": [...]}}, "source":, "position":}`."""
        given = read_json(body)
        if not isinstance(given, dict) or not isinstance(given.get("changes"), dict):
            raise Problem(422, 'a batch is {"changes": {"table": {"insert": [row, ...], "delete": [row, ...]}}}')
        strange = given.keys() - {"changes", "source", "position"}
        if strange:
            raise Problem(422, f"a batch has no {min(strange)}; it has changes, and perhaps source and position")
        for table in given["changes"]:
            grant.require("write", table)
        return self._once(given["changes"], body, key, "", given.get("source"), given.get("position"))

    def _once(self, changes: Mapping[str, Any], body: bytes, key: str | None, *rest: Any) -> dict[str, Any]:
        """Applies the changes, unless a request with this key did before."""
        where, *progress = rest
        if key is None:
            return {"applied": self._apply(changes, None, progress), "repeated": False}
        if not 0 < len(key) <= _MOST_KEY:
            raise Problem(422, f"an idempotency key has 1 to {_MOST_KEY} characters")
        digest = hashlib.blake2b(where.encode("utf-8", "surrogatepass") + b"\0" + body, digest_size=16).hexdigest()
        with self._lock:
            known = self._keys.get(key)
            if known is not None and known[1] != digest:
                raise Problem(422, f"the idempotency key {key} was used for another request")
            if known is not None:
                return {"applied": _counts(changes), "repeated": True}
            if key in self._pending:
                raise Problem(409, f"a request with the idempotency key {key} is being applied")
            self._pending.add(key)
        try:
            return {"applied": self._apply(changes, (key, digest), progress), "repeated": False}
        finally:
            with self._lock:
                self._pending.discard(key)

    def _apply(self, changes: Mapping[str, Any], key: tuple[str, str] | None, progress: list[Any]) -> dict[str, Any]:
        try:
            if key is not None:
                self._make_requests()
            with self._database.batch(*progress) as batch:
                for table, kinds in changes.items():
                    self._add(batch, table, kinds)
                number = None if key is None else self._add_key(batch, *key)
        except IvmeError as error:
            raise problem_of(error) from None
        if key is not None and number is not None:
            self._know(number, *key)
        return _counts(changes)

    def _add(self, batch: Batch, name: str, kinds: Any) -> None:
        table = self._table(name)
        if not isinstance(kinds, dict) or not kinds.keys() <= set(_KINDS):
            raise Problem(
                422,
                f'the changes of table {name} are {{"insert": [row, ...], "delete": [row, ...]}}; '
                "other kinds are upsert and replace",
            )
        for kind, rows in kinds.items():
            if not isinstance(rows, list):
                raise Problem(422, f"table {name}: {kind} has a list of rows")
            add = {"insert": batch.insert, "delete": batch.delete, "upsert": batch.upsert, "replace": batch.replace}
            add[kind](name, _read_rows(rows, table))

    def _table(self, name: str) -> Table:
        known = {table.lower(): table for table in self._database.tables}
        if name.lower() not in known:
            raise Problem(404, f"there is no table {name}; there are: {', '.join(known.values()) or 'none'}")
        return self._database.relation(known[name.lower()])

    # Keys

    def _make_requests(self) -> None:
        with self._lock:
            if REQUESTS not in self._database.definitions.catalog.tables:
                self._database.create_table(REQUESTS, _COLUMNS, primary_key="key")

    def _add_key(self, batch: Batch, key: str, digest: str) -> int:
        with self._lock:
            self._number += 1
            number = self._number
            aged = takewhile(lambda known: known[1][0] <= number - KEPT_KEYS, self._keys.items())
            old = [(n, k, d) for k, (n, d) in aged]
        batch.insert(REQUESTS, [(number, key, digest)])
        if old:
            batch.delete(REQUESTS, old, strict=False)
        return number

    def _know(self, number: int, key: str, digest: str) -> None:
        with self._lock:
            self._keys[key] = (number, digest)
            for old, (n, _) in list(self._keys.items()):
                if n > number - KEPT_KEYS:
                    break
                del self._keys[old]


def _counts(changes: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    return {table: {kind: len(rows) for kind, rows in kinds.items()} for table, kinds in changes.items()}


def _read_rows(rows: list[Any], table: Table) -> list[Any]:
    """Rows of JSON, which are lists or objects, with values of the columns' types."""
    types = [declared_type(table, column) for column in table.columns]
    if _is_plain(rows, types):
        return list(map(tuple, rows))
    readers = [json_reader(type_) for type_ in types]
    by_name = {column.name.lower(): reader for column, reader in zip(table.columns, readers, strict=True)}
    found: list[Any] = []
    for number, row in enumerate(rows):
        try:
            found.append(_read_row(row, readers, by_name))
        except Problem as problem:
            raise Problem(problem.status, f"table {table.name}, row {number}: {problem.message}") from None
    return found


def _is_plain(rows: list[Any], types: list[Type]) -> bool:
    """Whether rows are lists of values that JSON has as such, with nothing to read: found column by column, quickly."""
    if set(map(type, rows)) != {list} or set(map(len, rows)) != {len(types)}:
        return False
    columns = zip(*rows, strict=True)
    given = [set(map(type, column)) for column in columns]
    return not any(
        type_.is_nested or Decimal in kinds or (str in kinds and type_.kind != "string")
        for kinds, type_ in zip(given, types, strict=True)
    )


def _read_row(row: Any, readers: list[Any], by_name: Mapping[str, Any]) -> Any:
    if isinstance(row, list):
        if len(row) != len(readers):
            raise Problem(422, f"it has {len(row)} values; there are {len(readers)} columns")
        return tuple(read(value) for read, value in zip(readers, row, strict=True))
    if isinstance(row, dict):
        return {name: by_name.get(name.lower(), _same)(value) for name, value in row.items()}
    raise Problem(422, "a row is a list of values, or an object")


def _same(value: Any) -> Any:
    return value
