"""Whole SELECTs of the fuzzer's grammar (`tests/select`) have the rows that Spark gives them.

DuckDB is the oracle of the fuzzer, being quick; here Spark, whose dialect ivme reads, answers a sample of its cases.
A query that Spark refuses is counted and left out: it is DuckDB's then.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from ivme.database import Database
from ivme.errors import IvmeError
from tests.fuzz.model import Model
from tests.fuzz.steps import Change
from tests.fuzz.values import Row, canonical
from tests.select.cases import SelectCase, SelectView, make_case, shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = {"int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN"}


def load(spark: SparkSession, database: Database, case: SelectCase) -> None:
    """Gives both the rows that the tables hold after all changes of a case."""
    model = Model(case.tables)
    for step in case.steps:
        if isinstance(step, Change):
            model.apply(step)
    for table in case.tables:
        rows = list(model.contents[table.name].elements())
        database.create_table(table.name, {c.name: str(c.type) for c in table.columns})
        database.insert(table.name, rows)
        schema = ", ".join(f"{c.name} {_NAMES.get(c.type.kind, str(c.type))}" for c in table.columns)
        spark.createDataFrame(rows, schema).createOrReplaceTempView(table.name)


def comparable(row: Any) -> Row:
    return tuple(canonical(_plain(value)) for value in row)


def _plain(value: Any) -> Any:
    """Spark's bytes and structs as Python has them; a struct of Spark's is a tuple, too."""
    from pyspark.sql import Row as SparkRow

    if isinstance(value, bytearray):
        return bytes(value)
    return value.asDict() if isinstance(value, SparkRow) else value


def compare(spark: SparkSession, database: Database, view: SelectView, counted: Counter[str]) -> str:
    """What differs for one view; empty if nothing does, or one of the two refuses it."""
    from pyspark.errors import PySparkException

    try:
        made = database.create_view(view.name, view.sql)
    except IvmeError:
        counted["refused by ivme"] += 1
        return ""
    try:
        spark.sql(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {view.sql}")
        expected = [comparable(row) for row in spark.sql(view.sql).collect()]
        unlimited = shape(view.sql).unlimited
        whole = Counter(comparable(row) for row in spark.sql(unlimited).collect()) if unlimited else None
    except PySparkException as error:
        counted[f"refused by Spark: {error.getCondition()}"] += 1
        return ""
    found = [comparable(row) for row in made]
    counted["compared"] += 1
    if whole is not None:
        is_right = len(expected) == len(found) and not Counter(found) - whole
    else:
        is_right = Counter(expected) == Counter(found)
    return "" if is_right else f"{view.sql}\nSpark: {sorted(expected, key=repr)}\nivme:  {sorted(found, key=repr)}"


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_a_select_has_the_rows_of_spark(spark: SparkSession, part: int) -> None:
    """IVME_SPARK_CASES cases in each part, 40 by default."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    counted: Counter[str] = Counter()
    differences = []
    for seed in range(part * 1000, part * 1000 + int(os.environ.get("IVME_SPARK_CASES", "40"))):
        case = make_case(seed)
        with Database() as database:
            load(spark, database, case)
            for view in case.views:
                known = {table.name for table in case.tables} | set(database.views)
                if view.relations <= known:
                    found = compare(spark, database, view, counted)
                    differences += [f"seed {seed}, {view.name}: {found}"] if found else []
    print(dict(counted))

    assert not differences, "\n\n".join(differences)
    assert counted["compared"]
