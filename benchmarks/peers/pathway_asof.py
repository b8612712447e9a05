"""An ASOF join in Pathway: what of the views in order it maintains under changes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import pyarrow as pa

from benchmarks.peers.install import pathway_python
from benchmarks.peers.pathway_peer import pathway_result
from benchmarks.peers.workload import Table, Workload, toggled

QUERY = "SELECT o.number, p.price FROM orders o ASOF JOIN prices p ON o.k = p.k AND o.ts >= p.ts"
BUDGET = 20.0
_TABLES = (
    Table("orders", {"number": "int", "k": "int", "ts": "int"}, ("number",)),
    Table("prices", {"k": "int", "ts": "int", "price": "int"}, ("k", "ts")),
)


def pathway_asof(tables: Mapping[str, pa.Table], prices: Sequence[tuple[int, ...]]) -> float:
    """Milliseconds on the wall for a price that comes or goes, its changes read; ivme's answers are compared."""
    names = tables["prices"].column_names
    parts = [{"prices": pa.table({name: [row[i]] for i, name in enumerate(names)})} for row in prices]
    workload = Workload(
        key="asof",
        title="ASOF join",
        sql=QUERY,
        tables=_TABLES,
        loaded=tables,
        rounds=toggled(parts, present=False),
        pathway="asof",
    )
    return 1000 * statistics.median(pathway_result(pathway_python(), workload, BUDGET).theirs)
