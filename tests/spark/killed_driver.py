"""`python -m tests.spark.killed_driver CHECKPOINT ARCHIVES BATCHES`: applies numbered batches until it is killed.

A batch carries its number, so that one that was applied before the kill is not applied again. At the end it prints the
view, and what all changes of another one, whose only row has parts in both shards, add up to.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import ivme
from ivme.spark.session.session import open_session

VIEW = "SELECT R.a, SUM(S.c) AS t, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a"
SPREAD = "SELECT COUNT(*) AS n, SUM(S.c) AS t FROM R JOIN S ON R.b = S.b"


def rows_of(number: int) -> list[tuple[int, int]]:
    return [((number * 7 + i) % 9, (number * 13 + i * i) % 50) for i in range(40)]


def apply(db: ivme.SparkDatabase | ivme.Database, number: int) -> None:
    with db.batch("feed", number) if isinstance(db, ivme.SparkDatabase) else db.batch() as batch:
        batch.insert("R", rows_of(number))
        batch.insert("S", rows_of(number))
        if number:
            batch.delete("R", rows_of(number - 1)[:5])


def main(checkpoint: str, archives: str, batches: int) -> None:
    spark = open_session("killed", master="local[2]", archives=Path(archives))
    with ivme.SparkDatabase(spark, 2, checkpoint, lease=5) as db:
        for table in "RS":
            if table not in db.tables:
                db.create_table(table, {"a": "int", "b": "int"} if table == "R" else {"b": "int", "c": "int"})
        if "v" not in db.views:
            db.create_view("v", VIEW)
        if "spread" not in db.views:
            db.create_view("spread", SPREAD)
        feed = db.view("spread").changes()
        print("open", [status["pid"] for status in db.status()], flush=True)
        reached = db.position("feed")
        for number in range(0 if reached is None else reached + 1, batches):
            apply(db, number)
            print("batch", number, flush=True)
        feed.seen = 0
        net: Counter[tuple[object, ...]] = Counter()
        for change in feed:
            net.update(change)
        print("changes", json.dumps(sorted(([list(row), n] for row, n in net.items() if n), key=str)), flush=True)
        print("rows", json.dumps(sorted(db.view("v"))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
