"""How long the search for the best access-top order takes, on dense, cyclic and random queries.

    python -m benchmarks.order_search

The promise: exact up to 8 variables in under a second, and 10 in under ten seconds, on two cores.
"""

from __future__ import annotations

import random
import sys
from itertools import combinations
from time import perf_counter

from ivme.plan.order.search import best_order
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph

LIMITS = {8: 1.0, 10: 10.0}
"""Seconds allowed by number of variables."""


def clique(n: int) -> list[frozenset[str]]:
    """Every pair of variables."""
    return [frozenset(pair) for pair in combinations(_names(n), 2)]


def cycle(n: int) -> list[frozenset[str]]:
    """A ring of binary edges."""
    names = _names(n)
    return [frozenset({names[i], names[(i + 1) % n]}) for i in range(n)]


def loomis_whitney(n: int) -> list[frozenset[str]]:
    """All sets of n - 1 variables."""
    return [frozenset(part) for part in combinations(_names(n), n - 1)]


def scattered(n: int, seed: int) -> list[frozenset[str]]:
    """Random edges of two to four variables that cover all of them."""
    rng = random.Random(seed)
    edges = [frozenset(rng.sample(_names(n), rng.randint(2, 4))) for _ in range(n + 2)]
    missing = set(_names(n)).difference(*edges)
    return edges + ([frozenset(missing)] if missing else [])


def _names(n: int) -> list[str]:
    return [f"X{i}" for i in range(n)]


def timed(edges: list[frozenset[str]], seed: int) -> tuple[float, bool, str]:
    """Seconds, whether the answer is exact, and the widths, under a random access pattern."""
    rng = random.Random(seed)
    hypergraph = Hypergraph(tuple(Edge(f"R{i}", edge) for i, edge in enumerate(edges)))
    roles = {variable: rng.choice(("bound", "output", "input")) for variable in sorted(hypergraph.vertices)}
    output = frozenset(v for v, role in roles.items() if role == "output")
    given = frozenset(v for v, role in roles.items() if role == "input")
    patterns = [Cqap(hypergraph, frozenset(), frozenset()), Cqap(hypergraph, output, given)]
    wholes = [fracture(pattern).whole for pattern in patterns]
    start = perf_counter()
    choices = [best_order(whole) for whole in wholes]
    seconds = (perf_counter() - start) / len(choices)
    shown = ", ".join(f"({choice.widths.dynamic}, {choice.widths.static})" for choice in choices)
    return seconds, all(choice.exact for choice in choices), shown


def main() -> int:
    """Prints a line for each query; exits with 1 if one is too slow or not exact."""
    late = False
    for n, limit in LIMITS.items():
        shapes = {"clique": clique(n), "cycle": cycle(n), "loomis-whitney": loomis_whitney(n)}
        shapes |= {f"random {seed}": scattered(n, seed) for seed in range(5)}
        for name, edges in shapes.items():
            seconds, exact, widths = timed(edges, seed=n)
            failed = seconds > limit or not exact
            late |= failed
            print(f"{n:>3} variables  {name:<15} {seconds:>7.3f} s  (δ, w) = {widths}{'  TOO SLOW' if failed else ''}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
