"""The parameters of an access request: which values are meant, and their codes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np

from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.read.lists import requests_of
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.errors import DataError, UnknownNameError
from ivme.query.defaults import default_of
from ivme.query.typed import TypedQuery
from ivme.query.types import Type

_EXACT = {"int": int, "float": float, "string": str, "bool": bool, "date": date}
"""The Python types whose values are shown as they were given; others may be written in several ways."""


class Asked:
    """The parameters of a view."""

    def __init__(self, reader: Reader, state: ViewState) -> None:
        self._reader = reader
        self._state = state
        query, domain = state.typed.query, state.finisher.domain
        self._names = set(query.parameters)
        types = state.typed.types
        variables = dict(zip(query.parameters, query.input, strict=True))
        self.defaults = {name: self._default(name, value, types[variables[name]]) for name, value in query.defaults}
        self.has_lists = bool(query.lists)
        known = query.known or [""] * len(query.input)
        ends = dict(query.ends)
        self._finders = [
            (name, variable, domain(variable).encode_value if ends.get(name) else domain(variable).find_value, block)
            for name, variable, block in zip(query.parameters, query.input, known, strict=True)
        ]
        self._shown = {each: (_EXACT.get(str(types[each])), domain(each).decode_value) for each in query.input}

    def _default(self, name: str, value: Any, type_: Type) -> Any:
        made = default_of(value, type_)
        return [made] if name in dict(self._state.typed.query.lists) else made

    def complete(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters with the defaults of those left out; UnknownNameError if others are missing, or not known."""
        if parameters.keys() == self._names:
            return parameters
        name, query = self._state.name, self._state.typed.query
        for each in parameters:
            if each not in query.parameters:
                raise UnknownNameError(f"view {name} has no parameter {each}; {self.signature()}")
        whole = {**self.defaults, **parameters}
        missing = [each for each in query.parameters if each not in whole]
        if missing:
            raise UnknownNameError(f"view {name} needs a value for {', '.join(missing)}; {self.signature()}")
        return whole

    def members(self, parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The requests for single members of lists that a request is."""
        typed = self._state.typed
        return requests_of(typed.query, typed.types, self.complete(parameters))

    def signature(self) -> str:
        """What the view takes, in words."""
        return signature(self._state.typed, self.defaults)

    def codes(self, parameters: Mapping[str, Any]) -> tuple[tuple[int, ...] | None, dict[str, Any]]:
        """The codes of the inputs, or None if a value occurs nowhere; and the values by variable. Under the lock."""
        parameters = self.complete(parameters)
        values: dict[str, Any] = {}
        codes: dict[str, int] = {}
        for name, variable, find, block in self._finders:
            value = values[variable] = parameters[name]
            try:
                code = None if value is None else find(value)
            except DataError as error:
                raise DataError(f"parameter {name} of view {self._state.name}: {error}") from None
            if block:
                code = NULL_CODE if code is None or not self._is_known(block, code) else code
            if code is None and self._state.typed.query.ends:
                code = NULL_CODE  # a row of aggregates is there anyway
            if code is not None:
                codes[variable] = code
                exact, decode = self._shown[variable]
                if type(value) is not exact and code != NULL_CODE:
                    values[variable] = decode(code)  # 3.0 asks for the int 3, and rows show the latter
        if len(codes) < len(values):
            return None, values
        wanted = self._state.group.enumerations[self._state.name].inputs
        return tuple([codes[original] for _, original in wanted]), values

    def joined(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The values by variable, as they are joined with: NULL for one that the block of known values does not have.
        Under the lock."""
        _, values = self.codes(parameters)
        for _, variable, find, block in self._finders:
            code = None if values[variable] is None else find(values[variable])
            if block and (code is None or not self._is_known(block, code)):
                values[variable] = None
        return {str(variable): value for variable, value in values.items()}

    def _is_known(self, block: str, code: int) -> bool:
        return self._reader.row_at(self._reader.catalog.views[block], [code], {}) is not None


def signature(typed: TypedQuery, defaults: Mapping[str, Any]) -> str:
    """What a view takes, in words."""
    query = typed.query

    def described(name: str, type_: Type) -> str:
        what = f"list of {type_}" if name in dict(query.lists) else str(type_)
        return f"{name}: {what}" + (f" = {defaults[name]!r}" if name in defaults else "")

    if not query.parameters:
        return "it takes no parameters"
    pairs = zip(query.parameters, query.input, strict=True)
    return f"it takes {', '.join(described(name, typed.types[variable]) for name, variable in pairs)}"


def known_codes(reader: Reader, block: str, codes: Codes) -> Codes:
    """The codes that a block of values has; NULL in the place of the others."""
    state = reader.catalog.views[block]
    with reader.catalog.lock:
        reader.catalog.check_there(state)
        reader.refresh(state)
        numbers, _ = state.group.points(state.name, [codes])
    made = np.full(len(codes), NULL_CODE, np.int64)
    made[numbers] = codes[numbers]
    return made
