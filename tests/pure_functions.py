"""Functions that the processes of shards import by their names."""

from __future__ import annotations


def slug(text: str) -> str:
    return "-".join(text.lower().split())


def per(total: int, parts: int) -> int:
    """Raises ZeroDivisionError for no parts."""
    return total // parts


def known(text: str | None) -> bool:
    return text is not None
