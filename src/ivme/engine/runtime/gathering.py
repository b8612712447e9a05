"""MIN, MAX, COUNT DISTINCT and the like of requests that are evaluated when they come.

No index holds the values of their groups. For each such variable a reader of its own finds them, as rows over the
outputs and the variable, and here they become what an index would have told of each group: the extremes of a block.
O(n log n) for n values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ivme.engine.backend import Backend, Block, Codes
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domain import Domain
from ivme.plan.ir.program import Branch, Enumeration, Gathering, is_listed


def values_reader(reader: str, variable: str) -> str:
    """The name of the reader of a variable's values, which no view has."""
    return f"{reader}\0{variable}"


def _values(enumeration: Enumeration, gathering: Gathering) -> Enumeration:
    found = Branch((), (), gathering.probe, (), gathering.answer)
    outputs = (*enumeration.outputs, gathering.variable)
    return Enumeration(enumeration.inputs, outputs, (), (), (), branches=(found,))


def probed(gathered: Sequence[Gathering]) -> tuple[Gathering, ...]:
    """What is gathered for rows whose outputs are given."""
    return tuple(replace(each, answer=each.probe) for each in gathered)


@dataclass(frozen=True, slots=True)
class GatheredValues:
    """Completes the blocks of one reader by what its requests gather; `domains` are those of the variables."""

    backend: Backend
    reader: str
    enumeration: Enumeration
    domains: Mapping[str, Domain]

    @property
    def readers(self) -> dict[str, Enumeration]:
        """The readers of the values."""
        whole = self.enumeration
        return {values_reader(self.reader, each.variable): _values(whole, each) for each in whole.gathered}

    def completed(self, columns: Sequence[Codes], numbers: Codes, block: Block) -> Block:
        """The block with its extremes; `columns` are the requests, and `numbers` those of its rows."""
        extremes: list[Codes] = []
        words: list[Codes] = []
        place = np.lexsort([numbers, *block[0]])
        for each in self.enumeration.gathered:
            found = self._groups(columns, each.variable)
            assert len(found.starts) == len(place), "each row has values, if only NULL"
            for function in each.functions:
                column = np.empty(len(place), np.int64)
                column[place] = found.read(function, words) if len(place) else ()
                extremes.append(column)
        listed = any(is_listed(function) for function, _ in self.enumeration.ordered)
        return *block[:3], [*extremes, *([_joined(words)] if listed else ())]

    def _groups(self, columns: Sequence[Codes], variable: str) -> _Groups:
        numbers, (found, counts, _, _) = self.backend.request_many(values_reader(self.reader, variable), columns)
        *outputs, codes = found
        order = np.lexsort([_ranks(codes, self.domains[variable]), numbers, *outputs])
        keys = [numbers[order], *(column[order] for column in outputs)]
        begins = np.ones(len(order), bool)
        begins[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
        return _Groups(np.flatnonzero(begins), codes[order], counts[order])


@dataclass(frozen=True, slots=True)
class _Groups:
    """The values of groups one after the other, NULL first, then ascending; `starts` are where groups begin."""

    starts: Codes
    codes: Codes
    counts: Codes

    def read(self, function: str, words: list[Codes]) -> Codes:
        """What an index tells of each group; all values of a group are a place in the words, which are added there."""
        sizes = np.diff(self.starts, append=len(self.codes))
        last = self.starts + sizes - 1
        if is_listed(function):
            return self._listed(sizes, words)
        nulls = self.codes[self.starts] == NULL_CODE
        if function == "count_distinct":
            found: Codes = sizes - nulls
        else:
            found = self.codes[last if function == "max" else np.minimum(self.starts + nulls, last)]
        return found

    def _listed(self, sizes: Codes, words: list[Codes]) -> Codes:
        """For each group a number of values, then each with its count."""
        numbers = np.arange(len(sizes))
        before = numbers + 2 * self.starts
        places = 1 + 2 * np.arange(len(self.codes)) + np.repeat(numbers, sizes)
        made = np.empty(len(sizes) + 2 * len(self.codes), np.int64)
        made[before], made[places], made[places + 1] = sizes, self.codes, self.counts
        offset = sum(map(len, words))
        words.append(made)
        return before + offset


def _ranks(codes: Codes, domain: Domain) -> Codes:
    """What sorts codes as their values, NULL first."""
    if domain.orders_by_code:
        return codes
    distinct, places = np.unique(codes, return_inverse=True)
    ranks = np.empty(len(distinct), np.int64)
    ranks[sorted(range(len(distinct)), key=lambda i: domain.sort_key(int(distinct[i])))] = np.arange(len(distinct))
    return ranks[places.ravel()]


def _joined(words: list[Codes]) -> Codes:
    return np.concatenate(words) if words else np.empty(0, np.int64)


class GatheredCursor:
    """An answer that was found whole when it was opened, read block by block. A writer reads it to its end before it
    changes anything: nothing else holds the codes that are left."""

    pinned = False

    def __init__(self, block: Block, ordered: int) -> None:
        """So many columns of extremes, `ordered`, have a value a row; behind them may be the values of groups."""
        self._block = block
        self._ordered = ordered
        self._read = 0

    def next_block(self, max_rows: int = 8192) -> Block:
        part = slice(self._read, self._read + max_rows)
        columns, counts, slots, extremes = self._block
        self._read = min(self._read + max_rows, len(counts))
        cut = [each[part] for each in extremes[: self._ordered]]
        own = [column[part] for column in columns], counts[part], [slot[part] for slot in slots]
        return *own, [*cut, *extremes[self._ordered :]]
