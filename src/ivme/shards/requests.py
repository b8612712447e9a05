"""What a shard can be asked, by name: each request is a function from the shard and a message to an answer.

The same functions answer in a daemon and in tests that have no processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.functions import NamedFunction
from ivme.shards.protocol import Message
from ivme.shards.shard import Base, Shard

Answer = tuple[Mapping[str, Any], tuple[pa.Table, ...]]


def answer(shard: Shard, message: Message) -> Answer:
    """The answer to a request. The reader names the step, and gets no other."""
    head = message.head
    operation = OPERATIONS.get(head["op"])
    if operation is None:
        raise SparkError(f"a shard cannot be asked for {head['op']!r}")
    if "base" in head and head["op"] != "advance":
        shard.ensure_at(Base.from_json(head["base"]))
    return operation(shard, message)


def _advance(shard: Shard, message: Message) -> Answer:
    """Goes on by some steps; before that, if the log has outgrown what it makes, a snapshot replaces it."""
    base = Base.from_json(message.head["base"])
    steps = [(number, digest) for number, digest in message.head["steps"]]
    if message.head["compact"] and shard.position != steps[-1]:
        shard.advance(base, [])
        base = replace(base, snapshot=base.position[0], file=shard.snapshot(), log=(), start=base.position)
    return {"reports": shard.advance(base, steps), "base": base.to_json()}, ()


def _rows(shard: Shard, message: Message) -> Answer:
    requests = message.tables[0] if message.tables else None
    return {}, (shard.rows(message.head["view"], message.head["patterns"], requests),)


def _many(shard: Shard, message: Message) -> Answer:
    return {}, (shard.many(message.head["view"], message.tables[0]),)


def _path(shard: Shard, message: Message) -> Answer:
    found = shard.path(message.head["view"], message.tables[0])
    return {}, () if found is None else (found,)


def _parts(shard: Shard, message: Message) -> Answer:
    found = shard.parts_of(message.head["view"], message.tables[0])
    return {}, () if found is None else (found,)


def _table(shard: Shard, message: Message) -> Answer:
    return {}, (shard.table_rows(message.head["table"]),)


def _spread(shard: Shard, message: Message) -> Answer:
    catalog = ShardCatalog.from_json(message.head["catalog"])
    files = shard.spread(catalog, message.head["view"], message.head["folder"])
    return {"files": [file.to_json() for file in files]}, ()


def _degrees(shard: Shard, message: Message) -> Answer:
    catalog = ShardCatalog.from_json(message.head["catalog"])
    return {"degrees": shard.degrees(catalog, message.head["view"])}, ()


def _status(shard: Shard, _message: Message) -> Answer:
    entries = {str(key): engine.entries for key, engine in shard.engines.items()}
    at = None if shard.position is None else shard.position[0]
    return {"pid": os.getpid(), "step": at, "entries": entries, "rebuilds": shard.rebuilds}, ()


def _import(_shard: Shard, message: Message) -> Answer:
    """Whether this process can call a user's function; raises the reason if not."""
    NamedFunction.from_json(message.head["function"]).user_function().definition()
    return {}, ()


def _ping(_shard: Shard, _message: Message) -> Answer:
    return {}, ()


OPERATIONS: Mapping[str, Callable[[Shard, Message], Answer]] = {
    "import": _import,
    "advance": _advance,
    "rows": _rows,
    "many": _many,
    "parts": _parts,
    "path": _path,
    "table": _table,
    "spread": _spread,
    "degrees": _degrees,
    "status": _status,
    "ping": _ping,
}
