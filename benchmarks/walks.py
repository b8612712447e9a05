"""How long the way through the code is: the calls and files of four walks that a newcomer would take with a debugger.

    python -m benchmarks.walks [--files] [--calls N]

Creating a view over two tables, of which one plan is made or two are compared, inserting one row, and an Arrow batch
into a view that somebody follows. Each is counted the second time, when everything is imported: calls of Python
functions outside of sqlglot and of what it calls in Python's library (a generator that goes on counts again), and the
files of ivme that they are in. The numbers are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import pyarrow as pa

import ivme
from ivme.database import Database

TREE = "SELECT R.a, R.b, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a, R.b"
VIEW = "SELECT R.a, COUNT(*) AS n FROM R JOIN S ON R.b = S.b GROUP BY R.a"
HOME = str(Path(ivme.__file__).parent)


@dataclass(frozen=True, slots=True)
class Walk:
    """The functions of ivme and of others that were called, each with how often; sqlglot's are left out."""

    called: Counter[CodeType]

    @property
    def calls(self) -> int:
        return sum(self.called.values())

    @property
    def files(self) -> Counter[str]:
        """The files of ivme, each with the calls of its functions."""
        found: Counter[str] = Counter()
        for code, number in self.called.items():
            if code.co_filename.startswith(HOME):
                found[code.co_filename.removeprefix(HOME + "/")] += number
        return found

    def times(self, function: Callable[..., object]) -> int:
        """How often a function was called."""
        return self.called[function.__code__]


def walk(work: Callable[[], object]) -> Walk:
    """The calls that a piece of work makes."""
    called: Counter[CodeType] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not _is_of_sqlglot(frame):
            called[frame.f_code] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    del called[walk.__code__]
    return Walk(called)


def _is_of_sqlglot(frame: FrameType | None) -> bool:
    """Whether a call is sqlglot's, or one that it makes in Python's library."""
    while frame is not None and not frame.f_code.co_filename.startswith(HOME):
        if "sqlglot" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def tables() -> Database:
    """The two tables of the walks, with a row each."""
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    database.create_table("S", {"b": "int", "c": "int"})
    database.insert("R", [(1, 2)])
    database.insert("S", [(2, 3)])
    return database


def create_view(query: str) -> Walk:
    """A view over two tables, in a database that has none yet."""
    tables().create_view("v", query)
    database = tables()
    return walk(lambda: database.create_view("v", query))


def one_row() -> Walk:
    """One row, as a tuple, into a table that a view reads."""
    database = tables()
    view = database.create_view("v", VIEW)
    database.insert("R", [(7, 2)])
    found = walk(lambda: database.insert("R", [(8, 2)]))
    view.verify()
    return found


def followed_batch() -> Walk:
    """1,000 rows from Arrow into a table that a view reads, whose changes are then taken."""
    database = tables()
    view = database.create_view("v", VIEW)
    changes = view.changes()
    batches = [pa.table({"a": range(start, start + 1000), "b": [2] * 1000}) for start in (0, 1000)]

    def work(batch: pa.Table) -> None:
        database.insert("R", batch)
        for delta in changes:
            delta.to_arrow()

    work(batches[0])
    found = walk(lambda: work(batches[1]))
    view.verify()
    return found


WALKS: dict[str, Callable[[], Walk]] = {
    "create_view over two tables, one plan": partial(create_view, TREE),
    "create_view over two tables, two plans": partial(create_view, VIEW),
    "one row inserted": one_row,
    "an Arrow batch of 1,000 rows, followed": followed_batch,
}


def main() -> None:
    """Prints the calls and files of each walk."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files of ivme, by calls")
    parser.add_argument("--calls", type=int, default=0, help="list so many functions, by calls")
    given = parser.parse_args()
    print(f"{'walk':42}{'calls':>8}{'in ivme':>9}{'files':>7}")
    for name, taken in ((name, take()) for name, take in WALKS.items()):
        print(f"{name:42}{taken.calls:8,}{taken.files.total():9,}{len(taken.files):7}")
        for file, number in taken.files.most_common() if given.files else ():
            print(f"    {number:8,}  {file}")
        for code, number in taken.called.most_common(given.calls):
            print(f"    {number:8,}  {code.co_filename.removeprefix(HOME + '/')}: {code.co_qualname}")


if __name__ == "__main__":
    main()
