"""The answer of a user's own incremental evaluation system as a view of the database (source 004, section 6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.read.verify import compare_rows
from ivme.views.ies_reasons import Fact, enough_facts, found_facts, nearest_rows
from ivme.views.participating_view import ParticipatingView, weighted

if TYPE_CHECKING:
    from ivme.closure.executor import Executor
    from ivme.closure.ies import IES
    from ivme.engine.ingest.row_batch import RowBatch
    from ivme.engine.read.reasons import Reasons
    from ivme.engine.runtime.reader import Reader
    from ivme.views.base_view import Row


@dataclass(frozen=True, slots=True)
class IesExplanation:
    """How an IES is maintained: by a user's SQL, of whose cost nothing is known."""

    name: str
    inputs: tuple[str, ...]
    auxiliary: tuple[str, ...]
    query_class: str = "incremental evaluation system"
    strategy: str = "ies"
    update: None = None
    delay: None = None

    def __str__(self) -> str:
        beside = f", with the auxiliary tables {', '.join(self.auxiliary)}" if self.auxiliary else ""
        return f"{self.name} is maintained by SQL programs over {', '.join(self.inputs)}{beside}"

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain values that `json.dumps` takes."""
        return asdict(self)

    def _repr_svg_(self) -> str:
        """The answer over what its programs read and keep."""
        from ivme.plan.explain.draw import Box
        from ivme.plan.explain.svg import svg

        inputs = (Box(name, "leaf", True) for name in self.inputs)
        kept = (Box(name, "view", True) for name in self.auxiliary)
        return svg([Box(self.name, "view", True, (*inputs, *kept))], str(self))


class IesView(ParticipatingView):
    """The rows of an IES's answer, maintained by its programs in the same batches as all other views."""

    def __init__(self, ies: IES, make: Callable[[IES], Executor], reader: Reader) -> None:
        super().__init__(reader)
        self._ies = ies
        self._make = make
        self._executor = make(ies)
        self._open = False
        self._before: Counter[Row] = Counter()
        self._after: Counter[Row] = Counter()

    @property
    def name(self) -> str:
        return self._ies.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._ies.answer.column_names

    @property
    def parameters(self) -> tuple[str, ...]:
        """An IES has none."""
        return ()

    @property
    def relations(self) -> tuple[str, ...]:
        """The tables that it reads."""
        return tuple(relation.name for relation in self._ies.inputs)

    def _items(self, parameters: Mapping[str, Any]) -> list[tuple[Row, Any]]:  # noqa: ARG002  there are none
        return list(Counter(self._executor.answer()).items())

    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table, in the types of the answer's columns."""
        fields = [pa.field(name, arrow_type(type_)) for name, type_ in self._ies.answer.columns]
        rows = [dict(zip(self.columns, row, strict=True)) for row in self(**parameters)]
        return pa.Table.from_pylist(rows, schema=pa.schema(fields))

    def table(self, name: str) -> list[Row]:
        """The rows of an auxiliary table, sorted."""
        with self.lock:
            return self._executor.rows(name.lower())

    # About the view

    def explain(self) -> IesExplanation:
        """Which programs maintain it."""
        return IesExplanation(self.name, self.relations, tuple(table.name for table in self._ies.auxiliary))

    def stats(self) -> dict[str, Any]:
        """The numbers of rows of the answer and of the auxiliary tables."""
        self.check_alive()
        sizes = {table.name: len(self.table(table.name)) for table in self._ies.auxiliary}
        return {"strategy": "ies", "tables": {self.name: self.count(), **sizes}}

    def verify(self) -> None:
        """Runs the programs over the tables' rows from the start, which must give the same answer."""
        self.check_alive()
        with self.lock:
            fresh = IesView(self._ies, self._make, self._reader)
            fresh.build({relation: self._reader.all_rows(relation) for relation in self.relations})
            compare_rows(f"view {self.name}", dict(fresh.items()), dict(self.items()))

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """Rows of its tables for which its programs answer the row; or the rows of the answer that are most like it."""
        from ivme.views.view_reasons import told

        if not present:
            answer = [found for found, _ in self._items(parameters)]
            return told(self.name, row, nearest_rows(self.name, self.columns, row, answer), present=False)
        stored = {relation: weighted(self._reader.all_rows(relation)) for relation in self.relations}
        facts = [(relation, each) for relation, rows in stored.items() for each in rows]
        fresh = self._make(self._ies)
        fresh.start()

        def holds(some: list[Fact]) -> bool:
            fresh.begin()
            try:
                for relation, each in some:
                    fresh.change(relation, {each: stored[relation][each]})
                return row in fresh.answer()
            finally:
                fresh.roll_back()

        return told(self.name, row, found_facts(enough_facts(facts, holds), self.relations), present=True)

    # Batches

    def build(self, rows: Mapping[str, RowBatch]) -> None:
        self._executor.start()
        for relation, each in rows.items():
            self.apply(relation, each)
        self.commit()

    def apply(self, relation: str, rows: RowBatch) -> None:
        if not self._open:
            self._open = True
            self._executor.begin()
        self._executor.change(relation, weighted(rows))

    def _follow(self) -> None:
        self._before = self._after = Counter(self._executor.answer())

    def _change(self) -> dict[Row, Any]:
        if not self._open:
            return {}
        before, self._after = self._before, Counter(self._executor.answer())
        after = self._after
        return {row: after[row] - before[row] for row in {**before, **after} if after[row] != before[row]}

    def _commit(self) -> None:
        if self._open:
            self._executor.commit()
            self._before = self._after
            self._open = False

    def _roll_back(self) -> None:
        if self._open:
            self._executor.roll_back()
            self._after = self._before
            self._open = False
