"""The rules of the grammar that are in no view that ivme accepts, each with the reason: an empty list is the aim.

A test fails when a rule is accepted that is listed, and when one is never accepted that is not.
"""

from __future__ import annotations

UNACCEPTED: dict[str, str] = {
    "select: windowed": "window functions",
    "window: count": "window functions",
    "window: dense rank": "window functions",
    "window: first value": "window functions",
    "window: lag": "window functions",
    "window: lead": "window functions",
    "window: max": "window functions",
    "window: rank": "window functions",
    "window: row number": "window functions",
    "window: running sum": "window functions",
    "window: sum": "window functions",
}
