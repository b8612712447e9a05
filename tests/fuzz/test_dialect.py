"""Every rule of the dialect by itself: ivme and DuckDB compute the same from columns of the fuzzer's values."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import duckdb
import pytest

from ivme.query.expression import Call, evaluate
from ivme.query.inference import in_type, type_of
from ivme.query.model import table
from ivme.query.table_expression import Parameters, parse_condition
from tests.empty_duckdb import insert_rows
from tests.fuzz.dialect import RULES, Rule, install
from tests.fuzz.values import POOLS, canonical, value

_DUCK = {"int": "BIGINT", "float": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "binary": "BLOB"}
_COLUMNS = {"int": "j", "float": "f", "string": "u", "bool": "b", "date": "dt", "timestamp": "ts", "decimal": "d2"}
_SAME = ("int", "float", "string", "bool", "date", "timestamp", "decimal", "binary")
_ROWS = 60


def _names(rule: Rule, same: str) -> list[str]:
    """The columns that a rule is applied to, or constants."""
    kinds = {"same": same, "any": "string", "digits": "digits"}
    columns = {**_COLUMNS, "binary": "bin", "digits": "n"}
    return ["-4" if kind == "divisor" else columns[kinds.get(kind, kind)] for kind in rule.arguments]


CALLS = [(rule, same) for rule in RULES for same in (_SAME if "same" in rule.arguments else ("int",))]


@pytest.mark.parametrize(("rule", "same"), CALLS, ids=lambda part: part if isinstance(part, str) else part.spark)
def test_a_rule_means_the_same_in_both_dialects(rule: Rule, same: str) -> None:
    names = _names(rule, same)
    columns = {**{f"c{i}": name for i, name in enumerate(names) if name in POOLS}}
    texts = [f"c{i}" if name in POOLS else name for i, name in enumerate(names)]
    random = Random(rule.spark)
    rows = [tuple(value(random, name) for name in columns.values()) for _ in range(_ROWS)]
    read = table("T", {name: POOLS[pool][0] for name, pool in columns.items()})
    tested = parse_condition(f"({rule.written('spark', texts)}) IS NULL", read, Parameters({}))
    assert isinstance(tested, Call)
    found = tested.arguments[0]
    type_ = type_of(found, read)
    actual = [in_type(evaluate(found, dict(zip(columns, row, strict=True))), type_, found) for row in rows]
    expected = _duck(rule.written("duck", texts), columns, rows)
    assert [canonical(each) for each in expected] == [canonical(each) for each in actual]


@cache
def _opened() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all rules: opening one takes longer than the comparison."""
    connection = duckdb.connect(config={"threads": 1})
    install(connection)
    return connection


def _duck(text: str, columns: dict[str, str], rows: list[Any]) -> list[Any]:
    connection = _opened()
    types = ", ".join(f"{name} {_DUCK.get(POOLS[pool][0], POOLS[pool][0])}" for name, pool in columns.items())
    connection.execute(f"CREATE OR REPLACE TABLE T (row BIGINT, {types})")
    insert_rows(connection, "T", [(i, *row) for i, row in enumerate(rows)])
    return [row[0] for row in connection.execute(f"SELECT {text} FROM T ORDER BY row").fetchall()]
