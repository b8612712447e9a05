"""An IES in Spark SQL.

Spark's own tables cannot be deleted from, so each table of the IES is a temporary view over a DataFrame; an INSERT or
DELETE makes another DataFrame and puts it in the view's place. DataFrames never change, so going back after a failure
is putting the old ones back. Each statement is computed at once and cut off from its history (`localCheckpoint`): plans
that contain the plans of all tables before them grow exponentially. Inputs change by a row at a time and are cut off
now and then.

Only the session is used, so that this module needs no pyspark itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ivme.closure.executor import CHANGES, Executor
from ivme.closure.ies import IES, Relation, Row
from ivme.closure.program_text import Statement
from ivme.query.types import Type

_TYPES = {
    "int": "BIGINT",
    "float": "DOUBLE",
    "string": "STRING",
    "bool": "BOOLEAN",
    "date": "DATE",
    "timestamp": "TIMESTAMP_NTZ",
    "binary": "BINARY",
}

_HISTORY = 16
"""After how many changes the inputs are cut off from their history."""


class SparkExecutor(Executor):
    """Keeps an IES in a Spark session; `partitions` is how many parts its tables have."""

    def __init__(self, ies: IES, spark: Any, partitions: int = 2) -> None:
        super().__init__(ies)
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        self.spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        self._partitions = partitions
        self._tables: dict[str, Any] = {}
        self._before: dict[str, Any] = {}
        self._pending = 0
        stored = (*ies.inputs, *ies.auxiliary, *((ies.answer,) if ies.answer.query is None else ()))
        for relation in stored:
            self._set(relation.name, self.spark.createDataFrame([], _schema(relation)))

    def rows(self, table: str) -> list[Row]:
        answer = self.ies.answer
        if table == answer.name and answer.query is not None:
            return sorted(tuple(row) for row in self.spark.sql(answer.query).collect())
        return sorted(tuple(row) for row in self.spark.table(table).collect())

    def _begin(self) -> None:
        self._before = dict(self._tables)

    def _commit(self) -> None:
        self._before = {}

    def _roll_back(self) -> None:
        for name, frame in self._before.items():
            self._set(name, frame)

    def _set(self, name: str, frame: Any) -> None:
        frame.createOrReplaceTempView(name)
        self._tables[name] = frame

    def _kept(self, frame: Any) -> Any:
        """The frame computed, in few parts, and without its history."""
        return frame.coalesce(self._partitions).localCheckpoint()

    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> None:
        body, target = statement.with_marks(":"), statement.target
        arguments = {name: parameters[name] for name, _ in statement.parameters}
        if statement.kind == "temp":
            self._set(target, self._kept(self.spark.sql(body, arguments)))
        elif statement.kind == "insert":
            old = self._tables[target]
            added = self.spark.sql(body, arguments).toDF(*old.columns)
            self._set(target, self._kept(old.unionAll(added.to(old.schema))))
        else:
            kept = f"SELECT * FROM {target}" + (f" WHERE NOT COALESCE(({body}), FALSE)" if body else " WHERE FALSE")
            self._set(target, self._kept(self.spark.sql(kept, arguments)))

    def _size(self, table: str) -> int:
        return int(self._tables[table].count())

    def _make_changes(self, relation: Relation, rows: list[Row]) -> None:
        self._set(CHANGES, self._kept(self.spark.createDataFrame(rows, _schema(relation))))

    def _change_input(self, relation: Relation, rows: list[Row], sign: int) -> None:
        name, changed = relation.name, self.spark.createDataFrame(rows, _schema(relation))
        old = self._tables[name]
        frame = old.unionAll(changed) if sign > 0 else old.subtract(changed)
        self._pending = (self._pending + 1) % _HISTORY
        self._set(name, frame if self._pending else self._kept(frame))


def _schema(relation: Relation) -> str:
    return ", ".join(f"{name} {_sql_type(type_)}" for name, type_ in relation.columns)


def _sql_type(type_: Type) -> str:
    return f"DECIMAL({type_.precision}, {type_.scale})" if type_.kind == "decimal" else _TYPES[type_.kind]
