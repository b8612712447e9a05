"""A table that is given another name: interrupted at whatever line, it has the one or the other, with all its rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

import ivme
from ivme.errors import DataError
from tests.databases import make_database
from tests.interrupts.means import Lines

ROWS = [(n, f"name {n % 3}") for n in range(40)]


@pytest.mark.parametrize("kind", ["memory", "pure", "durable"])
def test_a_name_is_the_old_or_the_new_one_at_whatever_line_renaming_is_interrupted(kind: str, tmp_path: Path) -> None:
    db = make_database("pure") if kind == "pure" else ivme.Database(tmp_path / "db" if kind == "durable" else None)
    db.sql("CREATE TABLE t0 (a BIGINT PRIMARY KEY, b STRING); CREATE TABLE part (a BIGINT REFERENCES t0 (a))")
    db.insert("t0", ROWS)
    current, line, done = 0, 1, False
    while not done:
        to = current + 1
        lines = Lines(line)
        done = lines.run(partial(db.rename_table, f"t{current}", f"t{to}"))
        names = db.tables
        assert names in ((f"t{current}", "part"), (f"t{to}", "part")), lines.where
        current = int(names[0][1:])
        assert sorted(ROWS) == sorted(db.table(names[0])), lines.where
        assert names[0] == db.relation("part").references[0].table, lines.where
        assert db.definitions.runtime.lock.pending is None
        with pytest.raises(DataError):
            db.insert(names[0], [ROWS[3]])
        line += {"memory": 4, "pure": 23, "durable": 5}[kind]
    db.close()
    if kind == "durable":
        with ivme.Database(tmp_path / "db") as again:
            assert (names, sorted(ROWS)) == (again.tables, sorted(again.table(names[0])))
