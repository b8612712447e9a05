"""`python -m tests.spark.functions_driver CHECKPOINT ARCHIVES`: views that call functions of Python, on Spark's shards.

Prints the rows of each view as JSON after each step: made, changed, and opened again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ivme
from ivme.spark.session.session import open_session

VIEWS = {
    "by_slug": "SELECT slug(title) AS slug, SUM(views) AS n FROM page GROUP BY slug(title)",
    "known_ones": "SELECT slug, n FROM by_slug WHERE known(slug)",
    "of": "SELECT views FROM page WHERE slug(title) = :slug",
}
STEPS: tuple[tuple[str, list[tuple[str | None, int]]], ...] = (
    ("insert", [("Hello World", 3), ("hello  world", 4), (None, 1), ("New", 0)]),
    ("delete", [("hello  world", 4), (None, 1)]),
    ("insert", [("NEW", 5), ("Old one", 2)]),
)


def declare(db: Any) -> None:
    db.create_table("page", {"title": "string", "views": "int"})
    db.create_function("slug", "tests.pure_functions:slug", arguments=["string"], returns="string")
    db.create_function(
        "known", "tests.pure_functions:known", arguments=["string"], returns="bool", called_with_null=True
    )
    for name, text in VIEWS.items():
        db.create_view(name, text)


def shown(db: Any) -> str:
    rows = {name: db.view(name)(**({"slug": "hello-world"} if name == "of" else {})) for name in VIEWS}
    return json.dumps({name: sorted(map(list, found), key=str) for name, found in rows.items()})


def main(checkpoint: Path, archives: Path) -> None:
    spark = open_session("functions", master="local[2]", archives=archives)
    with ivme.SparkDatabase(spark, shards=2, checkpoint=checkpoint) as db:
        declare(db)
        for change, rows in STEPS:
            getattr(db, change)("page", rows)
            print(shown(db))
    with ivme.SparkDatabase(spark, shards=2, checkpoint=checkpoint) as db:
        print(shown(db))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
