"""What the Spark benchmarks share: workloads with their changes, a session, a pipeline that is changed by a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.graphs import Rows, power_law, uniform
from ivme.spark.session.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ITEMS, STORES = 20_000, 2_000

SALES_SQL = (
    "SELECT c.country, d.department, COUNT(*) AS n, SUM(s.amount) AS total "
    "FROM sales s JOIN items i ON s.item = i.item JOIN categories d ON i.category = d.category "
    "JOIN stores t ON s.store = t.store JOIN cities c ON t.city = c.city GROUP BY c.country, d.department"
)
TRIANGLE_SQL = "SELECT COUNT(*) AS n FROM edges r JOIN edges s ON r.b = s.a JOIN edges t ON s.b = t.a AND t.b = r.a"


@dataclass(frozen=True, slots=True)
class Workload:
    """A view, its tables, and the one that changes; `more` makes as many further rows of it as asked for."""

    name: str
    sql: str
    changing: str
    tables: dict[str, pa.Table]
    more: Callable[[int], pa.Table]

    def changes(self, size: int) -> tuple[pa.Table, np.ndarray]:
        """As many deletes of what is there as inserts of what is not, together `size`."""
        old = self.tables[self.changing].slice(0, size // 2)
        weights = np.repeat(np.array([-1, 1]), [size // 2, size - size // 2])
        return pa.concat_tables([old, self.more(size - size // 2)]), weights

    def after(self, size: int) -> dict[str, pa.Table]:
        """The tables when these changes have been made."""
        kept = self.tables[self.changing].slice(size // 2)
        return {**self.tables, self.changing: pa.concat_tables([kept, self.more(size - size // 2)])}


def sales(rows: int, seed: int = 1) -> Workload:
    """A snowflake of five tables, grouped by two attributes of the outer ones."""

    def facts(size: int, seed: int) -> pa.Table:
        random = np.random.default_rng(seed)
        return pa.table(
            {
                "item": random.integers(0, ITEMS, size),
                "store": random.integers(0, STORES, size),
                "amount": random.integers(1, 1000, size),
            }
        )

    tables = {
        "sales": facts(rows, seed),
        "items": pa.table({"item": np.arange(ITEMS), "category": np.arange(ITEMS) % 500}),
        "categories": pa.table({"category": np.arange(500), "department": np.arange(500) % 20}),
        "stores": pa.table({"store": np.arange(STORES), "city": np.arange(STORES) % 300}),
        "cities": pa.table({"city": np.arange(300), "country": np.arange(300) % 30}),
    }
    return Workload("five-table join", SALES_SQL, "sales", tables, lambda size: facts(size, seed + 1))


def triangles(rows: int, seed: int = 1) -> Workload:
    """A random graph of mean degree 10, all nodes alike."""
    nodes = max(rows // 10, 2)
    return _triangles("triangle count, even degrees", lambda size, seed: uniform(size, nodes, seed), rows, seed)


def skewed_triangles(rows: int, seed: int = 1) -> Workload:
    """A random graph whose degrees follow a power law, as those of people and airports do."""
    nodes = max(rows // 5, 2)
    return _triangles("triangle count, power law", lambda size, seed: power_law(size, nodes, seed), rows, seed)


def _triangles(name: str, made: Callable[[int, int], Rows], rows: int, seed: int) -> Workload:
    def edges(size: int, seed: int) -> pa.Table:
        ends = made(size, seed)
        return pa.table({"a": ends[:, 0], "b": ends[:, 1]})

    return Workload(name, TRIANGLE_SQL, "edges", {"edges": edges(rows, seed)}, lambda size: edges(size, seed + 1))


@contextmanager
def session(memory: str = "6g") -> Iterator[SparkSession]:
    """A session with the code compiler at full strength, broadcast joins allowed, and a stream's local checkpoints."""
    conf = {
        "spark.driver.memory": memory,
        "spark.sql.autoBroadcastJoinThreshold": str(256 * 2**20),
        "spark.log.level": "ERROR",
    }
    spark = open_session("benchmark", master="local[2]", conf=conf)
    try:
        yield spark
    finally:
        spark.stop()


def stream_pipeline(folder: Path, workload: Workload, files_per_trigger: int = 1) -> Path:
    """A pipeline that loads the tables from Parquet, and changes one by a stream of Parquet files."""
    (folder / "stream").mkdir(parents=True)
    lines = ["tables:"]
    for name, table in workload.tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
        columns = ", ".join(f"{column}: int" for column in table.column_names)
        lines += [f"  {name}:", f"    columns: {{{columns}}}", f"    load: {{format: parquet, path: {name}.parquet}}"]
        if name == workload.changing:
            options = f"{{maxFilesPerTrigger: {files_per_trigger}}}"
            stream = f"{{format: parquet, path: stream, options: {options}}}"
            lines += ["    changes:", f"      stream: {stream}", "      weight: w"]
    lines += ["views:", "  v:", f"    sql: {workload.sql}"]
    file = folder / "pipeline.yml"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def write_changes(folder: Path, name: str, rows: pa.Table, weights: np.ndarray) -> None:
    """A file of the stream, which appears whole."""
    partial = folder / "stream" / f".{name}"
    pq.write_table(rows.append_column("w", pa.array(weights)), partial)
    partial.rename(folder / "stream" / f"{name}.parquet")
