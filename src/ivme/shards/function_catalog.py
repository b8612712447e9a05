"""The users' functions of a sharded database: made, dropped and listed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ivme.definitions.user_functions import UserFunction
from ivme.errors import PlanError, SchemaError
from ivme.query.types import Type
from ivme.shards.catalog import ShardCatalog
from ivme.shards.functions import name_function
from ivme.shards.message import Message


class FunctionCatalog(ABC):
    """The part of `ShardedDatabase` that is about functions."""

    _lock: threading.RLock

    @property
    @abstractmethod
    def _catalog(self) -> ShardCatalog: ...

    @abstractmethod
    def _ask_all(self, head: Mapping[str, Any]) -> list[Message]: ...

    @abstractmethod
    def _change_catalog(self, catalog: ShardCatalog) -> None: ...

    def create_function(
        self,
        name: str,
        function: Callable[..., Any] | str,
        *,
        arguments: Iterable[str | Type],
        returns: str | Type,
        called_with_null: bool = False,
    ) -> None:
        """Makes a function of Python one of SQL, as `Database.create_function` does.

        All processes import it by its module and name: it must be at the top of a module that they have, and that
        the environment variable IVME_FUNCTIONS lists where shards run.
        """
        made = name_function(UserFunction(name, function, tuple(arguments), returns, called_with_null))
        with self._lock:
            catalog = self._catalog
            if name.lower() in {each.name.lower() for each in catalog.functions}:
                raise SchemaError(f"there is a function {name} already; drop it first")
            self._ask_all({"op": "import", "function": made.to_json()})
            self._change_catalog(replace(catalog, functions=(*catalog.functions, made)))

    def drop_function(self, name: str) -> None:
        """Drops a function, unless a view calls it."""
        with self._lock:
            catalog = self._catalog
            found = catalog.function(name)
            users = [view.view for view in catalog.views if found in view.functions]
            if users:
                raise PlanError(f"view {users[0]} calls the function {found.name}; drop the view first")
            self._change_catalog(replace(catalog, functions=tuple(f for f in catalog.functions if f != found)))

    @property
    def functions(self) -> dict[str, str]:
        """The functions that were added by `create_function`, and their signatures."""
        return {each.name: str(each.user_function().signature()) for each in self._catalog.functions}
