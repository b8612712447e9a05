"""SQL read by ivme and computed by the naive oracle gives what DuckDB gives for the same text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from ivme.errors import UnsupportedError
from ivme.query.expression import Literal
from ivme.query.model import table
from ivme.query.sql import parse_sql
from tests.example_counts import examples
from tests.oracle import rows

TABLES = [
    table("r", {"a": "int", "b": "int"}),
    table("s", {"b": "int", "c": "string"}),
    table("edge", {"src": "int", "dst": "int"}),
]
CREATE = (
    "CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c VARCHAR); CREATE TABLE edge (src INT, dst INT)"
)
PATHS = "WITH RECURSIVE p(x, y) AS (SELECT src, dst FROM edge UNION {}) "
QUERIES = [
    "SELECT a, b FROM r",
    "SELECT b, a AS first, b + a AS total FROM r WHERE a <> 2",
    "SELECT a FROM r WHERE a = b",
    "SELECT a FROM r WHERE a = a",
    "SELECT DISTINCT b FROM r",
    "SELECT DISTINCT b FROM r WHERE a = :p",
    "SELECT a, b FROM r WHERE a = :p",
    "SELECT b FROM r WHERE a = :p AND b = :q",
    "SELECT a FROM r WHERE a = :p AND b = :p",
    "SELECT a FROM r WHERE :p = a + b",
    "SELECT r.a, s.c FROM r JOIN s ON r.b = s.b",
    "SELECT r.a, s.c FROM r JOIN s USING (b) WHERE b > 0",
    "SELECT * FROM edge JOIN r ON edge.src = r.a",
    "SELECT s.*, r.a FROM r, s WHERE r.b = s.b AND (s.c = 'x' OR s.c IS NULL)",
    "SELECT r.a FROM r CROSS JOIN s",
    "SELECT r.a FROM r, s",
    "SELECT r.a, s.c FROM r JOIN s ON r.a + 1 = s.b",
    "SELECT r.a, s.c FROM r JOIN s ON r.a + r.b = s.b * 2 AND r.b = s.b",
    "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a",
    "SELECT x.a, y.b FROM r x JOIN r y ON x.b = y.a AND x.a = y.b",
    "SELECT x.a, z.b FROM r x, r y, r z WHERE x.b = y.a AND y.b = z.a AND z.b = x.a",
    "SELECT COUNT(*) FROM r",
    "SELECT COUNT(*), COUNT(a), COUNT(DISTINCT b), SUM(a), MIN(a), MAX(b), AVG(a) FROM r",
    "SELECT COUNT(*), SUM(b) FROM r WHERE a = :p",
    "SELECT a, COUNT(*), SUM(b) FROM r WHERE a = :p GROUP BY a",
    "SELECT b, COUNT(*), SUM(a), AVG(a), MIN(a), MAX(a), COUNT(a), COUNT(DISTINCT a) FROM r GROUP BY b",
    "SELECT SUM(a) FROM r GROUP BY b",
    "SELECT SUM(a), COUNT(*) AS n FROM r GROUP BY a, b",
    "SELECT b FROM r GROUP BY b",
    "SELECT a + b AS t, SUM(a * (1 - b)) FROM r GROUP BY t",
    "SELECT a + 1 AS next, COUNT(*) FROM r GROUP BY a",
    "SELECT c, SUM(a) FROM r JOIN s ON r.b = s.b GROUP BY c",
    "SELECT s.c, COUNT(*) FROM r JOIN s ON r.b = s.b WHERE r.a IN (1, 2, NULL) GROUP BY 1",
    "SELECT UPPER(c) AS u, COUNT(r.a), SUM(r.b) FROM r JOIN s USING (b) WHERE r.a = :p GROUP BY UPPER(c)",
    "SELECT c, SUM(CASE WHEN b > 1 THEN b ELSE 0 END) AS big FROM s GROUP BY ALL",
    "SELECT c FROM s WHERE c LIKE 'x%' AND NOT b BETWEEN 1 AND 2",
    "SELECT COALESCE(c, '?') AS c, b IS NULL AS missing FROM s WHERE NOT (b = 1 AND c = 'x')",
    "SELECT NULLIF(a, b) AS d, COUNT(*) FROM r GROUP BY NULLIF(a, b)",
    PATHS.format("SELECT p.x, e.dst FROM p JOIN edge e ON p.y = e.src") + "SELECT x, y FROM p",
    PATHS.format("SELECT e.src, p.y FROM edge e, p WHERE e.dst = p.x") + "SELECT y FROM p WHERE x = :p",
    PATHS.format("SELECT p.x, e.dst FROM edge e JOIN p ON e.src = p.y") + "SELECT x, COUNT(*) FROM p GROUP BY x",
    PATHS.format("SELECT x, dst FROM p JOIN edge ON y = src") + "SELECT r.b FROM p JOIN r ON p.y = r.a WHERE p.x < 3",
    PATHS.format("SELECT p.x, e.dst FROM p JOIN edge e ON p.y = e.src") + "SELECT x FROM p WHERE x = y",
]
COLUMNS = {"r": ("a", "b"), "s": ("b", "c"), "edge": ("src", "dst")}
SMALL = st.none() | st.integers(0, 3)


@st.composite
def databases(draw: st.DrawFn) -> dict[str, Counter[tuple[Any, ...]]]:
    pairs = st.lists(st.tuples(SMALL, SMALL), max_size=8)
    texts = st.lists(st.tuples(SMALL, st.none() | st.sampled_from(["x", "X", "y", "xy"])), max_size=8)
    return {"r": Counter(draw(pairs)), "s": Counter(draw(texts)), "edge": Counter(draw(pairs))}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(CREATE)
        yield connection


def duckdb_rows(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    database: Mapping[str, Counter[Any]],
    parameters: Mapping[str, Any],
) -> Counter[Any]:
    for name, contents in database.items():
        connection.execute(f"DELETE FROM {name}")
        listed = ", ".join(f"({Literal(one)}, {Literal(two)})" for one, two in contents.elements())
        if listed:
            connection.execute(f"INSERT INTO {name} VALUES {listed}")
    named = re.sub(r":(\w+)", r"$\1", text)
    return Counter(map(comparable, connection.execute(named, dict(parameters)).fetchall()))


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Rows with their numbers as exact floats: the two engines type sums and averages differently."""
    return tuple(float(value) if isinstance(value, int | Decimal) else value for value in row)


@pytest.mark.parametrize("text", QUERIES)
@settings(max_examples=examples(8), deadline=None)
@given(database=databases(), parameters=st.tuples(SMALL, SMALL))
def test_a_query_means_what_duckdb_says(
    connection: duckdb.DuckDBPyConnection, text: str, database: dict[str, Counter[Any]], parameters: tuple[Any, Any]
) -> None:
    query = parse_sql(text, TABLES)
    inputs = dict(zip(query.parameters, parameters, strict=False))

    answers: Counter[Any] = Counter()
    for row, multiplicity in rows(query, database, inputs).items():
        answers[comparable(row)] += multiplicity

    assert duckdb_rows(connection, text, database, inputs) == answers


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Random joins of up to three tables, with predicates, parameters, computed columns, groups and aggregates."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3))
    tables = {f"t{number}": name for number, name in enumerate(names)}
    numbers = [f"{alias}.{column}" for alias, name in tables.items() for column in COLUMNS[name] if column != "c"]
    strings = [f"{alias}.c" for alias, name in tables.items() if name == "s"]
    column = st.sampled_from(numbers)
    computed = column | column.map(lambda name: f"{name} + 1") | column.map(lambda name: f"COALESCE({name}, 0)")
    shapes = [
        st.builds("{} = {}".format, computed, column),
        st.builds("{} = {}".format, computed, st.sampled_from([":p", ":q"])),
        st.builds("{} {} {}".format, column, st.sampled_from(["<", "<>", ">=", "<=>"]), st.integers(0, 3)),
        st.builds("{} IS {} NULL".format, column, st.sampled_from(["", "NOT"])),
        st.builds("({0} = {1} OR {0} IS NULL)".format, column, st.integers(0, 3)),
        st.builds("NOT {} IN (1, {})".format, column, st.sampled_from(["2", "NULL"])),
    ]
    conditions = draw(st.lists(st.one_of(shapes), max_size=4))
    values = st.sampled_from([*numbers, *strings]) | computed
    plain = draw(st.lists(values, max_size=3))
    functions = st.sampled_from(
        ["COUNT(*)", "COUNT({})", "SUM({})", "MIN({})", "MAX({})", "AVG({})", "COUNT(DISTINCT {})"]
    )
    aggregates = draw(
        st.lists(st.builds(lambda function, name: function.format(name), functions, computed), max_size=2)
    )
    distinct = draw(st.booleans()) and not aggregates
    items = [*plain, *aggregates] if plain or aggregates else [numbers[0]]
    listed = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    body = ", ".join(f"{name} {alias}" for alias, name in tables.items())
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    group = f" GROUP BY {', '.join(plain)}" if plain and aggregates else ""
    return f"SELECT {'DISTINCT ' * distinct}{listed} FROM {body}{where}{group}"


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None)
@given(text=texts(), database=databases(), parameters=st.tuples(SMALL, SMALL))
def test_a_random_query_means_what_duckdb_says(
    connection: duckdb.DuckDBPyConnection,
    text: str,
    database: dict[str, Counter[Any]],
    parameters: tuple[Any, Any],
) -> None:
    try:
        query = parse_sql(text, TABLES)
    except UnsupportedError:
        reject()
    inputs = dict(zip(query.parameters, parameters, strict=False))

    answers: Counter[Any] = Counter()
    for row, multiplicity in rows(query, database, inputs).items():
        answers[comparable(row)] += multiplicity

    expected = duckdb_rows(connection, text.replace("<=>", "IS NOT DISTINCT FROM"), database, inputs)
    assert expected == answers
