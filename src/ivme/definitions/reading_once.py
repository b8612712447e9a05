"""SELECTs that run once: a view is made for each, read, and forgotten.

The plans of the last texts are cached: the same text over the same tables is not planned again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import chain, count
from typing import TYPE_CHECKING, TypeVar

from ivme.definitions.clock import make_clock
from ivme.engine.runtime.reclaim import reclaim
from ivme.query.block_names import view_of_block
from ivme.query.functions import Function
from ivme.query.model import Table

if TYPE_CHECKING:
    from ivme.compile import CompiledView
    from ivme.definitions.definitions import Definitions
    from ivme.query.read_select import ReadSelect
    from ivme.view import View

Answer = TypeVar("Answer")
Planned = tuple["CompiledView", tuple[Table, ...], dict[str, Function]]

_MOST_PLANS = 128
"""How many plans are cached; those that were used last."""

_GROWTH_BITS = 4
"""Tables that have grown by so many powers of two are planned again."""


class OneReads:
    """Answers SELECTs by views that are built for them; these are never listed and never stored."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._plans: OrderedDict[Hashable, Planned] = OrderedDict()

    def read(self, query: str | ReadSelect, read: Callable[[View], Answer], asked: Hashable = None) -> Answer:
        """What `read` makes of the view of a query.

        The plan of one that was made of parts is kept if `asked` tells it from all others.
        """
        from ivme.definitions.installing import install_view

        definitions = self._definitions
        while True:
            definitions.check_open()
            name = self.unused_name()
            key = self._key(name, query if isinstance(query, str) else asked)
            planned, relations, called = self._planned(key, name, query)
            make_clock(definitions, planned.sources)
            with definitions.runtime.lock:
                is_free = name == self.unused_name()
                if is_free and definitions.are_current(planned.sources, relations) and definitions.are_defined(called):
                    with definitions.change():
                        answer = read(install_view(definitions.runtime, planned))
                        definitions.forget_view(name)
                    reclaim(definitions.catalog)
                    return answer
                self._plans.pop(key, None)

    def _key(self, name: str, asked: Hashable) -> Hashable:
        """What a plan depends on: what is asked and declared, and how large tables are; None if it is not cached."""
        if asked is None:
            return None
        definitions, size = self._definitions, self._definitions.runtime.backend.size
        with definitions.runtime.lock:
            sizes = [size(state.rows).bit_length() // _GROWTH_BITS for state in definitions.catalog.tables.values()]
            return name, asked, tuple(definitions.relations()), tuple(definitions.functions.defined), tuple(sizes)

    def _planned(self, key: Hashable, name: str, query: str | ReadSelect) -> Planned:
        definitions = self._definitions
        if key is None:
            return definitions.planned(name, query, {})
        with definitions.runtime.lock:
            found = self._plans.pop(key, None)
        planned = found or definitions.planned(name, query, {})
        with definitions.runtime.lock:
            self._plans[key] = planned
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return planned

    def unused_name(self) -> str:
        """A name that no relation has, nor any of their blocks."""
        definitions = self._definitions
        taken = {view_of_block(each).lower() for each in definitions.catalog.views}
        named = (*definitions.catalog.tables, *definitions.catalog.views, *definitions.views, *definitions.broken)
        taken |= {each.lower() for each in named}
        return next(name for name in chain(["query"], map("query {}".format, count(2))) if name not in taken)
