"""Equality classes of columns, and the variables that they become.

Each class of a union-find over `Key`s is one variable of the query; a class that a parameter is compared with is
an input variable. Merging is in near-linear time in the number of equalities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ivme.query.expression import Call, ColumnRef, Expression, columns_of
from ivme.query.sql_scope import Key, Scope


@dataclass(slots=True)
class Classes:
    """The keys mentioned so far, in the order of first mention, each with a link towards its class's root.

    `parameters` maps a parameter's name to the key that it was first compared with. `unequal_nulls` are keys of the
    classes that `=` ties, where NULL equals nothing; in one that only `<=>` ties NULL equals NULL.
    """

    links: dict[Key, Key] = field(default_factory=dict)
    unequal_nulls: set[Key] = field(default_factory=set)
    parameters: dict[str, Key] = field(default_factory=dict)

    def add(self, key: Key) -> Key:
        self.links.setdefault(key, key)
        return key

    def root(self, key: Key) -> Key:
        self.add(key)
        while self.links[key] != key:
            self.links[key] = key = self.links[self.links[key]]
        return key

    def merge(self, left: Key, right: Key, *, null_safe: bool = False) -> None:
        """Makes the two keys equal; the root of the class stays the one that was mentioned first."""
        first, second = self.root(left), self.root(right)
        self.links[second] = first
        if not null_safe:
            self.unequal_nulls.add(left)

    def null_safe(self) -> list[Key]:
        """The roots of the classes of several keys, or of a parameter, in which NULL equals NULL."""
        unequal = {self.root(key) for key in self.unequal_nulls}
        given = {self.root(key) for key in self.parameters.values()}
        classes = self.members().items()
        return [root for root, keys in classes if (len(keys) > 1 or root in given) and root not in unequal]

    def bind(self, parameter: str, key: Key, *, null_safe: bool = False) -> str | None:
        """Compares a parameter with a key; answers with another parameter of the same class, if there is one."""
        self.merge(self.parameters.setdefault(parameter, self.add(key)), key, null_safe=null_safe)
        return self.conflict()

    def conflict(self) -> str | None:
        """A parameter whose class another parameter has already, or None."""
        seen: set[Key] = set()
        for parameter, key in self.parameters.items():
            root = self.root(key)
            if root in seen:
                return parameter
            seen.add(root)
        return None

    def members(self) -> dict[Key, list[Key]]:
        """The classes by their roots, in the order of first mention."""
        classes: dict[Key, list[Key]] = {}
        for key in self.links:
            classes.setdefault(self.root(key), []).append(key)
        return classes


def variable_names(classes: Classes, scope: Scope) -> dict[Key, str]:
    """The variable of each key: its column's name if no other class wants it, else `alias_column`.

    A class is named after its first plain column in the order of FROM, or after its first computed one.
    """
    speakers = {root: min(keys, key=_rank) for root, keys in classes.members().items()}
    wanted = Counter(_plain_name(scope, key).lower() for key in speakers.values())
    names: dict[Key, str] = {}
    taken: set[str] = set()
    for root, speaker in speakers.items():
        name = _plain_name(scope, speaker)
        if wanted[name.lower()] > 1:
            name = f"{scope.occurrences[speaker.occurrence].alias}_{name}"
        names[root] = next(free for free in _numbered(name) if free.lower() not in taken)
        taken.add(names[root].lower())
    return {key: names[classes.root(key)] for key in classes.links}


def _rank(key: Key) -> tuple[bool, int]:
    return not isinstance(key.expression, ColumnRef), key.occurrence


def _plain_name(scope: Scope, key: Key) -> str:
    if isinstance(key.expression, ColumnRef):
        return scope.visible_name(key)
    return "_".join([*_functions(key.expression), *dict.fromkeys(columns_of(key.expression))]) or "constant"


def _functions(expression: Expression) -> list[str]:
    return [expression.function] if isinstance(expression, Call) else []


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1
