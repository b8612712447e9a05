"""The queries of the corpora that ivme refuses, each with a part of the message that says why.

A test fails when one of them is accepted, so that this list stays true; an empty one is the aim.
"""

from __future__ import annotations

REFUSED: dict[str, str] = {}
