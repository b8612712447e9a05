"""Flights between two cities while routes open and close: an access pattern, answered at once after every change.

    python examples/flight_search.py [--routes 2000] [--seed 1]

A city may have several airports, and a route has a number and a price. Two views are kept fresh: direct flights, and
connections with one stop, both for a given pair of cities. A search reads only what it returns; nothing is recomputed
when a route changes.
"""

from __future__ import annotations

import argparse
import random
import time
from dataclasses import dataclass

import ivme

CITIES = ("London", "Zurich", "Oslo", "Paris", "Rome", "Madrid", "Vienna", "Berlin", "Athens", "Lisbon", "Dublin")
Route = tuple[str, int, int, int]
"""Number, origin, destination, price."""

DIRECT = """
    SELECT r.no, r.price FROM routes r
    JOIN airports a ON r.src = a.id JOIN airports b ON r.dst = b.id
    WHERE a.city = :origin AND b.city = :dest"""
ONE_STOP = """
    SELECT r.no AS first, s.no AS second, v.city AS via, r.price, s.price AS onward
    FROM routes r JOIN routes s ON r.dst = s.src
    JOIN airports a ON r.src = a.id JOIN airports v ON r.dst = v.id JOIN airports b ON s.dst = b.id
    WHERE a.city = :origin AND b.city = :dest"""


@dataclass(frozen=True, slots=True)
class Network:
    """Airports with their cities, the routes of the morning, and the day's changes: a route and +1 or -1."""

    airports: list[tuple[int, str]]
    routes: list[Route]
    changes: list[tuple[Route, int]]


def network(routes: int, seed: int) -> Network:
    """A made-up network in which some airports are hubs; one change for every ten routes."""
    rng = random.Random(seed)
    airports = [(number, CITIES[number % len(CITIES)]) for number in range(30)]

    def route(number: int) -> Route:
        src = int(30 * rng.random() ** 2)
        return (f"F{number}", src, (src + 1 + rng.randrange(29)) % 30, rng.randrange(30, 400))

    there = [route(number) for number in range(routes)]
    changes: list[tuple[Route, int]] = []
    open_ = list(there)
    for number in range(routes // 10):
        if number % 2:
            changes.append((open_.pop(rng.randrange(len(open_))), -1))
        else:
            changes.append((route(routes + number), 1))
            open_.append(changes[-1][0])
    return Network(airports, there, changes)


def opened(given: Network) -> tuple[ivme.Database, ivme.View, ivme.View]:
    """The database in the morning, with both searches."""
    db = ivme.Database()
    db.create_table("airports", {"id": "int", "city": "string"}, primary_key="id", static=True)
    db.create_table("routes", {"no": "string", "src": "int", "dst": "int", "price": "int"}, primary_key="no")
    direct, one_stop = db.create_view("direct", DIRECT), db.create_view("one_stop", ONE_STOP)
    db.insert("airports", given.airports)
    db.insert("routes", given.routes)
    return db, direct, one_stop


def show(direct: ivme.View, one_stop: ivme.View, origin: str, dest: str) -> None:
    """The offers for a pair of cities, and the cheapest of both kinds."""
    found = sorted(direct(origin=origin, dest=dest), key=lambda row: (row[1], row[0]))
    began = time.perf_counter()
    stops = list(one_stop(origin=origin, dest=dest))
    took = time.perf_counter() - began
    cheapest = min(stops, key=lambda row: (row[3] + row[4], row[0], row[1]), default=None)
    print(f"{origin} to {dest}: {len(found)} direct, {len(stops)} with one stop (read in {1e3 * took:.1f} ms)")
    if found:
        print(f"  direct from {found[0][1]}: {found[0][0]}")
    if cheapest:
        print(f"  by {cheapest[2]} from {cheapest[3] + cheapest[4]}: {cheapest[0]}, {cheapest[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--routes", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    given = network(options.routes, options.seed)
    db, direct, one_stop = opened(given)
    print(f"in the morning, {len(given.routes):,} routes")
    show(direct, one_stop, "London", "Zurich")
    began = time.perf_counter()
    for route, sign in given.changes:
        (db.insert if sign > 0 else db.delete)("routes", [route])
    took = (time.perf_counter() - began) / len(given.changes)
    print(f"\nafter {len(given.changes):,} changes, {1e6 * took:.0f} µs each")
    show(direct, one_stop, "London", "Zurich")
    show(direct, one_stop, "Oslo", "Rome")


if __name__ == "__main__":
    main()
