"""How long does it take to plan a view of up to ten tables?

    python -m benchmarks.planning [--runs 3] [--only NAME]

`create_view` of each shape over empty tables, in CPU time of this process, the least of some runs, each in a database
of its own; the goal is 0.3 s. Exits with 1 if one takes longer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from time import process_time
from typing import Any

from ivme.database import Database
from ivme.query.rule import parse_rule

GOAL = 0.3

NAMES = "ABCDEFGHIJKLMN"


def _atoms(pairs: Iterator[tuple[int, int]] | list[tuple[int, int]]) -> str:
    return ", ".join(f"R{i}({NAMES[a]}, {NAMES[b]})" for i, (a, b) in enumerate(pairs))


def path(length: int) -> str:
    return _atoms([(i, i + 1) for i in range(length)])


def cycle(length: int) -> str:
    return _atoms([(i, (i + 1) % length) for i in range(length)])


def star(rays: int) -> str:
    """A fact of many columns, and a dimension for each."""
    fact = f"F({', '.join(NAMES[:rays])})"
    return ", ".join([fact, *(f"D{i}({NAMES[i]}, x{i})" for i in range(rays))])


def snowflake(arms: int) -> str:
    """A fact whose dimensions have dimensions."""
    fact = f"F({', '.join(NAMES[:arms])})"
    near = [f"D{i}({NAMES[i]}, y{i})" for i in range(arms)]
    return ", ".join([fact, *near, *(f"E{i}(y{i}, x{i})" for i in range(arms))])


def tree(atoms: int) -> str:
    """A binary tree."""
    return _atoms([((i - 1) // 2, i) for i in range(1, atoms + 1)])


def _all(number: int) -> str:
    return ", ".join(NAMES[:number])


SHAPES: dict[str, tuple[str, bool]] = {
    "path of 6, counted": (f"Q(.) = {path(6)}", False),
    "path of 6, listed": (f"Q({_all(7)}) = {path(6)}", False),
    "path of 6, by its ends": (f"Q(. | A, G) = {path(6)}", False),
    "path of 10, counted": (f"Q(.) = {path(10)}", False),
    "path of 10, listed": (f"Q({_all(11)}) = {path(10)}", False),
    "path of 6 from a node": (f"Q({_all(7)[3:]} | A) = {path(6)}", False),
    "path of 10 from a node": (f"Q({_all(11)[3:]} | A) = {path(10)}", False),
    "ten hops from a node": (f"Q(K | A) = {path(10)}", False),
    "tree of 10 from its root": (f"Q({_all(11)[3:]} | A) = {tree(10)}", False),
    "leaves of a tree of 10": (f"Q(F, G, H, I, J, K | A) = {tree(10)}", False),
    "5-cycle, listed": (f"Q({_all(5)}) = {cycle(5)}", False),
    "8-cycle, counted": (f"Q(.) = {cycle(8)}", False),
    "10-cycle, counted": (f"Q(.) = {cycle(10)}", False),
    "10-cycle from a node": (f"Q({_all(10)[3:]} | A) = {cycle(10)}", False),
    "star of 10, by two columns": (f"Q(x0, x1, COUNT) = {star(9)}", False),
    "star of 10 with keys": (f"Q(x0, x1, COUNT) = {star(9)}", True),
    "snowflake of 9": (f"Q(x0, x1, COUNT) = {snowflake(4)}", False),
    "snowflake of 9 with keys": (f"Q(x0, x1, COUNT) = {snowflake(4)}", True),
    "bowtie, counted": ("Q(.) = R(A, B), S(B, C), T(C, A), U(A, D), V(D, E), W(E, A)", False),
    "grid of 2 by 3, counted": ("Q(.) = R(A,B), S(B,C), T(D,E), U(E,F), V(A,D), W(B,E), X(C,F)", False),
    "K4, counted": ("Q(.) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C), W(B, D)", False),
    "Loomis-Whitney 5": (
        "Q(.) = R(A, B, C, D), S(B, C, D, E), T(C, D, E, A), U(D, E, A, B), V(E, A, B, C)",
        False,
    ),
}
"""Rules by name, and whether the first column of a dimension is its key."""


def planned(text: str, *, keyed: bool) -> tuple[float, Any]:
    """The CPU time of one `create_view`, and what it says of the view."""
    db = Database()
    for table in parse_rule(text).tables:
        key = [table.column_names[0]] if keyed and table.name != "F" else None
        db.create_table(table.name, dict.fromkeys(table.column_names, "int"), primary_key=key)
    before = process_time()
    view = db.create_view("view", text)
    return process_time() - before, view.explain()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    planned("Q(A) = R(A)", keyed=False)  # imports are not planning
    late = False
    for name, (text, keyed) in SHAPES.items():
        if given.only in name:
            runs = [planned(text, keyed=keyed) for _ in range(given.runs)]
            best, found = min(run[0] for run in runs), runs[0][1]
            late |= best > GOAL
            told = f"{found.strategy}: update {found.update}, delay {found.delay}"
            print(f"{name:<28} {best:6.3f} s{'  TOO LONG' if best > GOAL else '':<10}  {told}", flush=True)
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
