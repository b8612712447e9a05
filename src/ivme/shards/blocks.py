"""A view as fragments of its text, which feed each other: each is spread as it likes.

A view whose blocks have a key in common is spread by that (`common_key`), and no rows go from shard to shard. Without
one it is cut between blocks. Blocks beneath the cut that have a key in common are a fragment, which is spread by it; a
block that joins or groups is spread by itself, as a view of one block is; and what neither holds for is in one shard,
while all that feeds it is spread. What changes in a fragment is sent to the shards where the next one wants it. One row
(an aggregate of everything) and the first rows in an order go to all shards that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ivme.query.block_names import block_name
from ivme.query.model import Query, Table
from ivme.query.names import CLOCK
from ivme.query.pairing import Pairing
from ivme.query.sql_script import SqlScript, named_relations, read_script
from ivme.query.union import Union
from ivme.shards.catalog import ShardCatalog, ViewEntry
from ivme.shards.exchange import can_feed
from ivme.shards.fragments import block_table, is_first_rows, reads_of
from ivme.shards.functions import defined
from ivme.shards.planning import Degrees, Planned, key_of, plan_view, views_read
from ivme.shards.sharding import shareable, whole_aggregates
from ivme.shards.view_query import parse_view, view_as_table


def planned_views(
    entry: ViewEntry, catalog: Callable[[], ShardCatalog], degrees: Degrees, *, whole_rows: bool
) -> Iterator[Planned]:
    """A view with its routing, or its fragments: each is to be in the catalog before the next one is asked for."""
    planned = plan_view(entry, catalog(), degrees, whole_rows=whole_rows)
    found = [] if planned.entry.routing.variables else fragments_of(entry, catalog(), whole_rows=whole_rows)
    if not found:
        yield planned
    for fragment, is_whole in found:
        yield plan_view(fragment, catalog(), degrees, whole_rows=is_whole)


def fragments_of(entry: ViewEntry, catalog: ShardCatalog, *, whole_rows: bool) -> list[tuple[ViewEntry, bool]]:
    """The fragments of a view that no key spreads, and whether each is to have whole rows; the last is the view.

    Empty if nothing is gained by them, or one reads a closure, the clock, or a view that cannot feed it, or has values
    of a parameter to look up.
    """
    views = views_read(entry, catalog)
    if entry.options or entry.routing.shards < 2 or not all(can_feed(view, catalog) for view in views):
        return []
    named = named_relations(entry.text, defined(entry.functions))
    if any(view.name.lower() in named and view not in views for view in catalog.views):
        return []  # a name of a WITH, or in one that nothing reads
    above = tuple(view_as_table(view, catalog.tables) for view in views)
    script = read_script(entry.text, (*catalog.tables, *above), defined(entry.functions))
    if len(script) == 1:
        return []
    cover = _Cover(entry, catalog.tables, above, script, whole_rows=whole_rows)
    if not cover.can_be_cut:
        return []
    found = cover.of_view()
    taken = {table.name.lower() for table in catalog.tables} | {view.name.lower() for view in catalog.views}
    is_taken = taken & {each.name.lower() for each, _ in found[:-1]}
    return [] if is_taken or len(found) == 1 else found


@dataclass(slots=True)
class _Cover:
    """The blocks of a view, and the fragments that have been chosen so far, by their last block."""

    entry: ViewEntry
    tables: tuple[Table, ...]
    above: tuple[Table, ...]
    script: SqlScript
    whole_rows: bool
    blocks: list[Query | Union | Pairing | None] = field(default_factory=list)
    """None stands for an order."""
    as_tables: list[Table] = field(default_factory=list)
    found: dict[int, tuple[ViewEntry, bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names: dict[str, str] = {}
        for number, (block, _) in enumerate(self.script.selects):
            name = block_name(self.entry.name, number + 1)
            known = (*self.tables, *self.above, *self.as_tables)
            is_order = block in self.script.ordered
            self.blocks.append(None if is_order else self.script.block(number, known, names, name))
            self.as_tables.append(block_table(self.script, number, known, names, name))
            names[block] = name

    @property
    def can_be_cut(self) -> bool:
        """Not where a request for a value that occurs nowhere is one for NULL: only one engine knows all values."""
        queries = [block for block in self.blocks if isinstance(block, Query)]
        is_timed = any(table.name == CLOCK for block in self.blocks if block is not None for table in block.tables)
        return not is_timed and not self._looks_up and not any(query.has_closures for query in queries)

    @property
    def _looks_up(self) -> bool:
        """Whether values of parameters are looked up in a block of all values that they are compared with."""
        last, names = self.blocks[-1], {block: block for block, _ in self.script.selects}
        return isinstance(last, Query) and any(self.script.known(last, names))

    def of_view(self) -> list[tuple[ViewEntry, bool]]:
        last = len(self.script) - 1
        self._cover(last)
        return list(self.found.values())

    def _cover(self, number: int) -> None:
        """Chooses the fragment that ends with a block, after those that feed it."""
        if number in self.found:
            return
        chosen = self._chosen(number)
        for fed in self._outside(chosen.members or (number,)):
            self._cover(fed)
        self.found[number] = chosen, self._is_whole(number)

    def _chosen(self, number: int) -> ViewEntry:
        for members in self._candidates(number):
            made = self._fragment(number, members)
            if self._has_key(made, number):
                return made
        block = self.blocks[number]
        if self._passes_on(number):
            (read,) = reads_of(self.script, number)
            beneath = self._chosen(read)
            if beneath.members and not self._has_key(beneath, read):
                return self._fragment(number, (*beneath.members, number))
        if isinstance(block, Query) and self._is_spread_alone(number, block):
            return self._fragment(number, ())
        alone = self._fragment(number, tuple(sorted(self._beneath(number, lambda each: not self._is_copy(each)))))
        if isinstance(block, Pairing) and block.left.relation != block.right.relation:
            copied = replace(alone, everywhere=tuple({*alone.everywhere, block.right.relation}))
            return copied if self._has_key(copied, number) else alone
        return alone

    def _candidates(self, number: int) -> Iterator[tuple[int, ...]]:
        """Sets of blocks to compute together, the largest first."""
        tried: set[tuple[int, ...]] = set()
        stops: tuple[Callable[[int], bool], ...] = (
            lambda _: False,
            self._is_few,
            lambda each: self._is_few(each) or isinstance(self.blocks[each], Query),
            lambda _: True,
        )
        for stop in stops:
            members = tuple(sorted(self._beneath(number, stop)))
            is_alone = len(members) == 1 and isinstance(self.blocks[number], Query) and not self._is_ordered(number)
            if members not in tried and not is_alone:
                tried.add(members)
                yield members

    def _beneath(self, number: int, stop: Callable[[int], bool]) -> set[int]:
        found, waiting = {number}, [number]
        while waiting:
            for read in reads_of(self.script, waiting.pop()):
                if read not in found and (self._is_constant(read) or not stop(read)):
                    found.add(read)
                    waiting.append(read)
        return found

    def _outside(self, members: tuple[int, ...]) -> list[int]:
        """The blocks that some read and are not among them."""
        return sorted({read for each in members for read in reads_of(self.script, each)} - set(members))

    def _passes_on(self, number: int) -> bool:
        """Whether a block shows rows of another one, and nothing else."""
        return self._is_copy(number) and len(reads_of(self.script, number)) == 1

    def _is_copy(self, number: int) -> bool:
        """Whether a block shows rows of one relation: beneath, or on, what is in one shard it is there, too."""
        block = self.blocks[number]
        is_one = isinstance(block, Query) and len(block.atoms) == 1 and not block.input
        return is_one and isinstance(block, Query) and not block.aggregates and not block.distinct

    def _is_constant(self, number: int) -> bool:
        """Whether a block reads no table; such blocks are in the fragments that read them."""
        block, read = self.blocks[number], reads_of(self.script, number)
        tables = () if block is None else block.tables
        return len(tables) <= len(read) and all(map(self._is_constant, read))

    def _fragment(self, number: int, members: tuple[int, ...]) -> ViewEntry:
        """The entry of a fragment; without members it is one block, as a view of one block is."""
        is_last = number == len(self.script) - 1
        fed = self._outside(members or (number,))
        return replace(
            self.entry,
            name=self.entry.name if is_last else block_name(self.entry.name, number + 1),
            feeds=(*self.above, *(self.as_tables[each] for each in fed)),
            block=number,
            part_of="" if is_last else self.entry.name,
            members=members,
            everywhere=tuple(self.as_tables[each].name for each in fed if self._is_few(each)) if members else (),
        )

    def _has_key(self, fragment: ViewEntry, number: int) -> bool:
        query = parse_view(fragment, self.tables)
        return key_of(fragment, query, self.tables, whole_rows=self._is_whole(number)) is not None

    def _is_whole(self, number: int) -> bool:
        is_part = number < len(self.script) - 1
        return (is_part and not self._is_few(number)) or (not is_part and self.whole_rows)

    def _is_few(self, number: int) -> bool:
        """Whether a block is one row for all, or the first rows in an order."""
        block = self.blocks[number]
        if isinstance(block, Query):
            return bool(block.aggregates) and not block.free
        return block is None and is_first_rows(self.script.ordered[self.script.selects[number][0]].order)

    def _is_ordered(self, number: int) -> bool:
        return number == len(self.script) - 1 and self.script.order is not None

    def _is_spread_alone(self, number: int, block: Query) -> bool:
        """Whether a block can be spread as a view of one block is."""
        if self._is_ordered(number) or (not block.free and (not block.aggregates or whole_aggregates(block))):
            return False
        if any(map(self._is_constant, reads_of(self.script, number))):
            return False
        return bool(shareable(block, whole=self._is_whole(number)))
