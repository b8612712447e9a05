"""Predicates and computed columns: what they take by themselves, over batches and over single rows.

    python -m benchmarks.expressions [--rows 1000 1000000] [--runs 7]

The columns are those of TPC-H's lineitem that Q3 and Q12 read. Results are compared with `evaluate` before the clock
starts; it runs over the computation of columns from codes, as a batch and as a single row does it.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
from collections.abc import Callable

import numpy as np

from benchmarks.measure import now, parse, show
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.rows import RowColumns
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.model import table

LINEITEM = table(
    "lineitem",
    {
        "price": "decimal(15, 2)",
        "discount": "decimal(15, 2)",
        "shipped": "date",
        "committed": "date",
        "received": "date",
        "mode": "string",
    },
)
MODES = ("MAIL", "SHIP", "AIR", "RAIL", "TRUCK", "FOB", "REG AIR")
_CHECKED, _SINGLE = 200, 2000


def _day(year: int) -> Literal:
    return Literal(datetime.date(year, 1, 1))


def _column(name: str) -> Expression:
    return ColumnRef(name)


Q3_WHERE = Call("gt", (_column("shipped"), Literal(datetime.date(1995, 3, 15))))
REVENUE = Call("multiply", (_column("price"), Call("subtract", (Literal(1), _column("discount")))))
Q12_WHERE = Call(
    "and",
    (
        Call("in", (_column("mode"), Literal("MAIL"), Literal("SHIP"))),
        Call("lt", (_column("committed"), _column("received"))),
        Call("lt", (_column("shipped"), _column("committed"))),
        Call("ge", (_column("received"), _day(1994))),
        Call("lt", (_column("received"), _day(1995))),
    ),
)
WANTED = {
    "Q3: filter and product": [
        FeedColumn(Q3_WHERE, "test"),
        *(FeedColumn(REVENUE, form, Q3_WHERE) for form in ("low", "high")),
    ],
    "Q12: filter": [FeedColumn(Q12_WHERE, "test")],
    "LIKE": [FeedColumn(Call("like", (_column("mode"), Literal("%AI%"))), "test")],
}


def rows(count: int, layout: Layout) -> RowBatch:
    """Rows as lineitem has them, by their codes."""
    random = np.random.default_rng(1)
    shipped = random.integers(8036, 10561, count)
    codes = [random.integers(90_000, 10_000_000, count), random.integers(0, 11, count), shipped]
    codes += [shipped + random.integers(-60, 60, count), shipped + random.integers(1, 30, count)]
    names = np.array([layout.domains[5].encode_value(mode) for mode in MODES])
    codes.append(names[random.integers(0, len(MODES), count)])
    return RowBatch(layout, np.ones(count, np.int64), None, list(codes))


def seconds(run: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        start = now()
        run()
        times.append(now() - start)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 1_000_000])
    options = parse(parser)
    domains = native_domains()
    layout = Layout(LINEITEM, domains)
    few = rows(_CHECKED, layout)
    for name, wanted in WANTED.items():
        columns = KernelColumns(LINEITEM, wanted, domains)
        expected = [column.tolist() for column in RowColumns(LINEITEM, wanted, domains).of(few)]
        assert expected == [column.tolist() for column in columns.of(few)], name
        for count in options.rows:
            batch = rows(count, layout)
            taken = seconds(lambda columns=columns, batch=batch: columns.of(batch), options.runs)  # type: ignore[misc]
            show(f"{name}, batches of {count:,}", count / taken, "rows/s")
        single = list(zip(*(column.tolist() for column in few.codes()), strict=True)) * (_SINGLE // _CHECKED)
        taken = seconds(lambda columns=columns, single=single: list(map(columns.row, single)), options.runs)  # type: ignore[misc]
        show(f"{name}, single rows", len(single) / taken, "rows/s")


if __name__ == "__main__":
    main()
