"""TPC-H's queries as they are written, against views on views that a person would split them into, on the same batches.

Run `python -m benchmarks.corpora.hand_split --sf 0.1`. Each query is kept twice, in databases of their own; the answers
are compared first, and times are of batches of 1,000 changes. Queries of one block have nothing to split, and those
with NOT EXISTS, NOT IN or an outer join could not be split before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from typing import Any

from benchmarks.corpora.comparing import difference
from benchmarks.corpora.material import Corpus, corpus
from benchmarks.corpora.measuring import apply, loaded
from benchmarks.measure import now, parse

_EUROPE = "s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'"
_GERMANY = (
    "FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'"
)
_VALUE = "SUM(ps_supplycost * ps_availqty)"

SPLIT: dict[int, dict[str, str]] = {
    2: {
        "low": "SELECT ps_partkey AS part, MIN(ps_supplycost) AS cost FROM partsupp, supplier, nation, region "
        f"WHERE {_EUROPE} GROUP BY ps_partkey",
        "last": "SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment "
        "FROM part, supplier, partsupp, nation, region, low "
        f"WHERE p_partkey = ps_partkey AND {_EUROPE} AND p_size = 15 AND p_type LIKE '%BRASS' "
        "AND p_partkey = low.part AND ps_supplycost = low.cost",
    },
    4: {
        "late": "SELECT DISTINCT l_orderkey FROM lineitem WHERE l_commitdate < l_receiptdate",
        "last": "SELECT o_orderpriority, COUNT(*) AS order_count FROM orders JOIN late ON l_orderkey = o_orderkey "
        "WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' GROUP BY o_orderpriority",
    },
    11: {
        "worth": f"SELECT ps_partkey, {_VALUE} AS value {_GERMANY} GROUP BY ps_partkey",
        "whole": f"SELECT {_VALUE} AS total {_GERMANY}",
        "both": "SELECT ps_partkey, value, total FROM worth, whole",
        "last": "SELECT ps_partkey, value FROM both WHERE value > total * 0.0001000000",
    },
    15: {
        "revenue": "SELECT l_suppkey AS supplier_no, SUM(l_extendedprice * (1 - l_discount)) AS total_revenue "
        "FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01' GROUP BY l_suppkey",
        "most": "SELECT MAX(total_revenue) AS top FROM revenue",
        "last": "SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue, most "
        "WHERE s_suppkey = supplier_no AND total_revenue = top",
    },
    17: {
        "usual": "SELECT l_partkey AS part, AVG(l_quantity) AS mean FROM lineitem GROUP BY l_partkey",
        "sold": "SELECT l_extendedprice, l_quantity, mean FROM lineitem, part, usual WHERE p_partkey = l_partkey "
        "AND p_partkey = usual.part AND p_brand = 'Brand#23' AND p_container = 'MED BOX'",
        "total": "SELECT SUM(l_extendedprice) AS s FROM sold WHERE l_quantity < 0.2 * mean",
        "last": "SELECT s / 7.0 AS avg_yearly FROM total",
    },
    18: {
        "size": "SELECT l_orderkey AS number, SUM(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey",
        "last": "SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity "
        "FROM customer, orders, lineitem, size WHERE size.quantity > 300 AND o_orderkey = size.number "
        "AND c_custkey = o_custkey AND o_orderkey = l_orderkey "
        "GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice",
    },
    20: {
        "sold": "SELECT l_partkey, l_suppkey, SUM(l_quantity) AS quantity FROM lineitem "
        "WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' GROUP BY l_partkey, l_suppkey",
        "stock": "SELECT ps_suppkey, ps_availqty, quantity FROM partsupp, sold, part WHERE ps_partkey = p_partkey "
        "AND p_name LIKE 'forest%' AND l_partkey = ps_partkey AND l_suppkey = ps_suppkey",
        "able": "SELECT DISTINCT ps_suppkey FROM stock WHERE ps_availqty > 0.5 * quantity",
        "last": "SELECT s_name, s_address FROM supplier, nation, able WHERE s_suppkey = ps_suppkey "
        "AND s_nationkey = n_nationkey AND n_name = 'CANADA'",
    },
}
"""For each query its views, the last of which has its rows, in no order."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpora.hand_split", description=__doc__)
    parser.add_argument("--sf", default="0.01", help="the scale factor")
    parser.add_argument("--batches", type=int, default=9)
    given = parse(parser, arguments)
    material = corpus("tpch", given.sf)
    print("| query | as written, ms | split by hand, ms | ratio |\n|---|---|---|---|")
    for number in SPLIT:
        written, split = (
            _measured(material, views, given.batches) for views in ({"last": material.queries[number]}, SPLIT[number])
        )
        found = difference(written[1], split[1])
        assert not found or len(written[1]) >= 100, f"query {number}: {found}"
        ratio = written[0] / split[0]
        print(f"| {number} | {written[0] * 1000:.2f} | {split[0] * 1000:.2f} | {ratio:.2f} |", flush=True)
    return 0


def _measured(material: Corpus, views: dict[str, str], batches: int) -> tuple[float, list[Any]]:
    """The median time of a batch, and the rows at the end."""
    given = loaded(material)
    for name, text in views.items():
        given.database.create_view(name, text)
    times = []
    for _ in range(batches):
        batch = given.contents.mixed()
        start = now()
        apply(given.database, batch)
        times.append((now() - start) * 1000 / batch.size)
    return statistics.median(times), [tuple(row) for row in given.database.view("last")]


if __name__ == "__main__":
    sys.exit(main())
