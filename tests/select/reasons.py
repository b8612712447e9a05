"""Refusals by reason: the message without what belongs to one query only."""

from __future__ import annotations

import re

_NAMES = re.compile(r"\b[rtvwcn]\d+(#\d+)?(\.\w+)?\b|`[^`]*`|'[^']*'|\"[^\"]*\"|\b\d+\b")


def reason_of(error: Exception) -> str:
    """The first line of a message, names and numbers left out, so that equal reasons are equal.

    >>> reason_of(ValueError("t3.i of r0 is unknown (line 1, column 7)"))
    'ValueError: _ of _ is unknown'
    """
    line = str(error).splitlines()[0] if str(error) else ""
    line = line.partition(" (line ")[0]
    return f"{type(error).__name__}: {_NAMES.sub('_', line)[:110]}"
