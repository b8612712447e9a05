"""The table of the clock, which views with NOW() read: one row, the moment that the caller said last."""

from __future__ import annotations

from ivme.query.model import Table, table
from ivme.query.names import CLOCK

NOW = "#now"
"""The column of the clock: no star shows it, and no column of a user is called so."""

CLOCK_TABLE: Table = table(CLOCK, {NOW: "timestamp"})
