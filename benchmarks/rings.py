"""A regression over a join kept fresh, row by row: the covariance ring in the kernel, and in plain Python.

python -m benchmarks.rings [--rows 450] [--updates 2000]

Both views are over one database, and equal but for rounding before anything is timed. A change is a row of `house` that
goes and comes again; times are CPU time, each view alone.
"""

from __future__ import annotations

import argparse
import random
from time import process_time

from ivme.database import Database
from ivme.rings import Covariance, CovarianceElement

QUERY = "Q(.|.) = house(Z, A, R), zone(Z, P)"


class PlainCovariance(Covariance):
    """The same ring as one of a user: its elements are objects of Python."""


def filled(ring: Covariance, rows: int) -> tuple[Database, CovarianceElement]:
    """A database with the view, and its element."""
    rng = random.Random(1)
    db = Database()
    db.create_table("house", {"zone": "int", "area": "float", "rooms": "int"})
    db.create_table("zone", {"zone": "int", "price": "float"})
    db.insert("zone", [(zone, rng.gauss(10, 2)) for zone in range(rows // 10)])
    db.insert("house", [(i % (rows // 10), rng.gauss(100, 20), i % 5) for i in range(rows)])
    view = db.create_ring_view("model", QUERY, ring)
    element = view.value()
    assert isinstance(element, CovarianceElement)
    return db, element


def microseconds(db: Database, updates: int) -> float:
    """The time of an update."""
    houses = list(db.table("house"))[:updates]
    start = process_time()
    for number in range(updates // 2):
        row = houses[number % len(houses)]
        db.delete("house", [row])
        db.insert("house", [row])
    return (process_time() - start) / (updates // 2 * 2) * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=450)
    parser.add_argument("--updates", type=int, default=2000)
    given = parser.parse_args()
    variables = ("A", "R", "P")
    kernel, element = filled(Covariance(*variables), given.rows)
    plain, expected = filled(PlainCovariance(*variables), given.rows)
    assert element.is_close(expected)
    mine, others = microseconds(kernel, given.updates * 10), microseconds(plain, given.updates)
    for db in (kernel, plain):
        db.view("model").verify()
    print(f"{given.rows} rows, 3 variables: kernel {mine:.2f} µs an update, plain Python {others:.1f} µs")
    print(f"ratio {others / mine:.0f}")


if __name__ == "__main__":
    main()
