"""The rules of the grammar that are in no view that ivme accepts, each with the reason: an empty list is the aim.

A test fails when a rule is accepted that is listed, and when one is never accepted that is not.
"""

from __future__ import annotations

UNACCEPTED: dict[str, str] = {}
