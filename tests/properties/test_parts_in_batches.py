"""Record batches of tables whose views have heavy and light parts: the kernel cuts them as Python does, or leaves them.

Twins in plain Python get the same batches. Answers are the oracle's, and the invariants of parts hold after each batch.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from tests.example_counts import some_of
from tests.skew_checks import Twins, balance_of

TEXTS = [
    "Q(. | .) = R(A, B), S(B, C), T(C, A)",
    "Q(A, C | .) = R(A, B), S(B, C)",
    "Q(A, SUM(X)) = R(A, B), S(B, X)",
    "Q(B | A) = R(A, B), S(B)",
    "Q(. | .) = E(A, B), E(B, C), E(C, A)",
]

MANY = 200
"""Tables that have so many rows stay about as large."""

Change = tuple[str, int, list[tuple[int, ...]]]


class Stream:
    """Batches that add or take away rows of each table, many of them of one value."""

    def __init__(self, seed: int, widths: Mapping[str, int]) -> None:
        self.rng = random.Random(seed)
        self.there: dict[str, list[tuple[int, ...]]] = {name: [] for name in widths}
        self.widths = widths

    def value(self) -> int:
        return 0 if self.rng.random() < 0.3 else self.rng.randrange(1, 40)

    def batch(self) -> list[Change]:
        tables = self.rng.sample(list(self.widths), self.rng.randrange(1, len(self.widths) + 1))
        return [self.change(table) for table in tables]

    def change(self, table: str) -> Change:
        there = self.there[table]
        count = 160 if len(there) < MANY else self.rng.choice([1, 2, 5, 20, 90, 160])
        if len(there) >= MANY and self.rng.random() < 0.5:
            self.rng.shuffle(there)
            gone, self.there[table] = there[:count], there[count:]
            return table, -1, gone
        rows = [tuple(self.value() for _ in range(self.widths[table])) for _ in range(count)]
        self.there[table] += rows
        return table, 1, rows


def arrow(names: list[str], rows: Sequence[tuple[int, ...]]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(column, pa.int64()) for column in zip(*rows, strict=True)], names)


def apply_all(databases: list[Database], batch: list[Change], columns: Mapping[str, list[str]]) -> None:
    for database in databases:
        with database.batch() as changes:
            for table, sign, rows in batch:
                (changes.insert if sign > 0 else changes.delete)(table, arrow(columns[table], rows))


def check(text: str, seed: int, batches: int, every: int) -> int:
    """How many rows the kernel took without Python."""
    rng = random.Random(seed)
    twins = Twins(text, {"epsilon": rng.choice([Fraction(1, 4), Fraction(1, 2), Fraction(2, 3)])})
    columns = {table.name: list(table.column_names) for table in twins.query.tables}
    stream = Stream(seed, {name: len(names) for name, names in columns.items()})
    for number in range(batches):
        batch = stream.batch()
        apply_all(twins.databases, batch, columns)
        twins.contents = {name: Counter(rows) for name, rows in stream.there.items()}
        if number % every == 0:
            twins.check()
    twins.check()
    native = [view.state.group.rebalancer.native() for view in twins.views if view.state.group.rebalancer]
    assert balance_of(twins.views[0]).minor, "no key changed sides"
    return sum(each.rows for each in native if each is not None)


@pytest.mark.parametrize("text", some_of(TEXTS[1:4], TEXTS[1]))
def test_batches_are_cut_alike(text: str) -> None:
    assert check(text, 1, 24, 6) > 100


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("text", TEXTS)
def test_batches_are_cut_alike_at_length(text: str, seed: int) -> None:
    assert check(text, seed, 30, 10) > 100


def grown(path: Path | None = None) -> Database:
    """A count of triangles over enough rows that few more change nothing."""
    database = Database() if path is None else Database(path, durability="async")
    for name in "RST":
        database.create_table(name, {"a": "int", "b": "int"})
    database.create_view("v", "SELECT COUNT(*) AS n FROM R JOIN S ON R.b = S.a JOIN T ON S.b = T.a AND T.b = R.a")
    rng = random.Random(3)
    for name in "RST":
        database.insert(name, arrow(["a", "b"], [(rng.randrange(90), rng.randrange(90)) for _ in range(3000)]))
    return database


@pytest.mark.parametrize("is_durable", [False, True])
def test_the_kernel_takes_a_batch_in_one_call(
    is_durable: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with grown(tmp_path / "db" if is_durable else None) as database:
        before = database.view("v").scalar()
        rows = [(number % 90, number // 90) for number in range(300)]
        with monkeypatch.context() as patched:
            runtime: Any = database.definitions.runtime
            patched.setattr(runtime, "transact", lambda *_, **__: pytest.fail("the batch path took it"))
            with database.batch() as batch:
                for name in "RST":
                    batch.insert(name, arrow(["a", "b"], rows))
            database.view("v").verify()
            assert database.view("v").scalar() > before
            with database.batch() as batch:
                for name in "RST":
                    batch.delete(name, arrow(["a", "b"], rows))
        assert database.view("v").scalar() == before
        database.view("v").verify()
    if is_durable:
        with Database(tmp_path / "db") as again:
            assert again.view("v").scalar() == before
