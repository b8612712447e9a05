"""A process that writes until it is killed: `python -m tests.durability.load DIRECTORY SEED DURABILITY`.

Step k is determined by the seed and k alone. It adds the row k to table P on the single-row path, then changes R and S
in one batch with position k, sometimes makes or drops a view; `k` is printed when all of that was committed.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from typing import Any

VIEWS = {
    "joined": "SELECT R.a, COUNT(*) AS n, SUM(S.c) AS total FROM R JOIN S ON R.b = S.b GROUP BY R.a",
    "found": "SELECT S.c, R.note FROM R JOIN S ON R.b = S.b WHERE R.a = :a",
    "over": "SELECT n, COUNT(*) AS groups FROM joined GROUP BY n",
}

Bags = dict[str, Counter[Any]]


def changes(seed: int, step: int, bags: Bags) -> Bags:
    """The changes of a step, given the rows before it: mostly inserts, and deletes of what is there."""
    choose = random.Random(f"{seed}/{step}")
    made: Bags = {"R": Counter(), "S": Counter()}
    for _ in range(choose.choice([1, 3, 30])):
        made["R"][choose.randrange(20), choose.randrange(20), choose.choice(["x", "ä" * 30, None])] += 1
        made["S"][choose.randrange(20), choose.randrange(100)] += choose.choice([1, 2])
    for table, bag in made.items():
        present = sorted(bags[table].elements(), key=repr)
        for row in choose.sample(present, min(len(present), choose.choice([0, 2, 25]))):
            bag[row] -= 1
    return made


def apply(bags: Bags, made: Bags) -> None:
    for table, bag in made.items():
        bags[table].update(bag)
        bags[table] = +bags[table]


def main(directory: str, seed: int, durability: str) -> None:
    import ivme.store.store
    from ivme.database import Database
    from tests.durability.directories import bag

    ivme.store.store.LEAST_LOG = 30_000
    with Database(directory, durability=durability) as db:
        if "R" not in db.tables:
            db.create_table("R", {"a": "int", "b": "int", "note": "string"})
        if "S" not in db.tables:
            db.create_table("S", {"b": "int", "c": "int"})
        if "P" not in db.tables:
            db.create_table("P", {"k": "int"}, primary_key="k")
        bags = {table: bag(db, table) for table in ("R", "S")}
        step = (db.position("load") or 0) + 1
        print("ready", flush=True)
        while True:
            if (step,) not in bag(db, "P"):
                db.insert("P", [(step,)])
            made = changes(seed, step, bags)
            with db.batch(source="load", position=step) as batch:
                for table, changed in made.items():
                    batch.apply(table, list(changed), list(changed.values()))
            apply(bags, made)
            missing = [name for name in VIEWS if name not in db.views]
            if missing:
                db.create_view(missing[0], VIEWS[missing[0]])
            elif step % 50 == 0:
                db.drop_view("over")
            print(step, flush=True)
            step += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
