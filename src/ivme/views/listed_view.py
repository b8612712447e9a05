"""A view with lists among its parameters: a request has the rows of all members, as if each had been requested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Never

import numpy as np
import pyarrow as pa

from ivme.engine.codes.nested_values import python_values
from ivme.engine.read.derivations import Wanted
from ivme.engine.read.lists import put_together
from ivme.engine.read.reasons import Finding, Reasons, merged
from ivme.engine.runtime.decoding import is_global
from ivme.engine.runtime.distinct import Weighted, added_up
from ivme.errors import DataError, UnnamedValueError
from ivme.view import View
from ivme.views.base_view import Row
from ivme.views.block_reasons import BlockReasons
from ivme.views.ordered_view import OrderedView
from ivme.views.view_reasons import told


class ListedView(View):
    """The rows of a query with `x IN (:list)`. Inside, it is the view of one member."""

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        return (row for row, count in self._counted(parameters) for _ in range(count))

    def items(self, **parameters: Any) -> Iterator[tuple[Row, int]]:
        """The distinct rows, with their multiplicities; all from one state of the database."""
        return iter(added_up(self._counted(parameters)).items())

    def _counted(self, parameters: Mapping[str, Any]) -> list[tuple[Row, int]]:
        found: list[tuple[Row, int]] = []
        for batch, counts in self.group_batches(parameters):
            columns = [python_values(column) for column in batch.columns]
            rows = zip(*columns, strict=True) if columns else iter([()] * len(counts))
            found += zip(rows, counts.tolist(), strict=True)
        return found

    def few_rows(self, parameters: Mapping[str, Any]) -> list[Row] | None:  # noqa: ARG002  it may have many
        return None

    def group_batches(self, parameters: Mapping[str, Any], most: int | None = None) -> list[Weighted]:
        """The rows of all members; a DataError if there are more than `most`."""
        self.check_readable()
        group = self.state.group
        with self._runtime.lock:
            if isinstance(group, OrderedView):
                inner = ListedView(self._runtime, self._runtime.catalog.views[group.inner])
                return [group.arranged(inner.group_batches(parameters, most), self.schema)]
            parts = [
                part
                for request in self.asked.members(parameters)
                for part in super(ListedView, self).group_batches(request)
            ]
        if most is not None and sum(int(np.maximum(counts, 0).sum()) for _, counts in parts) > most:
            raise DataError(f"view {self.name} has more than {most} rows here")
        query = self.state.typed.query
        whole = is_global(query.head, query.output)
        return put_together(query, parts, self.schema, self.state.finisher.nothing() if whole else None)

    def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities."""
        return sum(int(counts.sum()) for _, counts in self.group_batches(parameters))

    def weighted(self, **parameters: Any) -> list[Weighted]:
        """The rows of an access request as Arrow batches, each with its rows' multiplicities."""
        return self.group_batches(parameters)

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; 0 if there are none."""
        return sum(count for found, count in self.items(**parameters) if found == row)

    def request_many(self, **columns: Any) -> pa.Table:
        """The rows of many access requests; a column of lists has a list for each."""
        requests = self._requests(columns)
        tables = []
        fields = list(self.change_schema)[: len(self.parameters)]
        lists = dict(self.state.typed.query.lists)
        types = [pa.list_(field.type) if field.name in lists else field.type for field in fields]
        for request in requests:
            rows = self.to_arrow(**request)
            given = [pa.array([request[f.name]] * rows.num_rows, t) for f, t in zip(fields, types, strict=True)]
            names = [f":{name}" if name in rows.column_names else name for name in self.parameters]
            tables.append(pa.table([*given, *rows.columns], names=[*names, *rows.column_names]))
        names = [f":{name}" if name in self.columns else name for name in self.parameters]
        front = [pa.field(name, type_) for name, type_ in zip(names, types, strict=True)]
        return pa.concat_tables([pa.schema([*front, *self.schema]).empty_table(), *tables])

    def _requests(self, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = {name: list(values) for name, values in columns.items()}
        if len({len(values) for values in found.values()}) > 1:
            lengths = ", ".join(f"{name}: {len(values)}" for name, values in found.items())
            raise DataError(f"the columns of the requests differ in length: {lengths}")
        rows = [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]
        return [dict(self.asked.complete(row)) for row in rows]

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """What is behind the row for the members of lists that have it; or what each of them lacks."""
        group = self.state.group
        if isinstance(group, OrderedView):
            inner = ListedView(self._runtime, self._runtime.catalog.views[group.inner])
            below = inner.findings(dict(zip(self.columns, row, strict=True)), parameters, present=present)
            beyond = Finding(group.order.text, (), (row,), 0, (Finding(self.name, (), ()),))
            found = (beyond,) if not present and inner.has(self.columns, row, parameters) else below
            return told(self.name, row, found, present=present)
        columns = dict(zip(self.columns, row, strict=True))
        return told(self.name, row, self.findings(columns, parameters, present=present), present=present)

    def has(self, columns: Sequence[str], row: Row, parameters: Mapping[str, Any]) -> bool:
        """Whether a row has these values in some columns."""
        places = [self.columns.index(name) for name in columns]
        return any(tuple(found[place] for place in places) == row for found, _ in self.items(**parameters))

    def findings(
        self, columns: Mapping[str, Any], parameters: Mapping[str, Any], *, present: bool
    ) -> tuple[Finding, ...]:
        """What is behind rows with these values, or missing for one."""
        query, found = self.state.typed.written, list[Finding]()
        sources = {column.name: column.source for column in query.head}
        known = {s: value for name, value in columns.items() if isinstance(s := sources.get(name), str)}
        blocks = BlockReasons(self._runtime.reader)
        for request in self.asked.members(parameters):
            wanted = Wanted({**known, **self.asked.joined(request)})
            found += blocks.joined(query, [wanted], present=present, every=True, called=self.name)
        return merged(each for each in found if each.tuples) if present else tuple(dict.fromkeys(found))
