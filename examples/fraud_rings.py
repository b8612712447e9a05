"""Rings in a stream of payments: money that comes back to its payer through two or three other accounts.

    python examples/fraud_rings.py [--payments 3000] [--window 1000] [--seed 1]

Payments come in small batches and count for as long as `--window` newer ones have not come. For every payment from A
to B that came in, two access requests ask who closes a ring: the C that B pays and that pays A, and the pairs C, D.
Both views are cyclic joins, which no trigger maintains cheaply where an account has many partners.
"""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Iterator

import ivme

Payment = tuple[int, int]
THREE = "Q(C | A, B) = paid(A, B), paid(B, C), paid(C, A)"
FOUR = "Q(C, D | A, B) = paid(A, B), paid(B, C), paid(C, D), paid(D, A)"
COUNT = "Q(COUNT) = paid(A, B), paid(B, C), paid(C, A)"


def payments(count: int, seed: int) -> list[Payment]:
    """Payments of customers to shops and among shops, with rings planted here and there."""
    rng = random.Random(seed)
    made: list[Payment] = []
    planted = 1_000_000
    while len(made) < count:
        if rng.random() < 0.01:
            size = rng.choice((3, 4))
            ring = list(range(planted, planted + size))
            planted += size
            made += [(account, ring[(place + 1) % size]) for place, account in enumerate(ring)]
        else:
            payer, payee = int(400 * rng.random() ** 2), int(400 * rng.random() ** 2)
            if payer < payee:
                made.append((payer, payee))
    return made[:count]


def batches(stream: list[Payment], size: int) -> Iterator[list[Payment]]:
    for start in range(0, len(stream), size):
        yield stream[start : start + size]


class Watch:
    """The payments of the window, and the rings that new ones close."""

    def __init__(self, window: int) -> None:
        self.window, self.seen = window, deque[Payment]()
        self.db = ivme.Database()
        self.db.create_table("paid", {"payer": "int", "payee": "int"})
        self.three = self.db.create_view("three", THREE)
        self.four = self.db.create_view("four", FOUR)
        self.count = self.db.create_view("count", COUNT)

    def take(self, new: list[Payment]) -> set[tuple[int, ...]]:
        """Applies a batch, lets old payments go, and gives the rings through the new payments."""
        self.seen.extend(new)
        gone = [self.seen.popleft() for _ in range(max(0, len(self.seen) - self.window))]
        with self.db.batch() as batch:
            batch.insert("paid", new)
            batch.delete("paid", gone)
        rings = set()
        for a, b in set(new):
            rings |= {rotated((a, b, c)) for (c,) in self.three(A=a, B=b)}
            rings |= {rotated((a, b, c, d)) for c, d in self.four(A=a, B=b)}
        return {ring for ring in rings if len(set(ring)) == len(ring)}


def rotated(ring: tuple[int, ...]) -> tuple[int, ...]:
    """The same ring, told from its smallest account."""
    first = ring.index(min(ring))
    return ring[first:] + ring[:first]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payments", type=int, default=3_000)
    parser.add_argument("--window", type=int, default=1_000)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    watch = Watch(options.window)
    print(f"a payment costs {watch.count.explain().update} to count rings of three")
    reported: set[tuple[int, ...]] = set()
    for number, new in enumerate(batches(payments(options.payments, options.seed), options.batch), 1):
        for ring in sorted(watch.take(new) - reported):
            reported.add(ring)
            print(f"batch {number}: ring of {len(ring)}: {' pays '.join(map(str, (*ring, ring[0])))}")
    walks = watch.count.scalar()
    print(f"{len(reported)} rings in {options.payments:,} payments; the window has {walks} closed walks of three now")


if __name__ == "__main__":
    main()
