"""What a database takes of memory, and the limit that its user may give it.

Under a limit, the arrays of the kernel, which are nearly all of it, grow by no more than what is left: an allocation
beyond that fails like one that the system refuses, so that a batch, or the build of a view, ends where it would go too
far and is rolled back. What is not made of such arrays (memos, closures, everything of the plain-Python kernel) is
looked at before a change is committed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import MemoryLimitError, SchemaError, shown

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def read_size(size: int | str) -> int:
    """A number of bytes, which may be written with a unit.

    >>> read_size("2GB"), read_size("1.5 KiB"), read_size(4096)
    (2000000000, 1536, 4096)
    """
    found = _SIZE.fullmatch(size) if isinstance(size, str) else None
    if found is not None:
        number, unit, binary = found.groups()
        size = int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])
    if type(size) is not int or size <= 0:
        raise SchemaError(f"memory_limit is a number of bytes, or a text such as '2GB' or '512MiB', not {shown(size)}")
    return size


def memory_of(catalog: Catalog) -> dict[str, int]:
    """The bytes of everything that rows take, and those of dictionaries and of memos of expressions among them."""
    dictionaries, memos = catalog.domains.memory_bytes(), catalog.domains.memos.memory_bytes()
    kept = [state.followed.memory_bytes() for state in catalog.views.values() if state.followed is not None]
    kept += [each.memory_bytes() for each in catalog.participants.values()]
    total = catalog.backend.memory_bytes() + dictionaries + memos + sum(kept)
    return {"memory_bytes": total, "dictionary_bytes": dictionaries, "memo_bytes": memos}


def limit_growth(catalog: Catalog, *, grows: bool = True) -> None:
    """Lets this thread take what is left of the limit, until it lets go of the lock, which it holds.

    What only takes rows away is not limited: there must always be a way back.
    """
    limit = catalog.memory_limit
    catalog.is_limited = grows and limit is not None
    if limit is None or not grows:
        return
    room = limit - memory_of(catalog)["memory_bytes"]
    if room < limit // 4 and catalog.lock.pending is None:
        catalog.backend.release_buffers()
        room = limit - memory_of(catalog)["memory_bytes"]
    catalog.backend.limit_memory(room, limit)


def check_memory(catalog: Catalog) -> None:
    """Refuses what has been done so far if it takes more than the limit; the caller rolls it back."""
    limit = catalog.memory_limit
    if catalog.is_limited and limit is not None and memory_of(catalog)["memory_bytes"] > limit:
        raise MemoryLimitError.beyond(limit)


def leave_no_trace(catalog: Catalog) -> None:
    """Takes back the codes of values that a refused change has brought along."""
    catalog.is_limited = False
    catalog.backend.limit_memory(None, 0)
    reclaim(catalog, now=True)
