"""A batch of record batches and lists is made whole.

Record batches that had been encoded were forgotten if a list of a few rows came behind them: only the list was applied.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from tests.databases import BACKENDS, make_database

TABLES = {"r": ("a", "b"), "s": ("b", "c"), "t": ("c",)}


def _as_given(rng: random.Random, table: str, rows: list[tuple[Any, ...]]) -> Any:
    """Rows as a list, a table of Arrow, or a record batch."""
    columns = [pa.array([row[i] for row in rows], pa.int64()) for i in range(len(TABLES[table]))]
    return rng.choice(
        [rows, pa.table(columns, names=TABLES[table]), pa.RecordBatch.from_arrays(columns, names=TABLES[table])]
    )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("seed", range(6))
def test_whatever_forms_its_rows_have_a_batch_is_made_whole(backend: str, seed: int) -> None:
    rng, db = random.Random(seed), make_database(backend)
    for table, columns in TABLES.items():
        db.create_table(table, dict.fromkeys(columns, "int"))
    view = db.create_view("v", "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY r.a")
    there: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in TABLES}
    for _ in range(15):
        with db.batch() as batch:
            for _ in range(rng.randint(1, 4)):
                table = rng.choice(list(TABLES))
                known = list(there[table].elements())
                if known and rng.random() < 0.4:
                    rows = rng.sample(known, rng.randint(1, len(known)))
                    batch.delete(table, _as_given(rng, table, rows))
                    there[table] -= Counter(rows)
                else:
                    rows = [tuple(rng.randrange(3) for _ in TABLES[table]) for _ in range(rng.randint(1, 3))]
                    batch.insert(table, _as_given(rng, table, rows))
                    there[table] += Counter(rows)
        for table, rows_there in there.items():
            assert rows_there == Counter(db.table(table)), table
    view.verify()
