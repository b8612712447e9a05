"""Codes of values that nothing holds any more are taken back, and given to other values (decision 0118).

Maps hold codes, and so do a few things outside of them: closures, keys on their way from one side of a partition to the
other, and rows that have been read and not been decoded yet. All of them are checked, between two batches, under the
lock. What only remembers codes of values that it knows, too (the constants of expressions, rows of a batch that is not
committed yet) is not checked: it forgets them, and encodes the values again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from ivme.engine.codes.dictionary import Codes

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog

LEAST_CODES = 65_536
"""So many values, or long ones of as many times 64 bytes, are there at least before codes are taken back."""

ROWS_BETWEEN = 256
"""So many single rows are written before anybody looks whether it is time."""


class Holder(Protocol):
    """Something outside of maps that has codes for longer than it has the lock."""

    def held_codes(self) -> Iterable[Codes]:
        """All of them, perhaps among other numbers."""


def reclaim(catalog: Catalog, *, now: bool = False) -> None:
    """Takes back codes if many may be held no more, or `now`. The caller holds the lock, and no code.

    Not in the middle of a change, nor while maps are to be loaded or views built elsewhere: these are not checked.
    An exception in between leaves everything as it was, as the kernel does all in one call.
    """
    if catalog.lock.pending is not None or catalog.image is not None or catalog.builds:
        return
    dictionaries = list(catalog.domains.dictionaries().values())
    if not dictionaries or not (now or catalog.backend.is_sweep_due(dictionaries, LEAST_CODES)):
        return
    catalog.domains.is_sweeping = True
    try:
        catalog.forget_constants()
        catalog.domains.sweeps += 1
        holders: list[Holder] = [*catalog.groups, *catalog.participants.values(), *catalog.holders]
        held = [codes for holder in holders for codes in holder.held_codes()]
        catalog.backend.sweep_codes(dictionaries, held)
    finally:
        catalog.domains.is_sweeping = False
