"""`python -m tests.spark.remote_driver CHECKPOINT`: a sharded database through Spark Connect, on its own server."""

from __future__ import annotations

import os
import sys

import pytest
from pyspark.sql import SparkSession

import ivme
from ivme.errors import PlanError


def main(checkpoint: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    with ivme.SparkDatabase(spark, 2, checkpoint) as db:
        db.create_table("R", {"a": "int", "b": "int"})
        view = db.create_view("v", "SELECT a, COUNT(*) AS n FROM R GROUP BY a")
        asked = db.create_view("asked", "Q(B | A) = R(A, B)")
        db.insert("R", [(1, 1), (1, 2), (2, 2)])
        db.insert("R", spark.createDataFrame([(3, 3), (3, 4)], "a long, b long"))
        assert sorted(view) == [(1, 2), (2, 1), (3, 2)]
        assert sorted(asked(A=3)) == [(3,), (4,)]
        assert sorted(map(tuple, db.table("v").collect())) == [(1, 2), (2, 1), (3, 2)]
        db.register("asked")
        assert sorted(map(tuple, spark.sql("SELECT * FROM asked(3)").collect())) == [(3,), (4,)]
        frame = spark.readStream.format("rate").load().selectExpr("value AS a", "value AS b")
        with pytest.raises(PlanError, match="Spark Connect"):
            db.stream("R", frame)
    spark.stop()
    print("done", flush=True)
    os._exit(0)  # the session closes its channel in __del__, which may wait for ever when Python ends


if __name__ == "__main__":
    main(sys.argv[1])
