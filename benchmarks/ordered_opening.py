"""Opening a directory with a view in order: its map is built from the rows of its block. What would an image gain?

    python -m benchmarks.ordered_opening [--rows 1000000] [--runs 3] [--cpu]

An image would have the rows in their order, or the nodes of the tree as they are. Of both, the bytes are read from a
file that was just written, with a checksum; rows are then loaded, as those that are built are. Both would also be
written with each snapshot.
"""

from __future__ import annotations

import argparse
import tempfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import median, now, parse, seconds, show
from ivme import Database, _kernel
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.native_backend import native_columns
from ivme.engine.ordered import OrderedColumn, place_keys
from ivme.query.types import parse_type

QUERY = "SELECT g, id, x FROM r ORDER BY x DESC LIMIT 10"


def written(path: Path, rows: int, *, ordered: bool) -> None:
    """A directory with a snapshot of a table and a view over all of its rows, in order or not."""
    choose = np.random.default_rng(1)
    values = {"g": choose.integers(0, 1000, rows), "id": np.arange(rows), "x": choose.integers(0, 2**40, rows)}
    with Database(path, durability="async") as db:
        db.create_table("r", dict.fromkeys(values, "int"))
        db.insert("r", pa.table(values))
        db.create_view("v", QUERY if ordered else QUERY.split(" ORDER")[0])
        db.checkpoint()


def opening(path: Path) -> float:
    start = now()
    with Database(path) as db:
        taken = now() - start
        assert next(iter(db.view("v")))
        return taken


def read_back(file: Path) -> Any:
    """The words of a file whose checksum is computed."""
    data = file.read_bytes()
    zlib.crc32(data)
    return np.frombuffer(data, np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parse(parser)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for ordered in (False, True):
            written(folder / str(ordered), given.rows, ordered=ordered)
        for ordered, what in ((False, "all rows, no order"), (True, "the first ten by an ordered map")):
            path = folder / str(ordered)
            show(f"opening {given.rows:,} rows, {what}", median(partial(opening, path), given.runs), "s")
        compare_images(folder / "image", given.rows, given.runs)


def compare_images(file: Path, rows: int, runs: int) -> None:
    """The map alone: built from rows in the order of their ids, and from images of rows and of nodes."""
    domains = [native_domains().domain(parse_type("int"))] * 3
    order = native_columns(place_keys([OrderedColumn(2, domains[2], descending=True)], [], domains))
    choose = np.random.default_rng(1)
    columns = [choose.integers(0, 1000, rows), np.arange(rows), choose.integers(0, 2**40, rows)]
    ones = np.ones(rows, np.int64)

    def built(given: list[Any]) -> Any:
        made = _kernel.OrderedMap(order, 0, [])
        made.load(given, ones)
        return made

    size = built(columns).memory_bytes()
    show("the map, built", median(lambda: seconds(lambda: built(columns)), runs), "s")
    places = np.argsort(-columns[2], kind="stable")
    np.concatenate([column[places] for column in columns]).tofile(file)
    show("the map, rows in order read", median(lambda: seconds(lambda: built(np.split(read_back(file), 3))), runs), "s")
    np.zeros(size // 8, np.int64).tofile(file)
    show("the map, nodes read", median(lambda: seconds(lambda: read_back(file).copy()), runs), "s")
    show("bytes of the nodes, for each row", size / rows, "bytes")


if __name__ == "__main__":
    main()
