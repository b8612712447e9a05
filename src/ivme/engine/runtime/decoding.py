"""From blocks of codes to rows: a view's columns decoded, aggregates finished, in the columns' types.

Large blocks go through Arrow, column by column; small ones through Python values, which is quicker for the few rows
of an access request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.backend import Block, Codes, Listed, exact_sums, listed
from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.codes.domains import Domain, Domains
from ivme.engine.codes.nested_values import arrow_array, python_values
from ivme.engine.runtime.finishing import NativeValue, finished, native_value
from ivme.engine.runtime.group_values import listed_values
from ivme.plan.ir.program import Enumeration, is_listed
from ivme.query.aggregates import reads_exactly, slots_of
from ivme.query.block_names import view_of_block
from ivme.query.inference import argument_type
from ivme.query.model import Aggregate, HeadColumn
from ivme.query.typed import TypedQuery
from ivme.query.types import Type

Row = tuple[Any, ...]


class RowDecoder:
    """Turns the kernel's blocks for one view into rows."""

    def __init__(self, typed: TypedQuery, enumeration: Enumeration, domains: Domains) -> None:
        self._typed = typed
        query = typed.query
        self._outputs = {variable: i for i, variable in enumerate(enumeration.outputs)}
        self._slots = {slot: i for i, slot in enumerate(enumeration.slots)}
        self._exact = reads_exactly(enumeration.slots)
        self._extremes = {read: i for i, read in enumerate(enumeration.ordered)}
        """The place of each extreme in a block; of all values of a group, that of where they begin in the last one."""
        self._domains = {variable: domains.domain(type_) for variable, type_ in typed.types.items()}
        self._heads = query.head
        self._all = range(len(query.head))
        self._shown = [domains.domain(type_) for type_ in typed.head]
        self._columns = [self._column(c, t) for c, t in zip(query.head, typed.head, strict=True)]
        self.schema = pa.schema([pa.field(c.name, arrow_type(t)) for c, t in zip(query.head, typed.head, strict=True)])
        self.floats = [
            i for i, c in enumerate(query.head) if isinstance(c.source, Aggregate) and typed.head[i].kind == "float"
        ]
        """The columns that may have what no table takes: a sum or an average that is not a number."""
        self._once = query.distinct or bool(query.aggregates)

    def domain(self, variable: str) -> Domain:
        return self._domains[variable]

    def rows(self, block: Block, inputs: Mapping[str, Any]) -> Iterator[tuple[Row, int]]:
        """The rows of a block with their multiplicities; `inputs` are the values of the request's variables."""
        lists_of_block = listed(block)
        counts = lists_of_block[1]
        lists = [column(lists_of_block, inputs, len(counts)) for column in self._columns]
        rows = zip(*lists, strict=True) if lists else iter([()] * len(counts))
        return zip(rows, [1] * len(counts) if self._once else counts, strict=True)

    def few(self, block: Listed, inputs: Mapping[str, Any]) -> list[Row]:
        """The rows of a small block, each repeated by its multiplicity."""
        counts = block[1]
        lists = [column(block, inputs, len(counts)) for column in self._columns]
        rows = list(zip(*lists, strict=True)) if lists else [()] * len(counts)
        if self._once or counts.count(1) == len(counts):
            return rows
        return [row for row, count in zip(rows, counts, strict=True) for _ in range(count)]

    def batch(self, block: Block, inputs: Mapping[str, Any]) -> tuple[pa.RecordBatch, np.ndarray[Any, Any]]:
        """A block as Arrow columns, and the multiplicities of its rows; inputs may be arrays with a value a row."""
        arrays = [self._array(number, block, inputs) for number in self._all]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), self.multiplicities(block)

    def multiplicities(self, block: Block) -> Codes:
        """How often the rows of a block are there."""
        return np.ones(len(block[1]), np.int64) if self._once else block[1]

    def _column(self, column: HeadColumn, type_: Type) -> Callable[[Listed, Mapping[str, Any], int], list[Any]]:
        """A function from a block to the Python values of one column."""
        source, where = column.source, self._place(column)
        if isinstance(source, str):
            if source not in self._outputs:
                return lambda _block, inputs, n: [inputs[source]] * n
            position, values = self._outputs[source], self._domains[source].values
            return lambda block, _inputs, _n: values(block[0][position])
        return lambda block, inputs, _n: self._aggregate(source, type_, block, inputs, where)

    def _place(self, column: HeadColumn) -> str:
        """How a message names a column; one of a block by the view that it belongs to."""
        name = self._typed.query.name
        owner = view_of_block(name)
        return f"a column of view {owner}" if owner else f"column {column.name} of view {name}"

    def _aggregate(
        self, aggregate: Aggregate, type_: Type, block: Listed, inputs: Mapping[str, Any], where: str
    ) -> list[Any]:
        counts = block[1]
        variable = aggregate.variable
        if variable is None:
            return list(counts)
        if aggregate.definition.is_ordered:
            return self._ordered(aggregate, variable, type_, block, inputs, where)
        present, *sums = self._totals(aggregate, block)
        finish, summed = aggregate.definition.finish, argument_type(aggregate, self._typed.types)
        if finish is None:
            return list(present)
        columns = [exact_sums(each) for each in sums] if self._exact else sums
        rows = zip(present, *columns, strict=True)
        return [finish(n, totals, summed, type_, where) if n else None for n, *totals in rows]

    def _totals(self, aggregate: Aggregate, block: Listed | Block) -> list[Any]:
        """The slots of an aggregate, how many values are not NULL first."""
        return [block[2][self._slots[slot]] for slot in slots_of(aggregate)]

    def _ordered(
        self, aggregate: Aggregate, variable: str, type_: Type, block: Listed, inputs: Mapping[str, Any], where: str
    ) -> list[Any]:
        reads, fold = aggregate.reads, aggregate.definition.fold
        if (reads, variable) not in self._extremes:
            values = self._free(variable, block, inputs)
            if reads == "count_distinct":
                return [int(value is not None) for value in values]
            groups = [[] if value is None else [(value, n)] for value, n in zip(values, block[1], strict=True)]
        elif is_listed(reads):
            groups = listed_values(block, self._extremes[reads, variable], self._domains[variable])
        else:
            codes = block[3][self._extremes[reads, variable]]
            if reads == "count_distinct":
                return codes
            groups = [[] if v is None else [(v, 1)] for v in self._domains[variable].values(codes)]
        if fold is None:
            return [group[0][0] if group else None for group in groups]
        summed = self._typed.types[variable]
        nothing = aggregate.definition.over_nothing
        return [fold(group, aggregate.options, summed, type_, where) if group else nothing for group in groups]

    def _free(self, variable: str, block: Listed, inputs: Mapping[str, Any]) -> list[Any]:
        """The values of a free variable, one for each row."""
        if variable in self._outputs:
            return self._domains[variable].values(block[0][self._outputs[variable]])
        given = inputs[variable]
        return python_values(given) if isinstance(given, pa.Array) else [given] * len(block[1])

    def codes(self, block: Block, columns: Sequence[int] | None = None) -> list[Codes]:
        """Columns of a block's rows as codes, all or those of these numbers; for a view without parameters."""
        return [self._codes(number, block) for number in (self._all if columns is None else columns)]

    def _codes(self, number: int, block: Block) -> Codes:
        source = self._heads[number].source
        if isinstance(source, str):
            return block[0][self._outputs[source]]
        found = self._aggregate_codes(source, self._shown[number].type, block)
        if found is not None:
            return found
        code = self._shown[number].code_computed
        return np.array(list(map(code, self._columns[number](listed(block), {}, len(block[1])))), np.int64)

    def _aggregate_codes(self, source: Aggregate, type_: Type, block: Block) -> Codes | None:
        """The codes of an aggregate, found without a Python object for each value; None if they cannot be."""
        variable, reads = source.variable, source.reads
        if variable is None:
            return block[1]
        if source.definition.fold is not None:
            return None
        if (reads, variable) in self._extremes:
            return block[3][self._extremes[reads, variable]]
        if source.definition.is_ordered:
            if variable not in self._outputs:
                return None
            codes = block[0][self._outputs[variable]]
            return (codes != NULL_CODE).astype(np.int64) if reads == "count_distinct" else codes
        present, *sums = self._totals(source, block)
        return finished(
            source.definition,
            sums,
            present.astype(np.int64, copy=False),
            argument_type(source, self._typed.types),
            type_,
        )

    def native_values(self, columns: Sequence[int], slots: Sequence[str]) -> list[NativeValue] | None:
        """How the kernel finishes aggregates of a view without parameters; None if it does not finish them all.

        The slots are the kinds of the sums in a payload.
        """
        found = [self._native_value(number, slots) for number in columns]
        return None if self._exact or None in found else [value for value in found if value is not None]

    def _native_value(self, number: int, slots: Sequence[str]) -> NativeValue | None:
        source = self._heads[number].source
        assert isinstance(source, Aggregate)
        variable, reads = source.variable, source.reads
        if variable is None:
            return "c", 0, 0, 0, 0, 0
        if source.definition.fold is not None or is_listed(reads):
            return None
        if (reads, variable) in self._extremes:
            return "x", self._extremes[reads, variable], 0, 0, 0, 0
        if source.definition.is_ordered:
            return None
        present, *sums = [self._slots[slot] for slot in slots_of(source)]
        summed, type_ = argument_type(source, self._typed.types), self._shown[number].type
        return native_value(source.definition, present, sums, slots, summed, type_)

    def _array(self, number: int, block: Block, inputs: Mapping[str, Any]) -> pa.Array:
        source, domain = self._heads[number].source, self._shown[number]
        if isinstance(source, str):
            return self._variable(source, block, inputs)
        codes = self._aggregate_codes(source, domain.type, block)
        if codes is not None:
            return domain.decode(codes)
        return arrow_array(self._columns[number](listed(block), inputs, len(block[1])), domain.type)

    def _variable(self, variable: str, block: Block, inputs: Mapping[str, Any]) -> pa.Array:
        """The values of an output, or of an input: one for all rows, or an array with one for each."""
        if variable in self._outputs:
            return self._domains[variable].decode(block[0][self._outputs[variable]])
        given = inputs[variable]
        if isinstance(given, pa.Array):
            return given
        return arrow_array([given] * len(block[1]), self._domains[variable].type)

    def nothing_codes(self) -> list[Codes]:
        """The row of a global aggregate over nothing, by its codes."""
        pairs = zip(self._shown, self.nothing(), strict=True)
        return [np.array([NULL_CODE if value is None else domain.code_computed(value)]) for domain, value in pairs]

    def nothing(self) -> Row:
        """The row of a global aggregate over nothing: COUNT 0, ARRAY_AGG the empty array, others NULL."""
        return tuple(
            c.source.definition.over_nothing if isinstance(c.source, Aggregate) else None
            for c in self._typed.query.head
        )


def is_global(columns: Sequence[Any], outputs: Sequence[str]) -> bool:
    """Whether a head is aggregates over everything: one row even over nothing."""
    return bool(columns) and not outputs and all(isinstance(column.source, Aggregate) for column in columns)
