"""The same random statements on ivme and on DuckDB leave the same rows, and a SELECT has the rows of its view."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest

from tests.databases import make_database
from tests.example_counts import some_of

TABLES = {"r": ("k", "a", "b"), "s": ("k", "c")}
VALUES = (None, 0, 1, 2, 3, 4)


def _value(rng: random.Random) -> str:
    return "NULL" if (value := rng.choice(VALUES)) is None else str(value)


def _number(rng: random.Random, columns: tuple[str, ...]) -> str:
    return rng.choice(
        [
            _value(rng),
            rng.choice(columns),
            f"{rng.choice(columns)} + {rng.randrange(3)}",
            f"COALESCE({rng.choice(columns)}, {rng.randrange(4)})",
            f"CASE WHEN {_test(rng, columns)} THEN {rng.choice(columns)} ELSE {rng.randrange(4)} END",
        ]
    )


def _test(rng: random.Random, columns: tuple[str, ...]) -> str:
    column = rng.choice(columns)
    return rng.choice(
        [
            f"{column} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {rng.randrange(5)}",
            f"{column} {rng.choice(['=', '<>', '<'])} {rng.choice(columns)}",
            f"{column} IS {rng.choice(['', 'NOT '])}NULL",
            f"{column} {rng.choice(['', 'NOT '])}IN ({_value(rng)}, {rng.randrange(5)})",
            f"{column} {rng.choice(['', 'NOT '])}BETWEEN {rng.randrange(3)} AND {rng.randrange(2, 5)}",
            f"{column} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {_value(rng)}",
        ]
    )


def _condition(rng: random.Random, columns: tuple[str, ...], depth: int = 2) -> str:
    if depth == 0 or rng.random() < 0.4:
        return _test(rng, columns)
    left, right = (_condition(rng, columns, depth - 1) for _ in range(2))
    return rng.choice([f"NOT ({left})", f"({left}) AND ({right})", f"({left}) OR ({right})"])


def _where(rng: random.Random, table: str) -> str:
    other = "s" if table == "r" else "r"
    column = rng.choice(TABLES[table])
    their = rng.choice(TABLES[other])
    condition = _condition(rng, TABLES[table])
    subquery = rng.choice(
        [
            f"{column} IN (SELECT {their} FROM {other} WHERE {their} > {rng.randrange(3)})",
            f"EXISTS (SELECT 1 FROM {other} WHERE {other}.{their} = {table}.{column})",
            f"NOT EXISTS (SELECT 1 FROM {other} WHERE {other}.{their} = {table}.{column})",
        ]
    )
    return rng.choice([condition, condition, condition, subquery, f"({subquery}) AND ({condition})"])


def _statement(rng: random.Random) -> str:
    table = rng.choice(list(TABLES))
    columns = TABLES[table]
    if rng.random() < 0.15:
        return _merge(rng)
    match rng.choice(["values", "values", "select", "update", "update", "delete"]):
        case "values":
            listed = ", ".join(f"({', '.join(_value(rng) for _ in columns)})" for _ in range(rng.randrange(1, 4)))
            return f"INSERT INTO {table} VALUES {listed}"
        case "select":
            other = rng.choice(list(TABLES))
            items = ", ".join(f"{_number(rng, TABLES[other])} AS x{i}" for i, _ in enumerate(columns))
            return f"INSERT INTO {table} SELECT {items} FROM {other} WHERE {_condition(rng, TABLES[other])}"
        case "update":
            column = rng.choice(columns)
            return f"UPDATE {table} SET {column} = {_number(rng, columns)} WHERE {_where(rng, table)}"
    return f"DELETE FROM {table} WHERE {_where(rng, table)}"


def _merge(rng: random.Random) -> str:
    """A MERGE of rows with distinct keys, so that at most one matches each row of the target."""
    condition = rng.choice(["r.k = x.k", "r.k IS NOT DISTINCT FROM x.k", "r.k = x.k AND r.a > 0"])
    clauses = [
        f"WHEN MATCHED AND {_condition(rng, ('r.a', 'x.c'), 1)} THEN UPDATE SET a = x.c, b = r.b + {rng.randrange(3)}",
        rng.choice(["WHEN MATCHED THEN DELETE", "WHEN MATCHED AND x.c IS NULL THEN DELETE"]),
        f"WHEN NOT MATCHED AND {_condition(rng, ('x.c', 'x.k'), 1)} THEN INSERT (k, a) VALUES (x.k, x.c)",
        "WHEN NOT MATCHED BY SOURCE AND r.k > 2 THEN DELETE",
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET b = 0",
    ]
    chosen = [clause for clause in clauses if rng.random() < 0.6] or clauses[:1]
    using = f"SELECT k, MAX(c) AS c FROM s WHERE {_condition(rng, TABLES['s'], 1)} GROUP BY k"
    return f"MERGE INTO r USING ({using}) AS x ON {condition} {' '.join(chosen)}"


def _query(rng: random.Random) -> str:
    return rng.choice(
        [
            f"SELECT * FROM r WHERE {_where(rng, 'r')}",
            f"SELECT k, COUNT(*) AS n, SUM(a) AS total FROM r WHERE {_condition(rng, TABLES['r'])} GROUP BY k",
            f"SELECT r.a, s.c FROM r JOIN s ON r.k = s.k WHERE {_condition(rng, ('r.a', 's.c'))}",
            f"SELECT r.a, s.c FROM r LEFT JOIN s ON r.k = s.k WHERE {_condition(rng, ('r.a', 'r.b'))}",
            f"SELECT DISTINCT {_number(rng, TABLES['s'])} AS x FROM s",
            f"SELECT COUNT(*) AS n, MAX(c) AS m FROM s WHERE {_where(rng, 's')}",
            "SELECT a AS x FROM r UNION ALL SELECT c FROM s",
        ]
    )


@pytest.mark.parametrize("backend", ["native", "pure"])
@pytest.mark.parametrize("seed", some_of(range(4), 0, 1))
def test_statements_leave_the_rows_that_duckdb_has(backend: str, seed: int) -> None:
    rng = random.Random(seed)
    db, peer = make_database(backend), duckdb.connect()
    for table, columns in TABLES.items():
        text = f"CREATE TABLE {table} ({', '.join(f'{column} BIGINT' for column in columns)})"
        db.sql(text)
        peer.execute(text)
    for _ in range(20):
        text = _statement(rng)
        counted = db.sql(text).count
        (expected,) = peer.execute(text).fetchone() or (None,)
        assert expected == counted, text
        if len(peer.execute("SELECT * FROM r").fetchall()) > 60:
            for each in ("DELETE FROM r WHERE k > 1 OR k IS NULL", "DELETE FROM s WHERE k > 1"):
                db.sql(each)
                peer.execute(each)
        for table in TABLES:
            assert _bag(peer.execute(f"SELECT * FROM {table}").fetchall()) == _bag(db.sql(f"SELECT * FROM {table}"))


def _on_conflict(rng: random.Random) -> str:
    columns = rng.choice([("k", "a", "b"), ("k", "a"), ("k",), ("b", "k")])
    keys = rng.sample(range(8), rng.randrange(1, 4))
    rows = [", ".join(str(key) if name == "k" else _value(rng) for name in columns) for key in keys]
    listed = ", ".join(f"({row})" for row in rows)
    sets = [
        "a = excluded.a",
        "b = kept.b + 1, a = excluded.k",
        "a = excluded.a, b = excluded.b",
        "a = COALESCE(a, 0) + 1",
    ]
    where = rng.choice(["", "", " WHERE kept.a > 1", " WHERE excluded.k < 4"])
    act = rng.choice(["DO NOTHING", "(k) DO NOTHING", *(f"(k) DO UPDATE SET {each}{where}" for each in sets)])
    return f"INSERT INTO kept ({', '.join(columns)}) VALUES {listed} ON CONFLICT {act}"


@pytest.mark.parametrize("backend", ["native", "pure"])
@pytest.mark.parametrize("seed", some_of(range(2), 0))
def test_inserts_with_conflicts_leave_the_rows_that_duckdb_has(backend: str, seed: int) -> None:
    rng = random.Random(300 + seed)
    db, peer = make_database(backend), duckdb.connect()
    for run in (db.sql, peer.execute):
        run("CREATE TABLE kept (k BIGINT PRIMARY KEY, a BIGINT, b BIGINT)")
    for _ in range(25):
        text = _on_conflict(rng)
        db.sql(text)
        peer.execute(text)
        assert _bag(peer.execute("SELECT * FROM kept").fetchall()) == _bag(db.sql("SELECT * FROM kept")), text


VIEWS = {
    "sums": "SELECT k, COUNT(*) AS n, SUM(a) AS total FROM r GROUP BY k",
    "pairs": "SELECT r.a, s.c FROM r LEFT JOIN s ON r.k = s.k",
    "most": "SELECT k, n FROM sums ORDER BY n DESC, k LIMIT 2",
    "ranked": "SELECT k, a, ROW_NUMBER() OVER (PARTITION BY k ORDER BY a, b) AS place FROM r",
    "greatest": "SELECT k, MAX(c) AS c, COUNT(DISTINCT c) AS d FROM s GROUP BY k",
    "all_keys": "SELECT k FROM r UNION SELECT k FROM s",
}


@pytest.mark.parametrize("backend", ["native", "pure"])
@pytest.mark.parametrize("seed", some_of(range(6), 0))
def test_a_transaction_reads_what_duckdb_reads_in_it_and_others_do_not(backend: str, seed: int) -> None:
    rng = random.Random(200 + seed)
    db, peer = make_database(backend), duckdb.connect(config={"default_null_order": "nulls_first"})
    for table, columns in TABLES.items():
        create = f"CREATE TABLE {table} ({', '.join(f'{column} BIGINT' for column in columns)})"
        rows = ", ".join(f"({', '.join(_value(rng) for _ in columns)})" for _ in range(6))
        for run in (db.sql, peer.execute):
            run(create)
            run(f"INSERT INTO {table} VALUES {rows}")
    for name, query in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {query}")
        peer.execute(f"CREATE VIEW {name} AS {query}")
    for _ in range(5):
        before = {name: _bag(db.view(name)) for name in VIEWS}
        for run in (db.sql, peer.execute):
            run("BEGIN")
        for _ in range(rng.randrange(1, 5)):
            text = _statement(rng)
            db.sql(text)
            peer.execute(text)
            for query in (_query(rng), f"SELECT * FROM {rng.choice([*VIEWS, *TABLES])}"):
                assert _bag(peer.execute(query).fetchall()) == _bag(db.sql(query)), query
        assert before == {name: _bag(db.view(name)) for name in VIEWS}
        end = rng.choice(["COMMIT", "ROLLBACK"])
        db.sql(end)
        peer.execute(end)
        for name in VIEWS:
            assert _bag(peer.execute(f"SELECT * FROM {name}").fetchall()) == _bag(db.view(name)), name


@pytest.mark.parametrize("seed", some_of(range(4), 0, 1))
def test_a_select_has_the_rows_of_its_view_and_those_that_duckdb_has(seed: int) -> None:
    rng = random.Random(100 + seed)
    db, peer = make_database("native"), duckdb.connect()
    for table, columns in TABLES.items():
        create = f"CREATE TABLE {table} ({', '.join(f'{column} BIGINT' for column in columns)})"
        rows = ", ".join(f"({', '.join(_value(rng) for _ in columns)})" for _ in range(12))
        for run in (db.sql, peer.execute):
            run(create)
            run(f"INSERT INTO {table} VALUES {rows}")
    for number in range(12):
        text = _query(rng)
        alone = _bag(db.sql(text))
        assert _bag(peer.execute(text).fetchall()) == alone, text
        assert _bag(db.create_view(f"v{number}", text)) == alone, text


def _bag(rows: Any) -> Counter[Any]:
    return Counter(tuple(None if value is None else int(value) for value in row) for row in rows)
