"""A view over shards, with the methods of `ivme.View`: the process that reads it fetches and merges its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Never

import pyarrow as pa

from ivme.engine.codes.arrow_types import arrow_type
from ivme.engine.codes.nested_values import python_values
from ivme.engine.ingest.rows import to_arrow
from ivme.engine.runtime.distinct import added_up
from ivme.errors import DataError, PlanError, UnknownNameError, UnnamedValueError
from ivme.extras import pandas_frame
from ivme.query.closures import is_closure
from ivme.query.model import Column, Table
from ivme.shards.access import (
    put_many_together,
    put_together,
    questions_for,
    questions_for_many,
    read_request,
    read_requests,
)
from ivme.shards.changes import ShardedChanges
from ivme.shards.entries import view_loads
from ivme.shards.lists import listed, refuse_lists
from ivme.shards.merge import WEIGHT, expanded
from ivme.shards.message import Question
from ivme.shards.planning import explain_view
from ivme.shards.sharding import Sharding, sharding
from ivme.shards.verify import gathered, verify_view

if TYPE_CHECKING:
    import pandas

    from ivme.engine.read.reasons import Reasons
    from ivme.plan.explain.explanation import Explanation
    from ivme.shards.database import ShardedDatabase

Row = tuple[Any, ...]


class ShardedView:
    """The rows of a query, maintained in shards."""

    def __init__(self, database: ShardedDatabase, name: str) -> None:
        self._database = database
        self.name = name

    @property
    def sharding(self) -> Sharding:
        """How the rows are spread over shards."""
        catalog = self._database._catalog
        if self.name not in self._database.views or self._database._views.get(self.name, self) is not self:
            raise PlanError(f"view {self.name} was dropped")
        return sharding(catalog.view(self.name), catalog.tables)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.sharding.query.head)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters; empty for a view without parameters."""
        return self.sharding.query.parameters

    @property
    def schema(self) -> pa.Schema:
        """The columns with their Arrow types."""
        types = map(arrow_type, self.sharding.typed.head)
        return pa.schema(list(zip(self.columns, types, strict=True)))

    def __repr__(self) -> str:
        return f"<ShardedView {self.name}: {self.sharding.query}>"

    # Reading

    def __iter__(self) -> Iterator[Row]:
        return self()

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        return (row for row, multiplicity in self.items(**parameters) for _ in range(multiplicity))

    def items(self, **parameters: Any) -> Iterator[tuple[Row, int]]:
        """The distinct rows, with their multiplicities."""
        found = self.weighted(**parameters)
        weights = found.column(WEIGHT).to_pylist()
        columns = [python_values(column) for column in found.columns[:-1]]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(weights))
        return iter(added_up(zip(rows, weights, strict=True)).items())

    def weighted(self, **parameters: Any) -> pa.Table:
        """The distinct rows in Arrow, with their multiplicities as the last column."""
        with self._database._lock:
            made = self.sharding
            if made.query.lists:
                return listed(made, parameters, lambda requests: self._asked(made, requests))
            return self._asked(made, read_request(made, parameters))

    def _asked(self, made: Sharding, requests: pa.Table) -> pa.Table:
        answers = self._database._ask(questions_for(made, requests))
        return put_together(made, [answer.tables[0] for answer in answers])

    def request_many(self, **columns: Any) -> pa.Table:
        """The rows for many values of the parameters: each parameter is a list, or an array of NumPy or Arrow.

        The columns of the result are the parameters, then those of the view. Its rows are in the order of the requests.
        """
        with self._database._lock:
            made = self.sharding
            if not made.query.input:
                raise UnknownNameError(f"view {self.name} has no parameters to ask for")
            refuse_lists(made)
            requests = read_requests(made, columns)
            answers = self._database._ask(questions_for_many(made, requests))
        return put_many_together(made, requests, [answer.tables[0] for answer in answers])

    def scalar(self, **parameters: Any) -> Any:
        """The only value of the only row."""
        rows = [row for row, multiplicity in self.items(**parameters) for _ in range(min(multiplicity, 2))]
        if len(rows) != 1 or len(rows[0]) != 1:
            number = "2 or more" if len(rows) > 1 else len(rows)
            shape = f"{number} rows of {len(self.columns)} columns"
            raise DataError(f"view {self.name} is not a single value: it has {shape}")
        return rows[0][0]

    def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities."""
        return int(self.weighted(**parameters).column(WEIGHT).to_numpy().sum())

    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table, all from one step."""
        return expanded(self.weighted(**parameters))

    def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow(**parameters))

    def snapshot(self, **parameters: Any) -> pa.Table:
        """The rows as they are now."""
        return self.to_arrow(**parameters)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self.multiplicity(row) != 0

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; 0 if there are none."""
        if len(row) != len(self.columns):
            raise DataError(f"a row of view {self.name} has {len(self.columns)} columns: {', '.join(self.columns)}")
        return sum(multiplicity for found, multiplicity in self.items(**parameters) if found == row)

    def path(self, src: Any, dst: Any) -> list[Any] | None:
        """A shortest path from one node of a closure to another, both included; None if there is none."""
        with self._database._lock:
            made = self.sharding
            if not is_closure(made.query):
                raise PlanError(f"view {self.name} is not just a closure, so it has no paths")
            node = Column("node", made.typed.types[made.query.atoms[0].variables[0]])
            ends = to_arrow([(src,), (dst,)], Table(f"ends of paths in {self.name}", (node,)))
            question = Question(made.routing.patterns[0].first, {"op": "path", "view": self.name}, (ends,))
            (answer,) = self._database._ask([question])
        return answer.tables[0].column(0).to_pylist() if answer.tables else None

    def distance(self, src: Any, dst: Any) -> int | None:
        """The number of edges of a shortest path in a closure; None if there is none."""
        nodes = self.path(src, dst)
        return None if nodes is None else len(nodes) - 1

    # Reasons

    def why(self, row: Row, **parameters: Any) -> Reasons:
        """Which rows of its tables make a row of the view; they are gathered in this process for it."""
        with self._database._lock, gathered(self._database, self) as (_, view):
            return view.why(row, **parameters)

    def why_not(self, row: Row, **parameters: Any) -> Reasons:
        """Which relation has no partner for a row that is not there, or the row of its group; as `why`."""
        with self._database._lock, gathered(self._database, self) as (_, view):
            return view.why_not(row, **parameters)

    # Changes

    def changes(self) -> ShardedChanges:
        """A feed of the changes of the view: one for each batch from now on that changes its rows."""
        return self._database._followed(self.name)

    # About the view

    def explain(self) -> Explanation:
        """What each shard does, what that costs, and how rows are spread over the shards."""
        catalog = self._database._catalog
        return explain_view(catalog.view(self.name), catalog)

    def stats(self) -> dict[str, Any]:
        """The strategy, the shares of each pattern, and the entries of each shard."""
        entry = self._database._catalog.view(self.name)
        patterns = [{"heavy": sorted(p.heavy), "shares": dict(p.shares)} for p in entry.routing.patterns]
        loads = view_loads(self._database._coordinator.entries, entry)
        return {"strategy": self.explain().strategy, "patterns": patterns, "entries": loads}

    def verify(self) -> None:
        """Recomputes the view from the shards' tables in this process; raises VerificationError at a difference."""
        with self._database._lock:
            verify_view(self._database, self)
