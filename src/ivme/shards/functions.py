"""Users' functions over shards, which run in other processes: a function is named by where it is imported from.

The log of a sharded database holds names and signatures, never code. A process imports only functions of modules that
its environment variable IVME_FUNCTIONS lists, separated by commas, and those that its own code gave to
`create_function`, so that write access to the log does not decide what the shards' processes run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ivme.definitions.function_definitions import mentions
from ivme.definitions.user_functions import UserFunction, imported
from ivme.errors import SchemaError
from ivme.query.functions.definition import Function

VARIABLE = "IVME_FUNCTIONS"
_GIVEN: set[str] = set()
"""The places that the code of this process named itself."""


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function's name, its place "module:function", and its signature."""

    name: str
    place: str
    arguments: tuple[str, ...]
    returns: str
    called_with_null: bool = False

    def to_json(self) -> list[Any]:
        return [self.name, self.place, list(self.arguments), self.returns, self.called_with_null]

    @staticmethod
    def from_json(found: Sequence[Any]) -> NamedFunction:
        name, place, arguments, returns, called_with_null = found
        return NamedFunction(name, place, tuple(arguments), returns, called_with_null)

    def user_function(self) -> UserFunction:
        """The function, imported; SchemaError if this process may not, or cannot."""
        module = self.place.partition(":")[0]
        listed = [each.strip() for each in os.environ.get(VARIABLE, "").split(",")]
        if self.place not in _GIVEN and module not in listed:
            raise SchemaError(
                f"the function {self.name} is {self.place}, and this process may not import {module}: list the module "
                f"in the environment variable {VARIABLE} where shards run, as in {VARIABLE}={module}"
            )
        return UserFunction(self.name, self.place, self.arguments, self.returns, self.called_with_null)


def name_function(given: UserFunction) -> NamedFunction:
    """The function by its place; SchemaError if another process cannot import it from there."""
    signature = given.signature()
    place = given.function if isinstance(given.function, str) else _place_of(given.function, given.name)
    given.definition()
    _GIVEN.add(place)
    return NamedFunction(signature.name, place, signature.arguments, signature.returns, signature.called_with_null)


def _place_of(function: Callable[..., Any], name: str) -> str:
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", "<unnamed>")
    if not module or module == "__main__" or "<" in path:
        raise SchemaError(
            f"the function {name} cannot be imported by the processes of shards: define it at the top of a module that "
            "they have on their path, and give it as 'module:function'"
        )
    place = f"{module}:{path}"
    if imported(place, name) is not function:
        raise SchemaError(f"the function {name} is not what {place} imports; give it as 'module:function'")
    return place


@lru_cache(maxsize=1024)
def _defined(function: NamedFunction) -> Function:
    return function.user_function().definition()


def defined(functions: Iterable[NamedFunction]) -> Mapping[str, Function]:
    """What a parser knows functions by."""
    return {function.name.lower(): _defined(function) for function in functions}


def mentioned(functions: Iterable[NamedFunction], text: str) -> tuple[NamedFunction, ...]:
    """The functions whose names a text has in it."""
    return tuple(function for function in functions if mentions(text, function.name))
