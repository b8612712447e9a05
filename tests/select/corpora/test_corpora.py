"""Queries by people, each kept fresh and compared with DuckDB under batches; those that are refused are listed."""

from __future__ import annotations

from functools import cache
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from benchmarks.corpora.measuring import connected, differs
from ivme.database import Database
from ivme.errors import PlanError, UnsupportedError
from ivme.query.types import parse_type
from tests.fuzz.oracle import arrow_rows
from tests.fuzz.values import Column
from tests.select.corpora.chinook import CHINOOK
from tests.select.corpora.data import Changes, schema
from tests.select.corpora.jaffle_shop import JAFFLE_SHOP
from tests.select.corpora.mode import MODE
from tests.select.corpora.model import PublicSql
from tests.select.corpora.nexmark import NEXMARK
from tests.select.corpora.northwind import NORTHWIND
from tests.select.corpora.refused import REFUSED
from tests.select.corpora.sakila import SAKILA

CORPORA = (CHINOOK, NORTHWIND, SAKILA, JAFFLE_SHOP, MODE, NEXMARK)
NAMES = [(corpus, name) for corpus in CORPORA for name in corpus.queries]


def title(corpus: PublicSql, name: str) -> str:
    return f"{corpus.name}: {name}"


def read_by(corpus: PublicSql, text: str) -> list[str]:
    named = {table.name for table in sqlglot.parse_one(text, read="duckdb").find_all(exp.Table)}
    return [name for name in corpus.tables if name in named]


def columns(declared: dict[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, parse_type(type_)) for name, type_ in schema(declared).items())


def database_for(corpus: PublicSql, text: str) -> Database:
    database = Database()
    for name in read_by(corpus, text):
        database.create_table(name, schema(corpus.tables[name]))
    return database


ACCEPTED = [pair for pair in NAMES if title(*pair) not in REFUSED]


@cache
def opened() -> Any:
    """One DuckDB for all queries, since opening one takes longer than most of them; each has a cursor of its own."""
    return connected({})


@pytest.mark.parametrize(("corpus", "name"), ACCEPTED, ids=[title(*pair) for pair in ACCEPTED])
def test_a_query_is_kept_fresh(corpus: PublicSql, name: str) -> None:
    text = corpus.queries[name]
    database = database_for(corpus, text)
    view = database.create_view("q", text)
    changes = Changes(corpus, read_by(corpus, text), seed=len(text))
    connection = opened().cursor()
    for deleted, inserted in changes.batches():
        with database.batch() as batch:
            for table, rows in deleted.items():
                batch.delete(table, rows)
            for table, rows in inserted.items():
                batch.insert(table, rows)
        for table, rows in contents(changes).items():
            connection.register(table, rows)
        assert differs([tuple(row) for row in view], text, connection) == ""
    view.verify()


def contents(changes: Changes) -> dict[str, pa.Table]:
    return {n: arrow_rows(columns(changes.columns[n]), rows.elements()) for n, rows in changes.contents.items()}


@pytest.mark.parametrize("refused", REFUSED)
def test_a_refused_query_is_still_refused_for_the_reason_that_is_listed(refused: str) -> None:
    """When this fails because the query is accepted now, take it out of refused.py."""
    corpus, name = next(pair for pair in NAMES if title(*pair) == refused)
    database = database_for(corpus, corpus.queries[name])
    with pytest.raises((UnsupportedError, PlanError)) as raised:
        database.create_view("q", corpus.queries[name])
    assert REFUSED[refused] in str(raised.value)


@pytest.mark.parametrize("corpus", CORPORA, ids=lambda corpus: corpus.name)
def test_every_query_finds_rows_in_the_random_data(corpus: PublicSql) -> None:
    """A query that never has a row proves nothing."""
    connection: Any = connected({})
    empty = []
    for name, text in corpus.queries.items():
        changes = Changes(corpus, read_by(corpus, text), seed=len(text))
        found = 0
        for _ in changes.batches():
            for table, rows in contents(changes).items():
                connection.register(table, rows)
            found = max(found, len(connection.execute(text).fetchall()))
        empty += [name] * (found == 0)
    assert [] == empty


def test_there_are_sixty_queries_beside_nexmark() -> None:
    assert 60 <= sum(len(corpus.queries) for corpus in CORPORA if corpus is not NEXMARK)
