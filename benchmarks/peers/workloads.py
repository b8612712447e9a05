"""The workloads that need no cluster: joins, graphs, hubs, access requests, reachability; TPC-H has its own module.

The data and the queries are those of the other benchmarks; here they become rounds that all contenders take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import access, closure, join_count, skew, triangles
from benchmarks.graphs import Rows, graph, power_law
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.tpch_workloads import tpch_workloads
from benchmarks.peers.workload import Round, Table, Workload, change, toggled
from benchmarks.skew_instances import stars
from ivme.query.rule import parse_rule

REQUESTS = 10
"""Access requests after each update."""


def parts_of(rows: pa.Table, name: str, size: int) -> Iterator[Mapping[str, pa.Table]]:
    """The rows in slices of `size`, as parts of a round."""
    for start in range(0, rows.num_rows, size):
        yield {name: rows.slice(start, size)}


def table_of(rows: Rows, *columns: str) -> pa.Table:
    return pa.table({name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate(columns)})


def join_counts(sizes: Sizes) -> Iterator[Workload]:
    """(1) Two tables, the number of pairs."""
    tables = tuple(Table(name, {"a": "int", value: "int"}, (value,), (("a",),)) for name, value in ("Rb", "Sc"))
    data = join_count.tables(sizes.join_rows)
    loaded = {name: pa.Table.from_batches([rows]) for name, rows in data.items()}
    fresh = {}
    for table in tables:
        rows = pa.Table.from_batches([join_count.tables(sizes.join_rows, seed=2)[table.name]])
        values = pa.array(np.arange(rows.num_rows) + sizes.join_rows)
        fresh[table.name] = rows.set_column(1, table.key[0], values)
    for size, rounds in ((1, sizes.single_rounds), (sizes.batch, sizes.rounds)):
        cut = [{name: rows.slice(i * size, size) for name, rows in fresh.items()} for i in range(rounds // 2)]
        yield Workload(
            key=f"join-count-{size}",
            title=f"join count, {_rows(size)} of each table",
            sql=join_count.QUERY,
            tables=tables,
            loaded=loaded,
            rounds=toggled(cut, present=False) * sizes.times(size),
            reading="scalar",
            turn=sizes.turns(size),
            triggers=join_count.QUERY,
            pathway="join",
        )


def triangle_counts(sizes: Sizes, folder: Path) -> Iterator[Workload]:
    """(3) Triangles of a graph, edges coming and going."""
    if sizes.graph:
        edges, origin = graph(sizes.graph, folder)
        edges, name = np.unique(edges, axis=0), sizes.graph if origin == "real" else "made graph"
        edges = np.random.default_rng(1).permutation(edges)
    else:
        edges, name = power_law(sizes.edges, sizes.edges // 5), "made graph"
    tail = sizes.batch * (sizes.rounds // 2)
    loaded, fresh = edges[:-tail], table_of(edges[-tail:], "a", "b")
    for size, rounds in ((1, sizes.single_rounds), (sizes.batch, sizes.rounds)):
        yield Workload(
            key=f"triangles-{size}",
            title=f"triangle count, {name}, {_rows(size)}",
            sql=triangles.QUERY,
            tables=(Table("E", {"a": "int", "b": "int"}, ("a", "b"), (("b", "a"),)),),
            loaded={"E": table_of(loaded, "a", "b")},
            rounds=toggled(parts_of(fresh.slice(0, size * (rounds // 2)), "E", size), present=False)
            * sizes.times(size),
            reading="scalar",
            turn=sizes.turns(size),
            triggers=triangles.QUERY,
            pathway="triangles",
        )


def hub_toggles(sizes: Sizes) -> Iterator[Workload]:
    """(4) The row between two hubs goes and comes: it has as many partners as the hubs have."""
    query = parse_rule(skew.COUNTS["triangle"].rule)
    blocks = stars(query, sizes.hub_rows)
    sql = skew.sql_of(query).replace("COUNT(*)", "COUNT(*) AS n")
    centres = [min(block.rows.items(), key=lambda each: len(each[1])) for block in blocks]
    parts = [{name: table_of(rows[:1], "c0", "c1")} for name, rows in centres]
    names = list(blocks[0].rows)
    yield Workload(
        key="hubs",
        title="triangle count, edge between two nodes of high degree",
        sql=sql,
        tables=tuple(Table(name, {"c0": "int", "c1": "int"}, ("c0", "c1"), (("c1", "c0"),)) for name in names),
        loaded={name: table_of(np.concatenate([block.rows[name] for block in blocks]), "c0", "c1") for name in names},
        rounds=toggled(parts * (sizes.single_rounds // (2 * len(parts)) + 1), present=True),
        reading="scalar",
        turn=sizes.turn,
        triggers=sql,
        pathway="hubs",
    )


def access_requests(sizes: Sizes) -> Iterator[Workload]:
    """(5) One update, then the pairs of ten keys."""
    loaded = access.made(sizes.access_rows)
    keys = sizes.access_rows // access.MATCHES
    rng = np.random.default_rng(5)
    values = np.arange(sizes.single_rounds) + sizes.access_rows
    fresh = pa.table({"a": rng.integers(0, keys, sizes.single_rounds), "b": values})
    rounds = []
    for part in parts_of(fresh.slice(0, sizes.single_rounds // 2), "R", 1):
        for sign in (1, -1):
            asked = tuple({"a": int(a)} for a in rng.integers(0, keys, REQUESTS))
            rounds.append(Round((change("R", part["R"], sign),), asked))
    yield Workload(
        key="access",
        title=f"{REQUESTS} look-ups by key after each changed row",
        sql="SELECT R.b, S.c FROM R JOIN S ON R.a = S.a WHERE R.a = :a",
        tables=(
            Table("R", {"a": "int", "b": "int"}, ("b",), (("a",),)),
            Table("S", {"a": "int", "c": "int"}, ("c",), (("a",),)),
        ),
        loaded=loaded,
        rounds=tuple(rounds),
        turn=sizes.turn,
        pathway="access",
        refreshed=False,
    )


def reachability(sizes: Sizes) -> Iterator[Workload]:
    """(6) Reachable pairs, and what ten nodes reach, while edges come and go."""
    if sizes.web:
        edges, origin = closure.edges_of(sizes.web)
        name = f"{sizes.web if origin == 'real' else 'made graph'}, {sizes.web_edges:,} edges"
        edges = np.random.default_rng(1).permutation(np.unique(edges, axis=0))[: sizes.web_edges]
    else:
        edges, name = power_law(sizes.web_edges, sizes.web_edges // 4), "made graph"
    size = min(closure.BATCH, sizes.batch)
    tail = size * (sizes.rounds // 2)
    fresh = table_of(edges[-tail:], "src", "dst")
    given: dict[str, Any] = {
        "tables": (Table("edge", {"src": "int", "dst": "int"}, ("src", "dst")),),
        "loaded": {"edge": table_of(edges[:-tail], "src", "dst")},
    }
    yield Workload(
        key="reach-pairs",
        title=f"reachable pairs, {name}, {_rows(size)}",
        sql=f"SELECT COUNT(*) AS n FROM ({closure.RECURSIVE}) AS pairs",
        rounds=toggled(parts_of(fresh, "edge", size), present=False) * sizes.again,
        turn=sizes.batch_turn,
        views=(("reach", "Q(X, Y) = closure(edge)"),),
        reading="count",
        pathway="pairs",
        **given,
    )
    nodes = np.unique(edges[:, 0])
    asked = tuple({"X": int(x)} for x in nodes[:: max(1, len(nodes) // REQUESTS)][:REQUESTS])
    yield Workload(
        key="reach-from",
        title=f"nodes reachable from {len(asked)} given ones, {name}, {_rows(size)}",
        sql=(
            "WITH RECURSIVE r(dst) AS (SELECT dst FROM edge WHERE src = :X UNION "
            "SELECT e.dst FROM r JOIN edge e ON r.dst = e.src) SELECT dst FROM r"
        ),
        rounds=toggled(parts_of(fresh, "edge", size), present=False, requests=asked) * sizes.again,
        turn=sizes.batch_turn,
        views=(("reach", "Q(Y | X) = closure(edge)(X, Y)"),),
        refreshed=False,
        **given,
    )


def _rows(size: int) -> str:
    return "one row" if size == 1 else f"batches of {size:,}"


def makers(sizes: Sizes, graphs: Path, data: Path) -> dict[str, Callable[[], Iterator[Workload]]]:
    """The workloads by the name with which they are asked for; each is made when its turn comes."""
    return {
        "join-count": lambda: join_counts(sizes),
        "tpch": lambda: tpch_workloads(sizes, data),
        "triangles": lambda: triangle_counts(sizes, graphs),
        "hubs": lambda: hub_toggles(sizes),
        "access": lambda: access_requests(sizes),
        "reachability": lambda: reachability(sizes),
    }
