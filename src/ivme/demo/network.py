"""A flight network made up from a seed: airports in named cities, routes between them, and a day of changes.

Hubs have many routes and most airports have few, so that triangles are many and unevenly spread, as in real networks.
Night flights are few, and most of them start or end at a base: by night some airports reach hundreds of others, and
most reach none.
The same seed gives the same files, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

AIRPORTS = 3_000
ROUTES = 200_000
FILES = 20
FARES = 200
CHANGES = 1_000
BASES = 40
SEED = 2026

# fmt: off
_PLACES = (
    "London", "Zurich", "Oslo", "Lima", "Nairobi", "Osaka", "Quito", "Lagos", "Perth", "Hanoi", "Cork", "Porto",
    "Lyon", "Turin", "Split", "Riga", "Gdansk", "Izmir", "Tunis", "Accra", "Dakar", "Cairo", "Amman", "Muscat",
    "Delhi", "Dhaka", "Hue", "Cebu", "Busan", "Kobe", "Suva", "Hobart", "Denver", "Austin", "Tulsa", "Boise",
    "Halifax", "Recife", "Cusco", "Salta",
)
# fmt: on
_QUALIFIERS = ("", "New ", "Port ", "Fort ", "Lake ", "Upper ", "Lower ", "East ", "West ", "North ", "South ", "Old ")
CITIES = tuple(f"{qualifier}{place}" for qualifier, place in product(_QUALIFIERS, _PLACES))
_AIRLINES = ("LX", "BA", "SK", "LA", "KQ", "JL", "QF", "VN", "TP", "TK")

Columns = tuple[np.ndarray[Any, Any], ...]
"""The columns of routes, as in `_table`."""


@dataclass(frozen=True, slots=True)
class Network:
    """Where the files are. The changes wait in a folder of their own until the demonstration lets them in."""

    airports: Path
    routes: Path
    waiting: Path
    changes: Path
    waiting_fares: Path
    fares: Path

    def begin_day(self) -> None:
        """Lets the changes in."""
        for waiting, folder in ((self.waiting, self.changes), (self.waiting_fares, self.fares)):
            for file in sorted(waiting.iterdir()):
                file.rename(folder / file.name)


def make_network(folder: Path) -> Network:
    """Writes the network; about a second."""
    network = Network(
        folder / "airports.csv",
        folder / "routes.parquet",
        folder / "day",
        folder / "changes",
        folder / "day_of_fares",
        folder / "fares",
    )
    for each in (folder, network.waiting, network.changes, network.waiting_fares, network.fares):
        each.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(SEED)
    cities = [CITIES[i % len(CITIES)] for i in range(AIRPORTS)]
    pc.write_csv(pa.table({"id": np.arange(AIRPORTS), "city": cities}), network.airports)
    routes = _routes(random, 0, ROUTES)
    pq.write_table(_table(routes), network.routes)
    _write_day(random, routes, network.waiting)
    prices = random.integers(20, 900, ROUTES)
    pq.write_table(pa.table({"no": routes[0].tolist(), "price": prices}), folder / "fares.parquet")
    _write_fares(random, network.waiting_fares)
    return network


def _routes(random: np.random.Generator, first: int, size: int) -> Columns:
    """Routes with numbers from `first` on; an airport is chosen the more often the lower its number."""
    weights = 1.0 / (np.arange(AIRPORTS) + 20.0) ** 0.7
    ends = random.choice(AIRPORTS, size=(size, 2), p=weights / weights.sum())
    loops = ends[:, 0] == ends[:, 1]
    ends[loops, 1] = (ends[loops, 1] + 1) % AIRPORTS
    numbers = np.array([f"{_AIRLINES[i % len(_AIRLINES)]} {i}" for i in range(first, first + size)])
    at_base = (ends % (AIRPORTS // BASES) == 0).any(axis=1)
    night = random.random(size) < np.where(at_base, 0.2, 0.002)
    return numbers, ends[:, 0], ends[:, 1], night


def _table(routes: Columns) -> pa.Table:
    numbers, sources, targets, night = routes
    return pa.table({"no": numbers.tolist(), "src": sources, "dst": targets, "night": night})


def _write_day(random: np.random.Generator, routes: Columns, folder: Path) -> None:
    """Each file takes some routes away, no route twice, and adds as many new ones."""
    half = CHANGES // 2
    gone = random.permutation(ROUTES)[: FILES * half].reshape(FILES, half)
    for number in range(FILES):
        old = tuple(column[gone[number]] for column in routes)
        new = _routes(random, ROUTES + number * half, half)
        columns = (np.concatenate(pair) for pair in zip(old, new, strict=True))
        operations = ["delete"] * half + ["insert"] * half
        name = _file_name(number)
        pc.write_csv(_table(tuple(columns)).add_column(0, "op", pa.array(operations)), folder / name)


def _write_fares(random: np.random.Generator, folder: Path) -> None:
    """Each file has upserts and deletes of fares, of new flights too; one in ten is of an hour before, or a repeat."""
    events: list[tuple[str, str, int | None, int]] = []
    for number in range(FILES):
        flights = random.integers(0, ROUTES + number * CHANGES // 2, FARES)
        prices, late = random.integers(20, 900, FARES), random.random(FARES) < 0.1
        for flight, price, is_late in zip(flights.tolist(), prices.tolist(), late.tolist(), strict=True):
            at = len(events) - (FARES if is_late else 0)
            no, is_delete = f"{_AIRLINES[flight % len(_AIRLINES)]} {flight}", price < 60
            events.append(("d" if is_delete else "u", no, None if is_delete else price, at))
        chosen = [*events[-FARES:], *events[-FARES :: FARES // 10]]
        columns = dict(zip(("op", "no", "price", "at"), zip(*chosen, strict=True), strict=True))
        pc.write_csv(pa.table({name: list(values) for name, values in columns.items()}), folder / _file_name(number))


def _file_name(number: int) -> str:
    minutes = number * 24 * 60 // FILES
    return f"2026-06-01T{minutes // 60:02d}-{minutes % 60:02d}.csv"
