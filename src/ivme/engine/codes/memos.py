"""What is remembered by code, for the whole of a database: one place to forget it all."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar, cast


class Memo(Protocol):
    """Something that is remembered by code."""

    def forget(self) -> None: ...
    def memory_bytes(self) -> int: ...


_Memo = TypeVar("_Memo", bound=Memo)


class Memos:
    """All memos of a database. They keep no code alive: before codes are freed, `forget` is called, under the lock."""

    def __init__(self) -> None:
        self.generation = 0
        """How often codes have been forgotten; single codes that are held elsewhere are found anew after each time."""
        self._memos: dict[Hashable, Any] = {}

    def memo(self, key: Hashable, make: Callable[[], _Memo]) -> _Memo:
        """The memo of that key, made if it is not there."""
        found = self._memos.get(key)
        if found is None:
            found = self._memos[key] = make()
        return cast(_Memo, found)

    def memory_bytes(self) -> int:
        """What all of them take."""
        return sum(memo.memory_bytes() for memo in tuple(self._memos.values()))

    def forget(self) -> None:
        """Empties all of them."""
        self.generation += 1
        for memo in self._memos.values():
            memo.forget()
