"""The kernel's part of a transaction: the triggers of tables and of views that are made of maps."""

from __future__ import annotations

from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.single_row import Emitted
from ivme.engine.runtime.view_state import TableState
from ivme.errors import DataError


class CountError(DataError):
    """A count that does not fit, in the batch's last state or in one on the way to it."""


class Triggers:
    """Runs the triggers of relations in one transaction of the kernel, and collects what views emit.

    Heavy and light parts are rolled back to what they were when it was made, which is before the transaction.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.emitted: Emitted = {}
        self._catalog = catalog
        self._backend = catalog.backend
        catalog.complete_triggers()
        self._rebalanced = catalog.rebalanced()
        for group in self._rebalanced:
            group.begin()

    def begin(self) -> None:
        self._backend.begin()

    def apply(self, relation: str, rows: RowBatch) -> None:
        """Runs the triggers of a relation."""
        groups = {group.trigger(relation): group for group in self._rebalanced if group.reads(relation)}
        for trigger, columns in self._catalog.inputs(relation).of(rows):
            try:
                if trigger in groups:
                    deltas = groups[trigger].run(relation, columns, rows.weights)
                else:
                    deltas = self._backend.run(trigger, {relation: (columns, rows.weights)})
            except self._backend.broken_check as error:
                raise _broken(self._catalog.tables[relation], error) from None
            except self._backend.overflow as error:
                raise CountError(
                    f"{self._counted(relation, trigger)} does not fit 64 bits; nothing was changed"
                ) from error
            for delta in deltas:
                self.emitted.setdefault(delta.view, []).append(delta)

    def prepare(self) -> None:
        self._catalog.check_sums()

    def commit(self) -> None:
        self._backend.commit()

    def roll_back(self) -> None:
        self._backend.roll_back()
        for group in self._rebalanced:
            group.roll_back()

    def _counted(self, relation: str, trigger: str) -> str:
        """What a trigger counts, for a message."""
        state = self._catalog.tables.get(relation)
        own = state is not None and trigger == state.rows
        return f"a multiplicity in table {relation}" if own else f"a count of a view over {relation}"


def _broken(state: TableState, error: Exception) -> DataError:
    """The error for a row that is deleted and not there, or for two rows of one primary key."""
    codes = error.args[1]
    table = state.table
    if len(codes) == len(state.domains):
        row = tuple(domain.decode_value(code) for domain, code in zip(state.domains, codes, strict=True))
        if "unique" not in str(error.args[0]):
            return DataError(
                f"cannot delete {row!r} from table {table.name}: it is not there, or not that many times; nothing "
                "was changed (strict=False ignores deletes of missing rows)"
            )
    domains = [state.domains[position] for position in table.key_positions]
    values = tuple(domain.decode_value(code) for domain, code in zip(domains, codes, strict=True))
    return DataError(f"two rows of table {table.name} would have the primary key {values!r}; nothing was changed")
