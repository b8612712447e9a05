"""A view with parameters as a function of Spark SQL: a Python table function that asks the shards.

A call costs some 100 ms: it is for joins that run now and then, not for serving.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import from_arrow_schema

from ivme.errors import PlanError
from ivme.shards.access import put_together, questions_for, read_request
from ivme.shards.lists import refuse_lists
from ivme.shards.merge import expanded
from ivme.shards.present import Present
from ivme.spark.shards.reader import row_schema

if TYPE_CHECKING:
    from pyspark.sql.udtf import UserDefinedTableFunction

    from ivme.spark.shards.database import SparkDatabase


class AccessRequest:
    """The function's rows for one row of arguments; `root` and `view` are set by `register_view`."""

    root = ""
    view = ""

    def eval(self, *values: Any, **named: Any) -> Iterator[tuple[Any, ...]]:
        present = Present.of(self.root)
        made = present.view(self.view)
        given = {**dict(zip(made.query.parameters, values, strict=False)), **named}
        requests = read_request(made, given)
        parts = [answer.tables[0] for answer in present.ask(questions_for(made, requests))]
        for row in expanded(put_together(made, parts)).to_pylist():
            yield tuple(row.values())


def register_view(database: SparkDatabase, view: str, name: str) -> None:
    """Registers the function of a view in the session."""
    made = database.view(view).sharding
    if not made.query.input:
        raise PlanError(f"view {view} has no parameters; read it with table() or format('ivme')")
    refuse_lists(made)
    if not made.query.head:
        raise PlanError(f"view {view} has no columns, which a function of SQL must have")
    handler = type(f"Ask_{view}", (AccessRequest,), {"root": database.checkpoint.store.address, "view": view})
    function = udtf(handler, returnType=from_arrow_schema(row_schema(made)))
    database.spark.udtf.register(name, cast("UserDefinedTableFunction", function))
