"""(2) TPC-H Q3, Q5, Q10, Q12 and Q18 without ORDER BY, over a stream of all tables whose last part comes and goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import tpch_schema, tpch_stream
from benchmarks.peers.sizes import Sizes
from benchmarks.peers.workload import Table, Workload, toggled

KEYS = {
    "region": ("r_regionkey",),
    "nation": ("n_nationkey",),
    "supplier": ("s_suppkey",),
    "customer": ("c_custkey",),
    "orders": ("o_orderkey",),
    "lineitem": ("l_orderkey", "l_linenumber"),
}
INDEXES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "customer": (("c_nationkey",),),
    "supplier": (("s_nationkey",),),
    "nation": (("n_regionkey",),),
    "orders": (("o_custkey",), ("o_orderdate",)),
    "lineitem": (("l_suppkey",),),
}
KINDS = {"int": "int", "string": "string", "date": "int", "decimal(15, 2)": "int"}
READ: Mapping[str, tuple[str, ...]] = {
    "region": ("r_regionkey", "r_name"),
    "nation": ("n_nationkey", "n_name", "n_regionkey"),
    "supplier": ("s_suppkey", "s_nationkey"),
    "customer": tuple(tpch_schema.COLUMNS["customer"]),
    "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority", "o_totalprice", "o_orderpriority"),
    "lineitem": (
        *("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount", "l_returnflag", "l_shipdate"),
        *("l_linenumber", "l_quantity", "l_shipmode", "l_commitdate", "l_receiptdate"),
    ),
}
"""The columns that some of these queries reads: SQLite and PostgreSQL would be slower with the others."""
COLUMNS = {
    name: {column: KINDS[tpch_schema.COLUMNS[name][column]] for column in columns} for name, columns in READ.items()
}
TABLES = {
    "q3": ("customer", "orders", "lineitem"),
    "q5": ("region", "nation", "supplier", "customer", "orders", "lineitem"),
    "q10": ("nation", "customer", "orders", "lineitem"),
    "q12": ("orders", "lineitem"),
    "q18": ("customer", "orders", "lineitem"),
}

Q12 = """
    SELECT l_shipmode,
           SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high,
           SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low
    FROM orders, lineitem
    WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
      AND l_shipdate < l_commitdate AND l_receiptdate >= 19940101 AND l_receiptdate < 19950101
    GROUP BY l_shipmode"""
GROUPS = "c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice"
LARGE = 30_000
"""Hundredths, as prices are in cents: orders of more than 300 pieces."""
JOINED = f"""
    SELECT {GROUPS}, SUM(l_quantity) AS quantity FROM customer, orders, lineitem
    WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey"""
Q18 = f"""{JOINED} AND o_orderkey IN (
        SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > {LARGE})
    GROUP BY {GROUPS}"""
Q18_VIEWS = (
    ("pieces", "SELECT l_orderkey, SUM(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey"),
    (
        "large",
        f"SELECT {GROUPS}, quantity FROM customer, orders, pieces "
        f"WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND quantity > {LARGE}",
    ),
)


def in_integers(sql: str) -> str:
    """The query with dates as numbers and discounts in percent."""
    return re.sub(r"DATE '(\d+)-(\d+)-(\d+)'", r"\1\2\3", sql).replace("(1 - l_discount)", "(100 - l_discount)")


QUERIES = {**{name: in_integers(tpch_schema.QUERIES[name]) for name in ("q3", "q5", "q10")}, "q12": Q12, "q18": Q18}


def integers(table: pa.Table) -> pa.Table:
    """Decimals in hundredths, dates as numbers."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_decimal(column.type):
            column = pa.array(np.rint(column.cast(pa.float64()).to_numpy() * 100).astype(np.int64))
        elif pa.types.is_date(column.type):
            day = pc.add(pc.multiply(pc.month(column), 100), pc.day(column))
            column = pc.add(pc.multiply(pc.year(column), 10_000), day)
        columns[name] = column
    return pa.table(columns).combine_chunks()


def tpch_workloads(sizes: Sizes, data: Path) -> Iterator[Workload]:
    """Each query, with rows one by one and in batches of all its tables."""
    read = tpch_stream.read(tpch_stream.generated(sizes.scale, data), COLUMNS)
    everything = {name: integers(table) for name, table in read.items()}
    for name, sql in QUERIES.items():
        chosen = {table: everything[table] for table in TABLES[name]}
        for size, rounds in ((1, sizes.single_rounds), (sizes.batch, sizes.rounds)):
            loaded, parts = split(chosen, sizes.batch, size, rounds // 2)
            yield Workload(
                key=f"tpch-{name}-{size}",
                title=f"TPC-H {name.upper()}, SF {sizes.scale}, {'one row' if size == 1 else f'batches of {size:,}'}",
                sql=sql,
                tables=tuple(Table(each, COLUMNS[each], KEYS[each], INDEXES.get(each, ())) for each in chosen),
                loaded=loaded,
                rounds=toggled(parts, present=False) * sizes.times(size),
                views=Q18_VIEWS if name == "q18" else (),
                turn=sizes.turns(size),
                triggers=f"{JOINED} GROUP BY {GROUPS}" if name == "q18" else sql,
                kept=f"SELECT {GROUPS}, quantity FROM kept WHERE quantity > {LARGE}" if name == "q18" else "",
                pathway=name,
            )


def split(
    tables: Mapping[str, pa.Table], batch: int, size: int, count: int
) -> tuple[dict[str, pa.Table], list[dict[str, pa.Table]]]:
    """All but the end of the stream of the tables, and the end in parts of `size` rows."""
    batches = list(tpch_stream.stream(dict(tables), batch))
    wanted = -(-size * count // batch)
    end = batches[-wanted - 1 : -1]
    gone = batches[-wanted - 1 :]
    loaded = {}
    for name, table in tables.items():
        last = sum(rows.num_rows for part in gone for each, rows in part if each == name)
        loaded[name] = table.slice(0, table.num_rows - last)
    if size == batch:
        return loaded, [{name: pa.Table.from_batches([rows]) for name, rows in part} for part in end]
    tails = {name: pa.Table.from_batches([rows]).combine_chunks() for name, rows in end[0]}
    singles = [part for part in tpch_stream.stream(tails, size) if part][:count]
    return loaded, [{name: pa.Table.from_batches([rows]) for name, rows in part} for part in singles]
