"""Rounds of changes in Pathway: run by `benchmarks.peers.pathway_peer` with a Python that has Pathway installed.

    PYTHON pathway_rounds.py FOLDER PLAN COLUMN,COLUMN

FOLDER has a Parquet file for each table, and rounds.json: keys and types of the tables' columns, rows to send first,
and the changes of each round. The tables are static; changes of all tables come through one Python connector, so that
a round is one commit, and the next begins when the answer to the last has come. Access requests are rows of a table
`asked`, which has no file: they come with the round's changes, and its answer is theirs alone. Prints the seconds of
each round, and the answers of the first rounds and the last, as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pathway as pw
from pathway_join import joined
from pathway_triangles import triangles

Tables = dict[str, pw.Table]


def hubs(t: Tables) -> pw.Table:
    paths = t["R"].join(t["S"], pw.left.c1 == pw.right.c0).select(a=pw.left.c0, c=pw.right.c1)
    closed = paths.join(t["T"], pw.left.c == pw.right.c0, pw.left.a == pw.right.c1).select(pw.left.a)
    return closed.reduce(n=pw.reducers.count())


def access(t: Tables) -> pw.Table:
    """The rows of each request as of when it came; neither join is kept."""
    found = t["asked"].asof_now_join(t["R"], pw.left.a == pw.right.a).select(pw.left.request, pw.left.a, pw.right.b)
    return found.asof_now_join(t["S"], pw.left.a == pw.right.a).select(pw.left.request, pw.left.b, pw.right.c)


def pairs(t: Tables) -> pw.Table:
    """The number of reachable pairs, by joining them with edges until nothing is new."""

    def longer(reach: pw.Table, edges: pw.Table) -> dict[str, pw.Table]:
        further = reach.join(edges, pw.left.dst == pw.right.src).select(pw.left.src, pw.right.dst)
        found = edges.concat_reindex(further).groupby(pw.this.src, pw.this.dst).reduce(pw.this.src, pw.this.dst)
        return {"reach": found, "edges": edges}

    edges = t["edge"]
    first = edges.groupby(pw.this.src, pw.this.dst).reduce(pw.this.src, pw.this.dst)
    return pw.iterate(longer, reach=pw.iterate_universe(first), edges=edges).reach.reduce(n=pw.reducers.count())


def asof(t: Tables) -> pw.Table:
    """The latest price of each order's key; without one, an order has the price -1."""
    orders, prices = t["orders"], t["prices"]
    found = orders.asof_join_left(
        prices, orders.ts, prices.ts, orders.k == prices.k, defaults={prices.price: -1}
    ).select(orders.number, prices.price)
    return found.filter(pw.this.price >= 0)


def q3(t: Tables) -> pw.Table:
    customers = t["customer"].filter(pw.this.c_mktsegment == "BUILDING")
    orders = t["orders"].filter(pw.this.o_orderdate < 19950315)
    items = t["lineitem"].filter(pw.this.l_shipdate > 19950315)
    placed = customers.join(orders, pw.left.c_custkey == pw.right.o_custkey).select(
        pw.right.o_orderkey, pw.right.o_orderdate, pw.right.o_shippriority
    )
    sold = placed.join(items, pw.left.o_orderkey == pw.right.l_orderkey).select(
        pw.right.l_orderkey, pw.left.o_orderdate, pw.left.o_shippriority, value=revenue(pw.right)
    )
    return sold.groupby(pw.this.l_orderkey, pw.this.o_orderdate, pw.this.o_shippriority).reduce(
        pw.this.l_orderkey, pw.this.o_orderdate, pw.this.o_shippriority, revenue=pw.reducers.sum(pw.this.value)
    )


def q5(t: Tables) -> pw.Table:
    orders = t["orders"].filter((pw.this.o_orderdate >= 19940101) & (pw.this.o_orderdate < 19950101))
    asia = t["region"].filter(pw.this.r_name == "ASIA")
    nations = asia.join(t["nation"], pw.left.r_regionkey == pw.right.n_regionkey).select(
        pw.right.n_nationkey, pw.right.n_name
    )
    sellers = nations.join(t["supplier"], pw.left.n_nationkey == pw.right.s_nationkey).select(
        pw.right.s_suppkey, pw.right.s_nationkey, pw.left.n_name
    )
    placed = (
        t["customer"]
        .join(orders, pw.left.c_custkey == pw.right.o_custkey)
        .select(pw.right.o_orderkey, pw.left.c_nationkey)
    )
    sold = placed.join(t["lineitem"], pw.left.o_orderkey == pw.right.l_orderkey).select(
        pw.left.c_nationkey, pw.right.l_suppkey, value=revenue(pw.right)
    )
    local = sold.join(
        sellers, pw.left.l_suppkey == pw.right.s_suppkey, pw.left.c_nationkey == pw.right.s_nationkey
    ).select(pw.right.n_name, pw.left.value)
    return local.groupby(pw.this.n_name).reduce(pw.this.n_name, revenue=pw.reducers.sum(pw.this.value))


def q10(t: Tables) -> pw.Table:
    orders = t["orders"].filter((pw.this.o_orderdate >= 19931001) & (pw.this.o_orderdate < 19940101))
    items = t["lineitem"].filter(pw.this.l_returnflag == "R")
    sold = orders.join(items, pw.left.o_orderkey == pw.right.l_orderkey).select(
        pw.left.o_custkey, value=revenue(pw.right)
    )
    sums = sold.groupby(pw.this.o_custkey).reduce(pw.this.o_custkey, revenue=pw.reducers.sum(pw.this.value))
    named = (
        t["customer"].join(t["nation"], pw.left.c_nationkey == pw.right.n_nationkey).select(*pw.left, pw.right.n_name)
    )
    return named.join(sums, pw.left.c_custkey == pw.right.o_custkey).select(*pw.left, pw.right.revenue)


def q12(t: Tables) -> pw.Table:
    items = t["lineitem"].filter(
        ((pw.this.l_shipmode == "MAIL") | (pw.this.l_shipmode == "SHIP"))
        & (pw.this.l_commitdate < pw.this.l_receiptdate)
        & (pw.this.l_shipdate < pw.this.l_commitdate)
        & (pw.this.l_receiptdate >= 19940101)
        & (pw.this.l_receiptdate < 19950101)
    )
    urgent = (pw.left.o_orderpriority == "1-URGENT") | (pw.left.o_orderpriority == "2-HIGH")
    both = (
        t["orders"]
        .join(items, pw.left.o_orderkey == pw.right.l_orderkey)
        .select(pw.right.l_shipmode, urgent=pw.if_else(urgent, 1, 0))
    )
    return both.groupby(pw.this.l_shipmode).reduce(
        pw.this.l_shipmode, high=pw.reducers.sum(pw.this.urgent), low=pw.reducers.sum(1 - pw.this.urgent)
    )


def q18(t: Tables) -> pw.Table:
    pieces = (
        t["lineitem"]
        .groupby(pw.this.l_orderkey)
        .reduce(pw.this.l_orderkey, quantity=pw.reducers.sum(pw.this.l_quantity))
    )
    large = pieces.filter(pw.this.quantity > 30_000)
    orders = large.join(t["orders"], pw.left.l_orderkey == pw.right.o_orderkey).select(*pw.right, pw.left.quantity)
    return (
        t["customer"]
        .join(orders, pw.left.c_custkey == pw.right.o_custkey)
        .select(
            pw.left.c_name,
            pw.left.c_custkey,
            pw.right.o_orderkey,
            pw.right.o_orderdate,
            pw.right.o_totalprice,
            pw.right.quantity,
        )
    )


def revenue(items: Any) -> Any:
    return items.l_extendedprice * (100 - items.l_discount)


PLANS = {
    "join": lambda t: joined(t["R"], t["S"], "counts"),
    "triangles": lambda t: triangles(t["E"]),
    **{plan.__name__: plan for plan in (hubs, access, pairs, asof, q3, q5, q10, q12, q18)},
}


Change = tuple[str, int, list[list[Any]]]
KINDS: dict[str, tuple[type, Any]] = {"int": (int, 0), "string": (str, "")}
PATIENCE = 120.0


class Feed(pw.io.python.ConnectorSubject):
    """Sends a round when the one before has been answered; after the least number of them only while time is left."""

    def __init__(self, given: dict[str, Any], answered: threading.Event, keep: Any) -> None:
        super().__init__()
        self.columns, self.keys, self.keep = given["columns"], given["keys"], keep
        self.least, self.budget = given["least"], given["budget"]
        self.rounds = [self.messages(changes, number) for number, changes in enumerate(given["rounds"], 1)]
        self.first = self.messages(given["first"], 0)
        self.answered, self.answers = answered, 0
        self.seconds: list[float] = []

    def messages(self, changes: list[Change], number: int) -> list[tuple[int, dict[str, Any]]]:
        """The changes as the connector takes them: a row of all tables' columns with the others left out."""
        found = []
        for table, sign, rows in changes:
            for row in rows:
                named = dict(zip(self.columns[table], row, strict=True))
                key = "|".join([table, *(str(named[name]) for name in self.keys[table])])
                found.append((sign, {"row_key": key, "row_table": table, **named}))
        return [*found, (1, {"row_key": f"round {number}", "row_table": "rounds", "round_number": number})]

    def run(self) -> None:
        self.send(self.first)
        for number, messages in enumerate(self.rounds, 1):
            began = time.perf_counter()
            self.send(messages)
            self.seconds.append(time.perf_counter() - began)
            slow = number >= self.least and sum(self.seconds) > self.budget
            last = slow or number == len(self.rounds)
            self.keep(last)
            if last:
                return

    def send(self, messages: list[tuple[int, dict[str, Any]]]) -> None:
        for sign, message in messages:
            if sign > 0:
                self.next(**message)
            else:
                self.delete(**message)
        self.commit()
        if not self.answered.wait(PATIENCE):
            raise TimeoutError(f"no answer within {PATIENCE:.0f} seconds")
        self.answered.clear()


def schema_of(columns: dict[str, dict[str, str]]) -> type[pw.Schema]:
    """One row of any table: what it does not have is left at a default."""
    kinds = {name: kind for table in columns.values() for name, kind in table.items()}
    defined = {
        name: pw.column_definition(dtype=KINDS[kind][0], default_value=KINDS[kind][1]) for name, kind in kinds.items()
    }
    made: type[pw.Schema] = pw.schema_builder(
        {
            "row_key": pw.column_definition(dtype=str, primary_key=True),
            "row_table": pw.column_definition(dtype=str),
            "round_number": pw.column_definition(dtype=int, default_value=0),
            **defined,
        }
    )
    return made


def marked(answer: pw.Table, feed: pw.Table, columns: list[str]) -> tuple[pw.Table, str]:
    """The answer with one row more, which changes in each round: without it nothing tells that a round is done."""
    kinds = answer.typehints()
    number = next((name for name in columns if kinds[name] is int), None)
    assert number is not None, "an answer needs a column of integers"
    latest = feed.filter(pw.this.row_table == "rounds").reduce(last=pw.reducers.max(pw.this.round_number))
    filled = {name: -1 - latest.last if name == number else "" if kinds[name] is str else 0 for name in columns}
    return answer.select(*(answer[name] for name in columns)).concat_reindex(latest.select(**filled)), number


def main(folder: Path, plan: str, columns: list[str]) -> None:
    given = json.loads((folder / "rounds.json").read_text("utf-8"))
    rows: Counter[tuple[Any, ...]] = Counter()
    answers: list[Any] = []
    answered = threading.Event()

    def keep(last: bool) -> None:
        if len(answers) < given["checked"] or last:
            answers.append([[*row] for row, count in rows.items() for _ in range(count)])
        if "asked" in given["columns"]:
            rows.clear()

    feed = Feed(given, answered, keep)
    live = pw.io.python.read(feed, schema=schema_of(given["columns"]), autocommit_duration_ms=None)
    tables = {}
    for name, kinds in given["columns"].items():
        tables[name] = live.filter(live.row_table == name).select(*(pw.this[each] for each in kinds))
        file = folder / f"{name}.parquet"
        if file.exists():
            loaded = pw.debug.table_from_pandas(pd.read_parquet(file), id_from=given["keys"][name])
            tables[name] = loaded.concat_reindex(tables[name])
    output, number = marked(PLANS[plan](tables), live, columns)

    reached = [0]

    def changed(**change: Any) -> None:
        if change["row"][number] >= 0:
            rows[tuple(change["row"][name] for name in columns)] += 1 if change["is_addition"] else -1
        elif change["is_addition"]:
            reached[0] = -change["row"][number]

    def ended(_: int) -> None:
        if reached[0] > feed.answers:
            feed.answers = reached[0]
            answered.set()

    pw.io.subscribe(output, on_change=changed, on_time_end=ended)
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"seconds": feed.seconds, "answers": answers}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","))
