"""Heavy and light parts where nothing is heavy: triangles and other counts, edge by edge, beside classical maintenance.

    python -m benchmarks.row_by_row [--edges 20000] [--repeats 7] [--graph FILE]

The graph has no hubs: teams of two to six of six thousand people, each two of a team an edge, as co-authors of papers
are; or it is that of a file. Strategies take turns, and the least CPU time an edge of each counts, so that a busy
machine matters little; answers are compared. The first edges meet low thresholds, and cost most. Exits with 1 if parts
cost more than 1.25 times classical maintenance.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from pathlib import Path
from time import process_time

from ivme.database import Database

Edge = tuple[int, int]

QUERIES = {
    "triangle": "Q(COUNT) = R(A, B), S(B, C), T(C, A)",
    "triangle, one table": "Q(COUNT) = E(A, B), E(B, C), E(A, C)",
    "3-path": "Q(COUNT) = R(A, B), S(B, C), T(C, D)",
}
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


def microseconds(text: str, strategy: str, edges: list[Edge]) -> tuple[float, object]:
    """The time of an edge, inserted into each table, and the answer."""
    db = Database(replan=False)
    tables = ("E",) if "E(" in text else ("R", "S", "T")
    for table in tables:
        db.create_table(table, {"x": "int", "y": "int"})
    view = db.create_view("v", text, strategy=strategy)
    start = process_time()
    for edge in edges:
        for table in tables:
            db.insert(table, [edge])
    return (process_time() - start) / len(edges) / len(tables) * 1e6, view.scalar()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--graph", type=Path)
    given = parser.parse_args()
    edges = (teams() if given.graph is None else read_edges(given.graph))[: given.edges]
    worst = 0.0
    for name, text in QUERIES.items():
        rounds = [
            {strategy: microseconds(text, strategy, edges) for strategy in ("classical", "skew")}
            for _ in range(given.repeats)
        ]
        assert len({answer for each in rounds for _, answer in each.values()}) == 1, "the answers differ"
        best = {strategy: min(each[strategy][0] for each in rounds) for strategy in rounds[0]}
        ratio = best["skew"] / best["classical"]
        worst = max(worst, ratio)
        print(
            f"{name:22} classical {best['classical']:6.2f} µs, skew {best['skew']:6.2f} µs: ratio {ratio:.2f}",
            flush=True,
        )
    sys.exit(worst > MOST and given.graph is None)


if __name__ == "__main__":
    main()
