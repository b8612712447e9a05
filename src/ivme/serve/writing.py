"""Batches that come through HTTP: read, checked, applied all or nothing, and with an idempotency key only once.

Keys are rows of the table `ivme_requests`, in the same transaction as the batch: they are as durable as it is. The last
10,000 of them are stored.
"""

from __future__ import annotations

import hashlib
import threading
from itertools import takewhile
from typing import Any

from ivme.database import Database
from ivme.engine.runtime.batch import Batch
from ivme.errors import IvmeError, ServeError
from ivme.query.names import REQUESTS
from ivme.serve.grants import Grant
from ivme.serve.problem import Problem, problem_of
from ivme.serve.steps import Step, check_grant, counts, read_steps, take
from ivme.serve.values import read_json

KEPT_KEYS = 10_000

_COLUMNS = {"number": "int", "key": "string", "digest": "string"}
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
            raise ServeError(f"the table {REQUESTS} was not created by the server, which needs the name; rename yours")
        data, _ = self._database.contents(REQUESTS)
        for row in sorted(data.to_pylist(), key=lambda row: int(row["number"])):
            self._keys[row["key"]] = (row["number"], row["digest"])
            self._number = max(self._number, row["number"])

    def table_changes(self, table: str, body: bytes, key: str | None) -> dict[str, Any]:
        """A batch for one table: `{"insert": [...], "delete": [...], "upsert": [...]}`, or `{"replace": [...]}`."""
        return self._once(read_steps({table: read_json(body)}), body, key, table)

    def batch(self, body: bytes, key: str | None, grant: Grant) -> dict[str, Any]:
        """A batch for several: `{"changes": {table: {"insert": [...], "delete": [...]}}, "source":, "position":}`.

        In place of an object by table, `changes` may be a list of steps; see `steps`.
        """
        given = read_json(body)
        if not isinstance(given, dict) or not isinstance(given.get("changes"), dict | list):
            raise Problem(422, 'a batch is {"changes": {"table": {"insert": [row, ...], "delete": [row, ...]}}}')
        strange = given.keys() - {"changes", "source", "position"}
        if strange:
            raise Problem(422, f"a batch has no {min(strange)}; it has changes, and perhaps source and position")
        steps = read_steps(given["changes"])
        check_grant(steps, grant)
        return self._once(steps, body, key, "", given.get("source"), given.get("position"))

    def _once(self, steps: list[Step], body: bytes, key: str | None, *rest: Any) -> dict[str, Any]:
        """Applies the changes, unless a request with this key did before."""
        where, *progress = rest
        if key is None:
            return {"applied": self._apply(steps, None, progress), "repeated": False}
        if not 0 < len(key) <= _MOST_KEY:
            raise Problem(422, f"an idempotency key has 1 to {_MOST_KEY} characters")
        digest = hashlib.blake2b(where.encode("utf-8", "surrogatepass") + b"\0" + body, digest_size=16).hexdigest()
        with self._lock:
            known = self._keys.get(key)
            if known is not None and known[1] != digest:
                raise Problem(422, f"the idempotency key {key} was used for another request")
            if known is not None:
                return {"applied": counts(steps), "repeated": True}
            if key in self._pending:
                raise Problem(409, f"a request with the idempotency key {key} is being applied")
            self._pending.add(key)
        try:
            return {"applied": self._apply(steps, (key, digest), progress), "repeated": False}
        finally:
            with self._lock:
                self._pending.discard(key)

    def _apply(self, steps: list[Step], key: tuple[str, str] | None, progress: list[Any]) -> dict[str, Any]:
        try:
            if key is not None:
                self._make_requests()
            with self._database.batch(*progress) as batch:
                for step in steps:
                    take(self._database, batch, step)
                number = None if key is None else self._add_key(batch, *key)
        except IvmeError as error:
            raise problem_of(error) from None
        if key is not None and number is not None:
            self._know(number, *key)
        return counts(steps)

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
