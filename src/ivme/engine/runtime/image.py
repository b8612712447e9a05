"""An image of the views: the entries of their maps at one moment, to be loaded later in place of being computed.

A map is in it by a checksum of what it holds (`Storage.identities`), not by its name, so that it does not matter in
which order views came and went. Codes mean something only with the dictionaries that gave them, which are therefore
in it, too, and have to be loaded before anything else. Loading an entry takes about a memory access for its map and for
each index, whatever it took to compute it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.backend import Backend, Codes
from ivme.engine.codes.dictionary import first_code
from ivme.engine.codes.domain import DictionaryValues
from ivme.engine.codes.domains import Domains
from ivme.engine.native_backend import NativeBackend
from ivme.errors import DamagedError
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog
    from ivme.engine.runtime.shared_views import SharedViews

_ENTRIES_ALWAYS_STORED = 1000


@dataclass(slots=True)
class Image:
    """Records by the identity of their map, what rebalancing goes on from by group, and the values of dictionaries.

    `missing` counts the maps that were looked up and not found.
    """

    maps: dict[str, Codes]
    balances: dict[str, dict[str, Any]]
    values: dict[Type, pa.Array]
    missing: int = 0

    def load_values(self, domains: Domains) -> None:
        """Gives the dictionaries, which are empty, the values that they had, with the same codes."""
        for type_, values in self.values.items():
            domain: Any = domains.domain(type_)
            try:
                domain.dictionary.load(values)
            except ValueError as error:
                raise DamagedError(f"the dictionary of type {type_} cannot be loaded: {error}") from error

    def fill(
        self, backend: Backend, group: SharedViews, views: Iterable[str], filled: frozenset[str]
    ) -> frozenset[str]:
        """Loads the maps of some views of a group that are not filled; those that are filled then.

        Heavy and light parts make sense only together: they are loaded all or not at all.
        """
        wanted = {name: key for name, key in group.identities(views).items() if name not in filled}
        found = {name: key for name, key in wanted.items() if key in self.maps}
        self.missing += len(wanted) - len(found)
        assert isinstance(backend, NativeBackend), "there are images of the compiled kernel's maps only"
        if group.rebalancer is not None and group.rebalancer.partitions[0].heavy not in filled:
            if len(found) < len(wanted) or repr(group.key) not in self.balances:
                return filled
            group.rebalancer.restore(self.balances[repr(group.key)])
        for name, key in found.items():
            try:
                backend.load(name, self.maps.pop(key))
            except ValueError as error:
                raise DamagedError(f"map {name} cannot be loaded: {error}") from error
        return filled | found.keys()


def image_of(catalog: Catalog, most: int | None = None) -> Image | None:
    """The image of all views, under the lock: it takes a copy of their maps. None if there can be none.

    There is none without maps, nor of maps in plain Python; nor, with `most`, of maps with more words than this for
    each row of the tables.
    """
    backend = catalog.backend
    if not isinstance(backend, NativeBackend):
        return None
    rows = sum(backend.size(state.rows) for state in catalog.tables.values())
    maps, balances = {}, {}
    for group in catalog.groups:
        for name, key in group.identities().items():
            maps[key] = backend.dump(name)
        if most is not None and sum(map(len, maps.values())) > most * rows + _ENTRIES_ALWAYS_STORED:
            return None
        if group.rebalancer is not None:
            balances[repr(group.key)] = group.rebalancer.kept()
    if not maps:
        return None
    return Image(maps, balances, {type_: each.dump() for type_, each in _dictionaries(catalog).items()})


def _dictionaries(catalog: Catalog) -> dict[Type, Any]:
    """The dictionaries whose codes may be in maps: those of the types of the views' variables."""
    firsts = {
        first_code(type_)
        for state in catalog.views.values()
        for type_ in state.typed.types.values()
        if isinstance(catalog.domains.domain(type_), DictionaryValues)
    }
    return {type_: each for type_, each in catalog.domains.dictionaries().items() if each.base in firsts}
