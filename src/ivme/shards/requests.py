"""What a shard can be asked, by name. The same functions answer in a host and in tests that have no processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ivme.errors import SparkError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.distribute import packed_by_shard
from ivme.shards.engine import large_views
from ivme.shards.functions import NamedFunction
from ivme.shards.layout import write_layout
from ivme.shards.message import Message
from ivme.shards.parts import EngineKey
from ivme.shards.service import Forward, ShardService
from ivme.shards.shard import Shard


def answer(service: ShardService, message: Message, forward: Forward) -> Message:
    """The answer to a question."""
    head = message.head
    operation = head.get("op")
    if operation == "prepare":
        return service.prepare(head, forward)
    if operation == "commit":
        service.commit(head["step"], head["file"], head["sources"])
        return Message({})
    if operation == "abort":
        service.abort(head["transaction"], head["attempt"])
        return Message({})
    if operation == "parts" and "transaction" in head:
        return service.within(head["transaction"], lambda shard: _parts(shard, message))
    if operation == "spread":
        return service.reading(head["step"], head.get("ended", 0), lambda shard: _spread(shard, head, forward))
    if operation in READS:
        return service.reading(head.get("step"), head.get("ended", 0), lambda shard: READS[operation](shard, message))
    raise SparkError(f"a shard does not know the request {operation!r}")


def _rows(shard: Shard, message: Message) -> Message:
    requests = message.tables[0] if message.tables else None
    return Message({}, (shard.rows(message.head["view"], message.head["patterns"], requests),))


def _many(shard: Shard, message: Message) -> Message:
    return Message({}, (shard.many(message.head["view"], message.tables[0]),))


def _path(shard: Shard, message: Message) -> Message:
    found = shard.path(message.head["view"], message.tables[0])
    return Message({}, () if found is None else (found,))


def _parts(shard: Shard, message: Message) -> Message:
    found = shard.parts_of(message.head["view"], message.tables[0])
    return Message({}, () if found is None else (found,))


def _table(shard: Shard, message: Message) -> Message:
    return Message({}, (shard.table_rows(message.head["table"]),))


def _keys(shard: Shard, message: Message) -> Message:
    return Message({}, (shard.rows_of_keys(message.head["table"], message.tables[0]),))


def _change(shard: Shard, message: Message) -> Message:
    table = message.head["table"]
    return Message({}, (shard.engines[EngineKey(table)].resolved(table, message.head, *message.tables),))


def _spread(shard: Shard, head: Mapping[str, Any], forward: Forward) -> Message:
    """Puts this shard's rows of a view's tables to the shards where the view wants them; to which."""
    packed = packed_by_shard(shard.spread(ShardCatalog.from_json(head["catalog"]), head["view"]))
    key = (f"from-{shard.number}", "0")
    for target, parts in packed.items():
        forward(target, head["transaction"], key, parts)
    return Message({"shards": list(packed), "key": key})


def _degrees(shard: Shard, message: Message) -> Message:
    catalog = ShardCatalog.from_json(message.head["catalog"])
    return Message({"degrees": shard.degrees(catalog, message.head["view"])})


def _status(shard: Shard, _message: Message) -> Message:
    about = {"pid": os.getpid(), "step": shard.step, "entries": shard.entries, "memory": resident_bytes()}
    return Message({"shard": shard.number, **about, "rebuilds": shard.rebuilds, "large": large_views(shard.engines)})


def _snapshot(shard: Shard, message: Message) -> Message:
    write = shard.tail if message.head.get("tail") else shard.snapshot
    return Message({"step": write(message.head["driver_epoch"])})


def _lay_out(shard: Shard, message: Message) -> Message:
    head = message.head
    catalog = ShardCatalog.from_json(head["catalog"])
    files, rows = write_layout(shard, catalog, head["shards"], head["driver_epoch"])
    return Message({"files": files, "rows": rows})


def _rehearse(shard: Shard, message: Message) -> Message:
    """Builds a shard of a layout that is to be, and forgets it; raises why it cannot be built."""
    head = message.head
    Shard(shard.checkpoint, head["new"]).lay_out(ShardCatalog.from_json(head["catalog"]), head["files"])
    return Message({})


def _import(_shard: Shard, message: Message) -> Message:
    """Whether this process can call a user's function; raises the reason if not."""
    NamedFunction.from_json(message.head["function"]).user_function().definition()
    return Message({})


READS: Mapping[Any, Callable[[Shard, Message], Message]] = {
    "import": _import,
    "rows": _rows,
    "many": _many,
    "path": _path,
    "parts": _parts,
    "table": _table,
    "keys": _keys,
    "change": _change,
    "degrees": _degrees,
    "status": _status,
    "snapshot": _snapshot,
    "lay_out": _lay_out,
    "rehearse": _rehearse,
}
"""Those that only read the shard, at the step that they name."""


def resident_bytes() -> int:
    """The memory that this process has; 0 where that cannot be told."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
