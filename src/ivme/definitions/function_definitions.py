"""The users' functions of a database, and which views call them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ivme.definitions.user_functions import Signature, UserFunction, read_functions, read_signature
from ivme.errors import BrokenViewError, PlanError, SchemaError, UnknownNameError
from ivme.query.functions.definition import Function
from ivme.store.broken_views import make_views

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.store.contents import StoredView


class FunctionDefinitions:
    """Functions by lower-cased name. `users` has the functions that each view calls, by the view's name."""

    def __init__(self, given: Iterable[UserFunction] | None = None) -> None:
        self.defined: dict[str, Function] = {}
        self.signatures: dict[str, Signature] = {}
        self.users: dict[str, tuple[str, ...]] = {}
        for each in read_functions(given).values():
            self.add(each)

    def add(self, function: UserFunction) -> None:
        signature, defined = function.signature(), function.definition()
        self.defined[signature.name.lower()] = defined
        self.signatures[signature.name.lower()] = signature

    def called_by(self, view: str) -> list[Signature]:
        """The signatures of the functions that a view calls."""
        return [self.signatures[name] for name in self.users.get(view, ())]

    def check(self, view: StoredView) -> None:
        """Refuses to build a view while a function that it calls is not there, with the signature that it had."""
        for needed in view.functions:
            found = self.signatures.get(needed["name"].lower())
            wanted = read_signature(needed)
            if found is None:
                raise BrokenViewError(
                    f"it waits for the function {wanted}: give it by db.create_function, or by "
                    "ivme.Database(path, functions=[...]); code is not stored in the directory"
                )
            if found != wanted:
                raise BrokenViewError(f"it needs the function {wanted}, but the one in this database is {found}")


def create_function(definitions: Definitions, function: UserFunction) -> None:
    """Adds a function, and builds the views that wait for it."""
    functions = definitions.functions
    with definitions.runtime.lock:
        definitions.check_open()
        signature = function.signature()
        name = signature.name.lower()
        if name in functions.signatures:
            raise SchemaError(f"there is a function {functions.signatures[name]} already; drop it first")
        waiting = [view for view in waiting_views(definitions) if name in _names(view.functions)]
        for view in waiting:
            needed = next(read_signature(each) for each in view.functions if each["name"].lower() == name)
            if needed != signature:
                raise SchemaError(
                    f"view {view.name} needs the function {needed}, and this one is {signature}; "
                    "give it the same types, or drop the view"
                )
        functions.add(function)
        if waiting:
            _build(definitions)


def drop_function(definitions: Definitions, name: str) -> None:
    """Forgets a function that no view calls."""
    functions = definitions.functions
    with definitions.runtime.lock:
        definitions.check_open()
        found = name.lower() if isinstance(name, str) else ""
        if found not in functions.signatures:
            known = ", ".join(each.name for each in functions.signatures.values()) or "none"
            raise UnknownNameError(f"there is no function {name!r}; there are: {known}")
        users = [view for view, names in functions.users.items() if found in names]
        if users:
            raise PlanError(
                f"view {users[0]} calls the function {functions.signatures[found].name}; drop the view first"
            )
        del functions.signatures[found], functions.defined[found]


def _build(definitions: Definitions) -> None:
    """Builds the views that could not be built before, from the tables as they are now."""
    assert definitions.store is not None
    stored = definitions.store.views
    reasons = dict(definitions.broken)
    definitions.is_opening = True  # a stored view may be older than the rules for new ones
    try:
        make_views(definitions, [view for view in stored.values() if view.name in reasons], stored, lambda: None)
    finally:
        definitions.is_opening = False
        known = (*definitions.views, *definitions.broken)
        definitions.broken |= {name: reason for name, reason in reasons.items() if name not in known}


def mentions(query: str, name: str) -> bool:
    """Whether a text has a name in it: what reads a table that is not there cannot be told from the text for sure."""
    return re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE) is not None


def waiting_views(definitions: Definitions) -> Iterator[StoredView]:
    """The views that could not be built and call functions."""
    stored: Mapping[str, StoredView] = {} if definitions.store is None else definitions.store.views
    return (view for view in stored.values() if view.name in definitions.broken and view.functions)


def _names(functions: Iterable[Mapping[str, object]]) -> list[str]:
    return [str(each["name"]).lower() for each in functions]
