"""A peer that cannot take part, and why: the report names it."""

from __future__ import annotations


class MissingError(Exception):
    """The peer and the reason."""

    def __init__(self, peer: str, reason: str) -> None:
        self.peer, self.reason = peer, reason
        super().__init__(f"{peer}: {reason}")
