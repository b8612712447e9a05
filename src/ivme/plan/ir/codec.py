"""Frozen dataclasses as text, and back: how a plan is stored beside its view.

The text is JSON and holds data only: what is read is made of an explicit list of classes, numbers, strings, dates,
tuples, sets and mappings, never code. Equal values are written once, since a plan has the same views and schemas at
many places. Each class is written with the names of its fields, so that a text of another version of ivme is refused
whenever one of its classes has changed.

>>> from ivme.plan.assemble.blueprint import Leaf
>>> codec = Codec([Leaf])
>>> codec.read(codec.write((Leaf("R", ("A", "B")), Leaf("S", ("A", "B")))))
(Leaf(label='R', schema=('A', 'B')), Leaf(label='S', schema=('A', 'B')))
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import Any

from ivme.errors import IvmeError, StorageError

DERIVED: Mapping[str, bool] = {"derived": True}
"""The metadata of a field that is not stored, since it follows from others; it comes last, and has a default."""

_SCALARS: Mapping[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    Fraction: ("fraction", str, Fraction),
    Decimal: ("decimal", str, Decimal),
    float: ("float", float.hex, float.fromhex),
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
    datetime.datetime: ("datetime", datetime.datetime.isoformat, datetime.datetime.fromisoformat),
}
"""Values that JSON does not have, or not exactly: the name of their form, and how they become a string and back."""

_READ = {name: read for name, _, read in _SCALARS.values()}
_PLAIN = frozenset((type(None), bool, int, str))


class Codec:
    """Writes and reads values that are made of these classes."""

    def __init__(self, classes: Iterable[type]) -> None:
        known = list(classes)
        self._classes = {each.__name__: each for each in known}
        if len(self._classes) < len(known):
            raise ValueError(f"two classes have one name: {sorted(each.__name__ for each in known)}")
        self._fields = {
            name: [f.name for f in fields(each) if f.init and not f.metadata.get("derived")]
            for name, each in self._classes.items()
        }

    def write(self, value: object) -> str:
        """The text of a value; the same for equal values. TypeError if a class is not in the list."""
        places: dict[int, int] = {}
        known: dict[tuple[type, object], int] = {}
        values: list[object] = []
        waiting = [(value, False)]
        while waiting:
            current, below = waiting.pop()
            if id(current) in places:
                continue
            parts = self._parts(current)
            if parts and not below:
                waiting.append((current, True))
                waiting += [(part, False) for part in parts if id(part) not in places]
                continue
            form = self._form(current, [places[id(part)] for part in parts])
            place = places[id(current)] = known.setdefault((type(current), form), len(values))
            if place == len(values):
                values.append(form)
        used = sorted({kind.__name__ for kind, _ in known}.intersection(self._classes))
        content = {"classes": {name: self._fields[name] for name in used}, "values": values}
        return json.dumps(content, separators=(",", ":"))

    def _parts(self, value: Any) -> Sequence[Any]:
        """What a value is made of; a set in an order that does not depend on hashes."""
        kind = type(value)
        if kind in _PLAIN or kind in _SCALARS:
            return ()
        if isinstance(value, tuple):
            return value
        if kind is frozenset:
            return sorted(value, key=repr)
        if kind is dict:
            return [part for item in value.items() for part in item]
        if self._classes.get(kind.__name__) is not kind:
            raise TypeError(f"a {kind.__name__} cannot be stored: {value!r}")
        return [getattr(value, field) for field in self._fields[kind.__name__]]

    def _form(self, value: Any, parts: list[int]) -> object:
        """A value as JSON, given the places of its parts; it can be compared."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind in _SCALARS:
            name, write, _ = _SCALARS[kind]
            return f"={name}", write(value)
        if kind is tuple:
            return tuple(parts)
        if kind is frozenset:
            return ("=set", *sorted(parts))
        return ("=dict" if kind is dict else kind.__name__, *parts)

    def read(self, text: str) -> Any:
        """The value of a text; `StorageError` says what is wrong with one that this codec did not write."""
        try:
            content = json.loads(text)
            for name, written in content["classes"].items():
                if self._fields.get(name) != written:
                    raise StorageError(f"a stored plan has a class {name} with the fields {written}, which is not ours")
            made: list[Any] = []
            for form in content["values"]:
                made.append(self._made(form, made))
            return made[-1]
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise StorageError(f"a stored plan cannot be read: {error!r}") from error
        except StorageError:
            raise
        except IvmeError as error:
            raise StorageError(f"a stored plan contradicts itself: {error}") from error

    def _made(self, form: Any, made: list[Any]) -> Any:
        if not isinstance(form, list):
            if type(form) not in _PLAIN:
                raise TypeError(f"{form!r} is not a value")
            return form
        if not form or not isinstance(form[0], str):
            return tuple([made[_place(part)] for part in form])
        name, *parts = form
        if name[1:] in _READ and name[0] == "=":
            return _READ[name[1:]](*parts)
        values = [made[_place(part)] for part in parts]
        if name == "=set":
            return frozenset(values)
        if name == "=dict":
            return dict(zip(values[::2], values[1::2], strict=True))
        return self._classes[name](*values)


def _place(part: object) -> int:
    """A place of a value that was made before; what counts from the end is not one."""
    if type(part) is not int or part < 0:
        raise TypeError(f"{part!r} is not a place")
    return part
