"""What is remembered by code, for the whole of a database: one place to forget it all."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Protocol, TypeVar, cast


class Memo(Protocol):
    """Something that is remembered by code."""

    def forget(self) -> None: ...
    def memory_bytes(self) -> int: ...


class Constants(Protocol):
    """Something that holds the codes of a few values that it knows."""

    def forget_constants(self) -> None: ...
    def __hash__(self) -> int: ...


_Memo = TypeVar("_Memo", bound=Memo)


class Memos:
    """All memos of a database. They keep no code alive: before codes are freed, `forget` is called, under the lock."""

    def __init__(self) -> None:
        self._memos: dict[Hashable, Any] = {}
        self._constants: weakref.WeakSet[Constants] = weakref.WeakSet()

    def hold_constants(self, holder: Constants) -> None:
        """From now on the holder of single codes is told to find them again, for as long as it is there."""
        self._constants.add(holder)

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
        for holder in self._constants:
            holder.forget_constants()
        for memo in self._memos.values():
            memo.forget()
