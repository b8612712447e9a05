"""Heavy and light parts where nothing is heavy: triangles and other counts, edge by edge, beside classical maintenance.

    python -m benchmarks.row_by_row [--edges 20000] [--repeats 7] [--graph FILE]

The graph has no hubs: teams of two to six of six thousand people, each two of a team an edge, as co-authors of papers
are; or it is that of a file. Strategies take turns every 250 edges, so that a busy machine matters little: the median
of the ratios of CPU times counts, and the least times are shown; answers are compared. The first edges meet low
thresholds, and cost most. Exits with 1 if parts cost more than 1.25 times classical maintenance.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from pathlib import Path
from statistics import median
from time import process_time

from ivme.database import Database

Edge = tuple[int, int]

QUERIES = {
    "triangle": "Q(COUNT) = R(A, B), S(B, C), T(C, A)",
    "triangle, one table": "Q(COUNT) = E(A, B), E(B, C), E(A, C)",
    "3-path": "Q(COUNT) = R(A, B), S(B, C), T(C, D)",
}
STRATEGIES = ("classical", "skew")
CHUNK = 250
MOST = 1.25


def teams(people: int = 6000, number: int = 6000, seed: int = 2) -> list[Edge]:
    """The edges of a graph of teams, each once, in a random order."""
    rng = random.Random(seed)
    edges: set[Edge] = set()
    for _ in range(number):
        first = rng.randrange(people)
        team = sorted({(first + int(rng.expovariate(1 / 30))) % people for _ in range(rng.randrange(2, 7))})
        edges.update(itertools.combinations(team, 2))
    return rng.sample(sorted(edges), len(edges))


def read_edges(path: Path) -> list[Edge]:
    lines = (line.split()[:2] for line in path.read_text().splitlines() if line[:1].isdigit())
    found = dict.fromkeys((int(one), int(other)) for one, other in lines)
    return random.Random(2).sample(list(found), len(found))


class Stream:
    """A count that edges are inserted for, one by one, into each of its tables."""

    def __init__(self, text: str, strategy: str) -> None:
        self.db = Database(replan=False)
        self.tables = ("E",) if "E(" in text else ("R", "S", "T")
        for table in self.tables:
            self.db.create_table(table, {"x": "int", "y": "int"})
        self.view = self.db.create_view("v", text, strategy=strategy)

    def seconds(self, edges: list[Edge]) -> float:
        start = process_time()
        for edge in edges:
            for table in self.tables:
                self.db.insert(table, [edge])
        return process_time() - start


def compared(text: str, edges: list[Edge]) -> dict[str, float]:
    """The CPU time of an insert by each strategy, in microseconds: they take turns, some edges at a time."""
    streams = {strategy: Stream(text, strategy) for strategy in STRATEGIES}
    total = dict.fromkeys(streams, 0.0)
    for number, start in enumerate(range(0, len(edges), CHUNK)):
        for strategy in STRATEGIES[:: -1 if number % 2 else 1]:
            total[strategy] += streams[strategy].seconds(edges[start : start + CHUNK])
    assert len({each.view.scalar() for each in streams.values()}) == 1, "the answers differ"
    inserts = len(edges) * len(streams["skew"].tables)
    return {strategy: seconds / inserts * 1e6 for strategy, seconds in total.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--graph", type=Path)
    given = parser.parse_args()
    edges = (teams() if given.graph is None else read_edges(given.graph))[: given.edges]
    worst = 0.0
    for name, text in QUERIES.items():
        rounds = [compared(text, edges) for _ in range(given.repeats)]
        ratio = median(each["skew"] / each["classical"] for each in rounds)
        best = {strategy: min(each[strategy] for each in rounds) for strategy in STRATEGIES}
        worst = max(worst, ratio)
        print(
            f"{name:22} classical {best['classical']:6.2f} µs, skew {best['skew']:6.2f} µs; median ratio {ratio:.2f}",
            flush=True,
        )
    sys.exit(worst > MOST and given.graph is None)


if __name__ == "__main__":
    main()
