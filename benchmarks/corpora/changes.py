"""What happens to the tables: a load, 1 % of inserts, deletes and updates, batches of 1,000, emptied, filled again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SMALL = 200
"""A table of so many rows is loaded whole and changes only when all are emptied."""

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: what each table loses and what it gains."""

    name: str
    deleted: Tables
    inserted: Tables

    @property
    def size(self) -> int:
        return sum(table.num_rows for part in (self.deleted, self.inserted) for table in part.values())


class Contents:
    """The tables as they are now, and the rows that have not come yet."""

    def __init__(self, tables: Mapping[str, pa.Table], seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.now = {name: table.slice(0, 0) for name, table in tables.items()}
        shuffled = {name: table.take(self.random.permutation(table.num_rows)) for name, table in tables.items()}
        held = {name: table.num_rows // 20 if table.num_rows > SMALL else 0 for name, table in tables.items()}
        self._later = {name: table.slice(0, held[name]) for name, table in shuffled.items()}
        self._first = {name: table.slice(held[name]) for name, table in shuffled.items()}

    def keep(self, names: set[str]) -> None:
        """Leaves all other tables out of what follows."""
        for part in (self.now, self._later, self._first):
            for name in set(part) - names:
                del part[name]

    def load(self) -> Batch:
        return self._insert("load", self._first)

    def unchanged(self) -> Batch:
        """Nothing: the view has been built over what was loaded."""
        return Batch("load", {}, {})

    def inserts(self) -> Batch:
        return self._insert("inserts", {name: self._next(name, _share(table)) for name, table in self.now.items()})

    def deletes(self) -> Batch:
        return Batch("deletes", {name: self._taken(name, _share(table)) for name, table in self.now.items()}, {})

    def updates(self) -> Batch:
        """Rows that get each other's values in one column: the last one, in the order of the table."""
        old = {name: self._taken(name, _share(table)) for name, table in self.now.items()}
        return self._insert("updates", {name: self._exchanged(table) for name, table in old.items()}, old)

    def mixed(self, size: int = 1000) -> Batch:
        """As many inserts as deletes, `size` in all, spread over the tables by how large they are."""
        total = sum(table.num_rows for table in self.now.values()) or 1
        parts = {name: round(size / 2 * t.num_rows / total) for name, t in self.now.items() if t.num_rows > SMALL}
        old = {name: self._taken(name, count) for name, count in parts.items()}
        return self._insert("mixed", {name: self._next(name, count) for name, count in parts.items()}, old)

    def emptied(self) -> Batch:
        return Batch("emptied", {name: self._taken(name, table.num_rows) for name, table in self.now.items()}, {})

    def refilled(self) -> Batch:
        return self._insert("refilled", self._first)

    def _insert(self, name: str, rows: Tables, deleted: Tables | None = None) -> Batch:
        for table, new in rows.items():
            self.now[table] = pa.concat_tables([self.now[table], new]).combine_chunks()
        return Batch(name, deleted or {}, rows)

    def _taken(self, name: str, count: int) -> pa.Table:
        """Random rows, which are taken out of the table."""
        table = self.now[name]
        chosen = np.zeros(table.num_rows, dtype=bool)
        chosen[self.random.choice(table.num_rows, min(count, table.num_rows), replace=False)] = True
        self.now[name] = table.filter(pa.array(~chosen))
        return table.filter(pa.array(chosen))

    def _next(self, name: str, count: int) -> pa.Table:
        """Rows that have not come yet; those that came first again, where none are left."""
        later = self._later[name]
        self._later[name] = pa.concat_tables([later.slice(count), later.slice(0, count)]).combine_chunks()
        return later.slice(0, count)

    def _exchanged(self, table: pa.Table) -> pa.Table:
        last = table.num_columns - 1
        column = table.column(last).take(self.random.permutation(table.num_rows))
        return table.set_column(last, table.schema.field(last), column)


def _share(table: pa.Table) -> int:
    """1 % of the rows of a table; none of a small one, whose few rows (one store, one warehouse) others refer to."""
    return int(table.num_rows) // 100 if table.num_rows > SMALL else 0
