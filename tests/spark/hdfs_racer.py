"""A driver that makes records 0 to n in a folder of HDFS, while another one does: prints the numbers that it made.

`python -m tests.spark.hdfs_racer hdfs://127.0.0.1:8020/folder NAME RECORDS`
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from ivme.spark.shards.hadoop_records import hadoop_create


def main(address: str, name: str, records: int) -> None:
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    context: Any = spark.sparkContext
    context.setLogLevel("ERROR")
    create = hadoop_create(spark)
    create(f"{address}/ready/{name}", b"")
    print("ready", flush=True)
    sys.stdin.readline()
    data = [f"{name} {number}".encode() * 1000 for number in range(records)]
    won = [number for number in range(records) if create(f"{address}/records/{number}", data[number])]
    print(json.dumps(won), flush=True)
    if sys.stdin.readline():  # after all have ended
        print(json.dumps(found(context, f"{address}/records")), flush=True)


def found(context: Any, folder: str) -> dict[str, list[Any]]:
    """By name of a file who wrote it, and its length."""
    jvm = context._jvm
    files = jvm.org.apache.hadoop.fs.FileSystem.get(jvm.java.net.URI(folder), context._jsc.hadoopConfiguration())
    told: dict[str, list[Any]] = {}
    for status in files.listStatus(jvm.org.apache.hadoop.fs.Path(folder)):
        opened = files.open(status.getPath())
        text = jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8")
        opened.close()
        told[status.getPath().getName()] = [text.split(" ")[0], len(text)]
    return told


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
