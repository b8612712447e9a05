"""Defects that are known and not mended yet: the generator avoids what shows them, so that it finds the next one.

Each entry says what is avoided and who mends it; an empty mapping is the aim.
"""

from __future__ import annotations

AVOIDED: dict[str, str] = {}


def is_avoided(defect: str) -> bool:
    return defect in AVOIDED
