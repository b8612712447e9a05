"""`python -m ivme.spark.session.warm_up FILE`: a short session whose JVM archives the classes that it loaded."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa

from ivme.spark.session.session import QUICK_JAVA, open_session


def main(archive: str) -> None:
    """Does once what pipelines do, then ends the JVM in an orderly way and waits for it."""
    options = f"{QUICK_JAVA} -Xlog:disable -Xlog:all=error:stderr -XX:ArchiveClassesAtExit={archive}"
    session = open_session("warm-up", master="local[2]", conf={"spark.driver.extraJavaOptions": options})
    rows = session.createDataFrame(pa.table({"key": [1, 2, 2], "text": ["a", "b", "b"]}))
    rows.createOrReplaceTempView("rows")
    session.sql("SELECT r.key, COUNT(*) FROM rows r JOIN rows s ON r.key = s.key GROUP BY r.key").toArrow()
    rows.mapInArrow(lambda batches: batches, rows.schema).toArrow()
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("csv", "json", "parquet"):
            rows.write.format(kind).save(f"{folder}/{kind}")
            session.read.schema(rows.schema).format(kind).load(f"{folder}/{kind}").toArrow()
        stream = session.readStream.schema(rows.schema).parquet(f"{folder}/parquet")
        writer = stream.writeStream.foreachBatch(lambda batch, _: batch.toArrow()).trigger(availableNow=True)
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
        query.awaitTermination()
    gateway = session.sparkContext._gateway
    assert gateway is not None
    process = gateway.proc
    session.stop()
    process.stdin.close()
    process.wait(timeout=120)


if __name__ == "__main__":
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    main(sys.argv[1])
