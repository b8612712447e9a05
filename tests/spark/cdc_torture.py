"""Change events of three tables in transactions that come late, twice, out of order and broken, and their sums.

What is expected is computed here from the events as they were made, in their true order, by plain dictionaries.
`python -m tests.spark.cdc_torture FILE ARCHIVES` runs the pipeline of a file until it has caught up.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tests.spark.flights import net

CITIES = ("Oslo", "Bern", "Rome", "Lima", "Bonn")

_FILE = """\
transactions: {{directory: log, {files}}}
tables:
  customers:
    columns: {{id: int, city: string}}
    primary_key: id
    changes: {{directory: customers, format: csv, operation: op, upsert: true, sequence_by: lsn, {by}, {files}}}
  orders:
    columns: {{id: int, customer: int, amount: int}}
    primary_key: id
    changes: {{directory: orders, format: json, envelope: debezium, sequence_by: source.lsn, {files}}}
  payments:
    columns: {{id: int, kind: string, amount: int}}
    changes: {{directory: payments, format: csv, operation: op, {by}, {files}}}
views:
  per_city:
    sql: |
      SELECT c.city, COUNT(*) AS n, SUM(o.amount) AS total
      FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.city
  per_kind:
    sql: SELECT kind, COUNT(*) AS n, SUM(amount) AS total FROM payments GROUP BY kind
sinks:
  city_changes: {{view: per_city, format: parquet, path: out/city_changes}}
  city_merged: {{view: per_city, mode: merge, format: delta, path: out/city_merged}}
  city_rows: {{view: per_city, mode: rows, every: 3, format: parquet, path: out/city_rows}}
  kind_changes: {{view: per_kind, format: delta, path: out/kind_changes}}
  kind_merged: {{view: per_kind, mode: merge, format: delta, path: out/kind_merged}}
"""

Row = tuple[Any, ...]


@dataclass
class Torture:
    """The files of a pipeline, and the rows that its tables must end with."""

    folder: Path
    events: int
    per_file: int
    seed: int
    bad: int = 0
    customers: dict[int, str] = field(default_factory=dict)
    orders: dict[int, tuple[int, int]] = field(default_factory=dict)
    payments: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.file = self.folder / "torture.yml"
        by = "transaction_by: tx, transaction_number: no"
        self.file.write_text(_FILE.format(files="files_per_batch: 2", by=by))
        third = self.events // 3
        self._make_transactions(third)
        customers, orders = self._mixed([*self._customers(third)]), self._mixed([*self._orders(third)])
        self._write("customers", "op,id,city,lsn,tx,no\n", customers, self._bad_customer)
        self._write("orders", "", orders, self._bad_order)
        self._write("payments", "op,id,kind,amount,tx,no\n", [*self._payments(third)], self._bad_payment)
        log = [json.dumps(entry) + "\n" for entry in self.log]
        log = [each for entry in log for each in ('{"status": "BEGIN", "id": "0"}\n', entry)]
        self._write("log", "", log, lambda: "no end\n")

    def _make_transactions(self, count: int) -> None:
        """The transaction of each event, and its number there; some have events in one table, some in all."""
        self.ids: dict[str, list[tuple[str, int]]] = {"customers": [], "orders": [], "payments": []}
        self.log: list[dict[str, Any]] = []
        while any(len(ids) < count for ids in self.ids.values()):
            key, counts, number = f"tx{len(self.log)}", dict.fromkeys(self.ids, 0), 0
            for table in self.chance.sample(list(self.ids), self.chance.choice([1, 2, 3])):
                for _ in range(min(self.chance.randrange(1, 5), count - len(self.ids[table]))):
                    self.ids[table].append((key, number))
                    counts[table] += 1
                    number += 1
            told = [{"data_collection": f"shop.{name}", "event_count": n} for name, n in counts.items() if n]
            self.log.append({"status": "END", "id": key, "event_count": number, "data_collections": told})

    # Events in their true order

    def _customers(self, count: int) -> Iterator[str]:
        for lsn, (tx, no) in zip(range(count), self.ids["customers"], strict=True):
            key = self.chance.randrange(max(count // 20, 10))
            if self.chance.random() < 0.15:
                self.customers.pop(key, None)
                yield f"d,{key},,{lsn},{tx},{no}\n"
            else:
                self.customers[key] = self.chance.choice(CITIES)
                yield f"{self.chance.choice('iu')},{key},{self.customers[key]},{lsn},{tx},{no}\n"

    def _orders(self, count: int) -> Iterator[str]:
        for lsn in range(count):
            key = self.chance.randrange(max(count // 8, 10))
            before = self.orders.get(key)
            if before is not None and self.chance.random() < 0.2:
                del self.orders[key]
                yield self._order("d", lsn, key, before, None)
                continue
            new_key = key
            if before is not None and self.chance.random() < 0.05:  # the row moves to another key
                new_key = self.chance.randrange(count, 2 * count)
                while new_key in self.orders:
                    new_key += 1
                del self.orders[key]
            after = (self.chance.randrange(max(count // 20, 10)), self.chance.randrange(1000))
            self.orders[new_key] = after
            yield self._order("u" if before is not None else "c", lsn, new_key, before, after, key)

    def _order(
        self, op: str, lsn: int, key: int, before: Row | None, after: Row | None, old_key: int | None = None
    ) -> str:
        """An event; `old_key` is that of the row before it."""

        def row(number: int, values: Row | None) -> dict[str, Any] | None:
            return None if values is None else {"id": number, "customer": values[0], "amount": values[1]}

        tx, number = self.ids["orders"][lsn]
        together = {"id": tx, "total_order": number, "data_collection_order": 1}
        event = {
            "op": op,
            "source": {"lsn": lsn},
            "transaction": together,
            "before": row(key if old_key is None else old_key, before),
        }
        return json.dumps({**event, "after": row(key, after)}) + "\n"

    def _payments(self, count: int) -> Iterator[str]:
        there: list[Row] = []
        for number, (tx, no) in zip(range(count), self.ids["payments"], strict=True):
            if there and self.chance.random() < 0.3:
                row = there.pop(self.chance.randrange(len(there)))
                self.payments[row] -= 1
                yield f"delete,{row[0]},{row[1]},{row[2]},{tx},{no}\n"
            else:
                row = (number, self.chance.choice(("card", "cash", "bank")), self.chance.randrange(100))
                there.append(row)
                self.payments[row] += 1
                yield f"insert,{row[0]},{row[1]},{row[2]},{tx},{no}\n"

    # How they come

    def _mixed(self, events: list[str]) -> list[str]:
        """Some twice, and all out of order within windows."""
        twice = [each for event in events for each in [event] * (2 if self.chance.random() < 0.1 else 1)]
        window = max(2 * self.per_file, 10)
        found: list[str] = []
        for start in range(0, len(twice), window):
            part = twice[start : start + window]
            self.chance.shuffle(part)
            found += part
        for _ in range(len(found) // 50):
            place = self.chance.randrange(len(found))
            found.insert(min(place + 2 * window, len(found)), found.pop(place))
        return found

    def _write(self, table: str, head: str, events: list[str], broken: Any) -> None:
        folder = self.folder / table
        folder.mkdir()
        for number, start in enumerate(range(0, len(events), self.per_file)):
            lines = list(events[start : start + self.per_file])
            for _ in range(max(len(lines) // 500, 1)):
                lines.insert(self.chance.randrange(len(lines) + 1), broken())
                self.bad += 1
            (folder / f"{number}.{'csv' if head else 'json'}").write_text(head + "".join(lines))

    def _bad_customer(self) -> str:
        bad = ["u,one,Oslo,1,,\n", "what,1,Oslo,1,,\n", "u,,Oslo,5,,\n", "u,3,Oslo,,,\n", "u,3\n"]
        return self.chance.choice(bad)

    def _bad_order(self) -> str:
        return self.chance.choice(['{"op": "c"}\n', "no json\n", '{"op": "z", "after": {"id": 1}}\n'])

    def _bad_payment(self) -> str:
        bad = [f"delete,{-1 - self.bad},cash,1,,\n", "insert,x,cash,1,,\n", "maybe,1,cash,1,,\n"]
        return self.chance.choice(bad)

    # What must be

    def per_city(self) -> set[Row]:
        cities: dict[str, list[int]] = {}
        for customer, amount in self.orders.values():
            if customer in self.customers:
                cities.setdefault(self.customers[customer], []).append(amount)
        return {(city, len(found), sum(found)) for city, found in cities.items()}

    def per_kind(self) -> set[Row]:
        kinds: dict[str, list[int]] = {}
        for _, kind, amount in self.payments.elements():
            kinds.setdefault(kind, []).append(amount)
        return {(kind, len(found), sum(found)) for kind, found in kinds.items()}

    def check_sinks(self) -> None:
        from deltalake import DeltaTable

        out, city, kind = self.folder / "out", self.per_city(), self.per_kind()
        by_batch = ds.partitioning(pa.schema([("ivme_batch", pa.int64())]), flavor="hive")
        changes = ds.dataset(out / "city_changes", format="parquet", partitioning=by_batch).to_table()
        assert dict.fromkeys(city, 1) == net(changes, ("city", "n", "total"))
        assert city == _rows(pq.read_table(out / "city_rows/rows.parquet"))
        assert city == _rows(DeltaTable(str(out / "city_merged")).to_pyarrow_table())
        assert kind == _rows(DeltaTable(str(out / "kind_merged")).to_pyarrow_table())
        kinds = DeltaTable(str(out / "kind_changes")).to_pyarrow_table()
        assert dict.fromkeys(kind, 1) == net(kinds, ("kind", "n", "total"))

    def check_tables(self, database: Any) -> None:
        assert {(key, city) for key, city in self.customers.items()} == set(database.table("customers"))
        assert {(key, *values) for key, values in self.orders.items()} == set(database.table("orders"))
        assert sorted(self.payments.elements()) == sorted(database.table("payments"))


def _rows(table: pa.Table) -> set[Row]:
    return {tuple(row.values()) for row in table.to_pylist()}


def main(file: str, archives: str) -> None:
    from ivme.pipeline import read_pipeline
    from ivme.spark.pipeline.driver import Driver
    from ivme.spark.pipeline.runner import run
    from ivme.spark.session.session import open_session

    spark = open_session("torture", master="local[2]", archives=Path(archives))
    driver = Driver(spark, read_pipeline(Path(file)))
    print("open", driver.reached, flush=True)
    run(driver, once=True)
    print("done", driver.reached, flush=True)
    driver.close()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
