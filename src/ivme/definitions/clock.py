"""The clock of a database: a table of one row, which only moves on (query/rewrite/clock.py).

It is not the clock of the machine: callers set it, so that the same calls have the same rows in the same order,
also after a crash and in tests.
"""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.runtime import Runtime
from ivme.errors import DataError, SchemaError, shown
from ivme.query.clock import CLOCK_TABLE
from ivme.query.model import Table
from ivme.query.names import CLOCK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ivme.definitions.definitions import Definitions

START = datetime(1970, 1, 1)
"""What a new clock says. Rows that expired before that are never seen."""


def make_clock(definitions: Definitions, read: Iterable[Table] = (CLOCK_TABLE,)) -> None:
    """Makes the table of the clock, if it is among what is read and not there yet."""
    if any(each.name == CLOCK for each in read):
        with definitions.runtime.lock:
            if CLOCK not in definitions.catalog.tables:
                definitions.create_table(CLOCK_TABLE)
                with Batch(definitions.runtime, None) as batch:
                    batch.insert(CLOCK, [(START,)])


def read_clock(runtime: Runtime) -> datetime | None:
    """What the clock says; None if there is none."""
    with runtime.lock:
        if CLOCK not in runtime.catalog.tables:
            return None
        if runtime.catalog.tables[CLOCK].table != CLOCK_TABLE:
            raise SchemaError(f"the table {CLOCK} is that of the clock; rename yours")
        moments = [row[0] for row in runtime.reader.all_rows(CLOCK).rows()]
        if len(moments) != 1:
            raise DataError(
                f"the clock, table {CLOCK}, has {len(moments)} rows in place of one; change it by advance()"
            )
        found: datetime = moments[0]
        return found


def read_moment(now: object) -> datetime:
    """A moment as tables hold it: without a time zone, which is UTC."""
    if not isinstance(now, datetime):
        raise DataError(f"the clock is moved to a datetime; it is {shown(now)}")
    return now if now.tzinfo is None else now.astimezone(UTC).replace(tzinfo=None)


def not_back(before: datetime, moment: datetime) -> bool:
    """Whether a clock moves on from a moment to another; DataError if it would go back."""
    if moment < before:
        raise DataError(f"the clock says {before} already, and does not go back to {moment}; nothing was changed")
    return moment > before


def warn_if_unset(definitions: Definitions, view: str) -> None:
    """Tells the reader of a view with NOW() that the clock was never set: the view may show all rows, or none."""
    if definitions.warns_of_clock and read_clock(definitions.runtime) == START:
        warnings.warn(
            f"view {view} compares rows with NOW(), which is 1970 until the clock of the database is set; call "
            "db.advance(datetime.now(UTC)), and again as time goes on",
            stacklevel=5,
        )


class Clocked:
    """The part of a database that knows the time."""

    definitions: Definitions

    def advance(self, now: datetime) -> None:
        """Moves the clock of the database on: rows leave and enter the views that compare them with it.

        These are views with the option `expire`, and those with NOW() in WHERE. All of them change together, as in a
        batch: O(log N) for each of them, and for each row that moves what its change costs. The clock never goes back:
        an earlier moment is an error, and the same one changes nothing. A moment without a time zone is UTC: give
        `datetime.now(UTC)`, as `datetime.now()` is the local time.
        """
        self.definitions.check_open()
        moment, runtime = read_moment(now), self.definitions.runtime
        with runtime.lock:
            make_clock(self.definitions)
            before = read_clock(runtime)
            assert before is not None, "it was made"
            if not_back(before, moment):
                with Batch(runtime, None) as batch:
                    batch.delete(CLOCK, [(before,)])
                    batch.insert(CLOCK, [(moment,)])

    @property
    def now(self) -> datetime | None:
        """The time of the database's clock; None if it was never advanced and no view reads it."""
        return read_clock(self.definitions.runtime)
