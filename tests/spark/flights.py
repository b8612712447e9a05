"""A small pipeline of flights for the tests: its files, and what its views must be, computed from the files."""

from __future__ import annotations

import csv
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

CITIES = {1: "London", 2: "Zurich", 3: "Oslo", 4: "London", 5: "Oslo"}

Route = tuple[str, int, int]

PIPELINE = """\
tables:
  routes:
    columns: {{no: string, src: int, dst: int}}
    load: {{format: csv, path: routes.csv}}
    changes: {{directory: changes, format: {format}, operation: op{more}}}
  airports:
    columns: {{id: int, city: string}}
    primary_key: id
    load: {{format: parquet, path: airports.parquet}}
views:
  per_city:
    sql: |
      SELECT a.city, COUNT(*) AS n, MIN(r.no) AS first
      FROM routes r JOIN airports a ON r.src = a.id GROUP BY a.city
  pairs:
    rule: Q(A, B) = routes(N, X, Y), airports(X, A), airports(Y, B)
  search:
    sql: |
      SELECT r.no FROM routes r JOIN airports a ON r.src = a.id JOIN airports b ON r.dst = b.id
      WHERE a.city = :origin AND b.city = :dest
sinks:
  counts: {{view: per_city, format: parquet, path: out/counts}}
  now: {{view: per_city, what: rows, format: parquet, path: out/now}}
  found: {{view: search, format: delta, path: out/found}}
"""


class Flights:
    """The files of the pipeline in a folder."""

    def __init__(self, folder: Path, *, format: str = "csv", more: str = "", head: str = "") -> None:
        self.folder, self.format = folder, format
        self.file = folder / "flights.yml"
        self.file.write_text(head + PIPELINE.format(format=format, more=more), "utf-8")
        (folder / "changes").mkdir()
        airports = pa.table({"id": list(CITIES), "city": list(CITIES.values())})
        pq.write_table(airports, folder / "airports.parquet")
        self.routes: Counter[Route] = Counter()
        self.load([("A", 1, 2), ("B", 1, 3), ("C", 2, 3), ("C", 2, 3)])

    @classmethod
    def there(cls, folder: Path, routes: Iterable[Route]) -> Flights:
        """The pipeline whose files are in a folder, with these routes."""
        found = cls.__new__(cls)
        found.folder, found.format, found.file = folder, "csv", folder / "flights.yml"
        found.routes = Counter(routes)
        return found

    def load(self, routes: Iterable[Route]) -> None:
        self.routes = Counter(routes)
        rows = [f"{no},{src},{dst}\n" for no, src, dst in self.routes.elements()]
        (self.folder / "routes.csv").write_text("no,src,dst\n" + "".join(rows), "utf-8")

    def change(self, name: str, *changes: tuple[str, str, int, int], applied: bool = True) -> Path:
        """Writes a file of changes, and counts them unless they are not to be applied."""
        path = self.folder / "changes" / f"{name}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("op", "no", "src", "dst"), *changes])
        for operation, *row in changes if applied else ():
            self.routes[tuple(row)] += 1 if operation == "insert" else -1  # type: ignore[index]
        self.routes += Counter()
        return path

    def random_changes(self, files: int, rows: int, seed: int) -> None:
        """Files of inserts, and of deletes of what is there."""
        chosen = random.Random(seed)
        for number in range(files):
            there = list(self.routes.elements())
            deletes = chosen.sample(there, min(len(there), rows // 3))
            new = [(f"N{chosen.randrange(200)}", chosen.randint(1, 5), chosen.randint(1, 5)) for _ in range(rows)]
            changes = [("delete", *row) for row in deletes] + [("insert", *row) for row in new]
            self.change(f"{number:05d}", *changes)

    # What must be

    def per_city(self) -> set[tuple[str, int, str]]:
        flights: dict[str, list[str]] = {}
        for no, src, _ in self.routes.elements():
            flights.setdefault(CITIES[src], []).append(no)
        return {(city, len(found), min(found)) for city, found in flights.items()}

    def search(self) -> Counter[tuple[str, str, str]]:
        return Counter((CITIES[src], CITIES[dst], no) for no, src, dst in self.routes.elements())

    # What is in the sinks

    def counted(self) -> dict[tuple[str, int, str], int]:
        """The sum of all changes in the sink of changes."""
        partitioning = ds.partitioning(pa.schema([("ivme_batch", pa.int64())]), flavor="hive")
        found = ds.dataset(self.folder / "out/counts", format="parquet", partitioning=partitioning).to_table()
        return net(found, ("city", "n", "first"))

    def found(self) -> dict[tuple[str, str, str], int]:
        from deltalake import DeltaTable

        return net(DeltaTable(str(self.folder / "out/found")).to_pyarrow_table(), ("origin", "dest", "no"))

    def now(self) -> set[tuple[str, int, str]]:
        rows = pq.read_table(self.folder / "out/now/rows.parquet").to_pylist()
        return {(row["city"], row["n"], row["first"]) for row in rows}

    def check_sinks(self) -> None:
        assert dict.fromkeys(self.per_city(), 1) == self.counted()
        assert dict(self.search()) == self.found()
        assert self.per_city() == self.now()


def net(changes: pa.Table, columns: tuple[str, ...]) -> dict[Any, int]:
    """The sums of weights by row, without those that cancel."""
    total: Counter[Any] = Counter()
    for row in changes.to_pylist():
        total[tuple(row[column] for column in columns)] += row["ivme_weight"]
    return {row: weight for row, weight in total.items() if weight}
