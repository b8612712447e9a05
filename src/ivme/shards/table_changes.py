"""Changes of a table that depend on what is in it, over shards: upsert, update and delete by a condition, replace.

Each shard turns them into rows that go and rows that come, for its own rows of the table and what the batch did to
those before. Only these rows pass through the driver, which sends them to where they belong: a row with another key may
belong to another shard. What travels is data: expressions by a codec that knows their classes, and rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_schema
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.engine.ingest.row_check import keyed_rows
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime import table_statement
from ivme.engine.runtime.table_change import DeleteKeys, DeleteWhere, Replace, TableChange, Update, Upsert
from ivme.errors import SchemaError
from ivme.plan.ir.codec import Codec
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.model import Table
from ivme.shards.catalog import ShardCatalog
from ivme.shards.distribute import place_in_table, with_weights
from ivme.shards.merge import WEIGHT
from ivme.shards.message import Message, Question

_CODEC = Codec([ColumnRef, Literal, Call])

Ask = Callable[[Sequence[Question]], list[Message]]


@dataclass(frozen=True, slots=True)
class GivenChange:
    """A change as shards are told of it: `rows` come with it, `written` are its condition and new values."""

    kind: str
    rows: pa.Table | None = None
    written: str = ""
    strict: bool = True

    @property
    def is_of_keys(self) -> bool:
        """Whether only rows with the keys of its own rows change."""
        return self.kind in ("upsert", "delete_keys")

    def head(self) -> dict[str, Any]:
        return {"kind": self.kind, "written": self.written, "strict": self.strict}


def upsert(table: Table, rows: Any, *, round_floats: bool) -> GivenChange:
    """Rows in place of those with the same primary keys."""
    if not table.key_positions:
        raise SchemaError(
            f"table {table.name} has no primary key to upsert by; declare one, as in "
            f"create_table({table.name!r}, ..., primary_key={table.column_names[0]!r}), or use insert"
        )
    return GivenChange("upsert", to_arrow(rows, table, round_floats=round_floats))


def replace(table: Table, rows: Any, *, round_floats: bool) -> GivenChange:
    """Rows in place of all that there are."""
    return GivenChange("replace", to_arrow(rows, table, round_floats=round_floats))


def delete_keys(table: Table, keys: Any, *, strict: bool) -> GivenChange:
    """Without the rows of some primary keys."""
    if not table.key_positions:
        raise SchemaError(f"table {table.name} has no primary key to delete by; declare one, or give rows")
    rows = to_arrow(keyed_rows(table, keys), table.without_defaults())
    return GivenChange("delete_keys", rows, strict=strict)


def delete_where(table: Table, where: str, parameters: Mapping[str, Any]) -> GivenChange:
    """Without the rows for which a condition holds."""
    return GivenChange("delete", written=_written(table_statement.delete_where(table, where, parameters).where))


def truncate() -> GivenChange:
    """Without any row."""
    return GivenChange("delete", written=_written(None))


def update(
    table: Table, values: Mapping[str, Any], where: str | None, parameters: Mapping[str, Any], *, round_floats: bool
) -> GivenChange:
    """Other values in the rows for which a condition holds."""
    made = table_statement.update(table, values, where, parameters, round_floats=round_floats)
    return GivenChange("update", written=_written(made.where, made.values))


def _written(where: Expression | None, values: Mapping[int, Expression] | None = None) -> str:
    return _CODEC.write((where, tuple((values or {}).items())))


# In a shard


def read_change(head: Mapping[str, Any], rows: pa.Table, layout: Layout) -> TableChange:
    """The change that a shard is told of; `rows` are those that come with it for this shard."""
    kind = head["kind"]
    if kind in ("update", "delete"):
        where, values = _read(head["written"])
        return Update(where, dict(values)) if kind == "update" else DeleteWhere(where)
    given = row_batch(rows, layout)
    if kind == "delete_keys":
        return DeleteKeys(given, head["strict"])
    return Upsert(given) if kind == "upsert" else Replace(given)


def row_batch(rows: pa.Table, layout: Layout) -> RowBatch:
    """Rows with weights as engines take them."""
    return RowBatch(layout, rows.column(WEIGHT).to_numpy(), rows.drop_columns([WEIGHT]))


def _read(written: str) -> tuple[Expression | None, tuple[tuple[int, Expression], ...]]:
    found: tuple[Any, Any] = _CODEC.read(written)
    return found


# At the driver


def resolved(
    catalog: ShardCatalog, shards: int, table: Table, changes: Iterable[pa.Table | GivenChange], ask: Ask
) -> pa.Table:
    """The rows of all changes of a table, with their weights: a change sees what those before it do.

    A question to each shard for each change; to those of its keys alone, for a change of keys.
    """
    nothing = with_weights(arrow_schema(table).empty_table(), np.zeros(0, np.int64))
    done: list[pa.Table] = []
    for change in changes:
        if isinstance(change, pa.Table):
            done.append(change)
            continue
        asked = list(_questions(catalog, shards, table, change, pa.concat_tables([nothing, *done])))
        done += [answer.tables[0] for answer in ask(asked)]
    return pa.concat_tables(done) if done else nothing


def _questions(
    catalog: ShardCatalog, shards: int, table: Table, change: GivenChange, before: pa.Table
) -> Iterable[Question]:
    nothing = before.slice(0, 0)
    rows = nothing if change.rows is None else with_weights(change.rows, np.ones(change.rows.num_rows, np.int64))
    own, done = (_by_shard(catalog, shards, table, each) for each in (rows, before))
    for shard in own if change.is_of_keys else range(shards):
        tables = (own.get(shard, nothing), done.get(shard, nothing))
        yield Question(shard, {"op": "change", "table": table.name, **change.head()}, tables)


def _by_shard(catalog: ShardCatalog, shards: int, table: Table, rows: pa.Table) -> dict[int, pa.Table]:
    """Rows with weights, by the shards that have them in the table."""
    placed = place_in_table(shards, table, rows, catalog.spread_columns(table))
    return {shard: part.rows for shard, part in placed}
