"""(7) and (8): Spark recomputing what ivme refreshes, and Spark's own streaming beside ivme's.

The workloads and the ways to time them are those of benchmarks.spark_refresh and benchmarks.spark_stream.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.peers.missing import MissingError
from benchmarks.peers.race import LEAST, Result
from benchmarks.peers.sizes import Sizes
from benchmarks.spark_refresh import Streamed, applied, filled, recomputed
from benchmarks.spark_stream import WARM_UP, built_in, maintained
from benchmarks.spark_workloads import Workload, sales, session, skewed_triangles, triangles
from ivme.errors import SparkError

RECOMPUTE, STREAMING = "Spark SQL, recompute", "Spark's own streaming"
SHARES: tuple[float, ...] = (0.001, 0.01, 0.1)
SLOW_SHARES: tuple[float, ...] = (0.01,)
"""Where Spark takes minutes to recompute: a graph whose hubs have most of its edges."""


def spark_results(sizes: Sizes, wanted: tuple[str, ...], say: Callable[[str], None]) -> Iterator[list[Result]]:
    """The results of each workload that is wanted: `spark-refresh`, `spark-stream`."""
    try:
        with session() as spark:
            if "spark-refresh" in wanted:
                makers = [(partial(sales, size), SHARES) for size in sizes.sales]
                makers += [(partial(triangles, sizes.spark_edges), SHARES)]
                makers += [(partial(skewed_triangles, sizes.spark_edges), SLOW_SHARES)]
                for make, shares in makers:
                    workload = make()
                    say(f"Spark: {workload.name}, {workload.tables[workload.changing].num_rows:,} rows")
                    yield refreshed(spark, workload, shares)
            if "spark-stream" in wanted:
                say(f"Spark: a stream in batches of {sizes.spark_batch:,}")
                yield streamed(spark, sizes)
    except (ImportError, SparkError) as error:
        raise MissingError("Spark", str(error).splitlines()[0]) from error


def refreshed(spark: object, workload: Workload, shares: Sequence[float]) -> list[Result]:
    """Each share of changes: the database alone, and a micro-batch with its durable commit."""
    found, size = [], workload.tables[workload.changing].num_rows
    database = filled(workload)
    with tempfile.TemporaryDirectory() as folder:
        stream = Streamed(spark, workload, Path(folder))  # type: ignore[arg-type]
        try:
            for share in shares:
                changes = max(2, int(size * share))
                theirs, expected = recomputed(spark, workload, workload.after(changes), LEAST)  # type: ignore[arg-type]
                ours, answer = applied(database, workload, changes, LEAST)
                if expected != answer:
                    raise AssertionError(f"{workload.name}: Spark and ivme differ")
                through = stream.refresh(changes, LEAST)
                for how, seconds in (("", ours), (", through the stream", through)):
                    title = f"{workload.name}, {size:,} rows, {share:.1%} changed{how}"
                    key = f"spark-refresh{'-stream' if how else ''}-{workload.name.replace(' ', '-')}-{size}-{share}"
                    found.append(Result(key, title, size, RECOMPUTE, "s", tuple(theirs), tuple(seconds)))
        finally:
            stream.close()
            database.close()
    return found


def streamed(spark: object, sizes: Sizes) -> list[Result]:
    """A micro-batch into the five-table join, exactly once, beside the same SQL in Spark's own streaming."""
    workload = sales(sizes.spark_state)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        ours = maintained(spark, workload, folder, sizes.spark_batch, LEAST + WARM_UP)  # type: ignore[arg-type]
        theirs = built_in(spark, workload, folder)  # type: ignore[arg-type]
    title = f"five-table join as a stream, exactly once, batches of {sizes.spark_batch:,}"
    return [Result("spark-stream", title, sizes.spark_state, STREAMING, "s", tuple(theirs), tuple(ours))]
