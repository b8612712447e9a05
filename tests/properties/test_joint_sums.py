"""Sums of products of columns of two tables, under random inserts and deletes, against sums over all pairs of rows.

They are kept without a row for each pair: by every strategy, on both backends, with NULLs, integers whose products take
more than 64 bits, and decimals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import partial, reduce
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.errors import DataError
from tests.databases import make_database
from tests.example_counts import examples

WIDE = Context(prec=120, rounding=ROUND_HALF_UP)
INTS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from([2**40, -(2**40), 2**62]))
DECIMALS = st.one_of(st.none(), st.sampled_from([Decimal("0.25"), Decimal("-1.50"), Decimal("99999999.99")]))
ROWS = st.tuples(INTS, st.integers(0, 2), DECIMALS)
CHANGES = st.lists(st.tuples(st.sampled_from("rt"), ROWS, st.booleans()), min_size=1, max_size=20)

BY_KEY = "FROM r JOIN t ON r.b = t.b"
QUERIES = {
    "total": f"SELECT SUM(r.a * t.a) AS i, SUM(r.p * t.p) AS d, AVG(r.p * t.p) AS m, COUNT(*) AS n {BY_KEY}",
    "groups": f"SELECT t.b, SUM(r.a * t.a) AS i, SUM(t.p * 2 * r.p) AS d, SUM(r.p) AS x {BY_KEY} GROUP BY t.b",
    "mixed": f"SELECT SUM(r.a * t.p) AS i, SUM((1 - r.p) * t.p) AS d, MAX(r.a) AS x {BY_KEY}",
    "key": f"SELECT SUM(t.b * r.a) AS i, SUM(r.b * t.p) AS d {BY_KEY}",
    "three": "SELECT SUM(r.a * u.a) AS i, SUM(t.a) AS d FROM r JOIN t ON r.b = t.b JOIN r u ON u.b = t.b",
}


def expected(name: str, tables: dict[str, Counter[Any]]) -> list[tuple[Any, ...]]:
    """The rows of a view by a loop over all pairs of rows."""
    r, t = ([(*row, n) for row, n in tables[each].items()] for each in "rt")
    pairs = [(x, y, x[3] * y[3]) for x in r for y in t if x[1] == y[1]]
    match name:
        case "total":
            i, d = total(pairs, lambda x, y: (x[0], y[0])), total(pairs, lambda x, y: (x[2], y[2]))
            known = sum(n for x, y, n in pairs if x[2] is not None and y[2] is not None)
            mean = None if d is None else WIDE.divide(d, known).quantize(Decimal("1e-8"), context=WIDE)
            return [(i, d, mean, sum(n for *_, n in pairs))]
        case "groups":
            rows = []
            for key in {y[1] for _, y, _ in pairs}:
                mine = [pair for pair in pairs if pair[1][1] == key]
                d = total(mine, lambda x, y: (x[2], y[2]))
                rows.append(
                    (
                        key,
                        total(mine, lambda x, y: (x[0], y[0])),
                        None if d is None else WIDE.multiply(d, 2),
                        total(mine, lambda x, _: (x[2], 1)),
                    )
                )
            return rows
        case "mixed":
            d = total(pairs, lambda x, y: (None if x[2] is None else 1 - x[2], y[2]))
            return [
                (
                    total(pairs, lambda x, y: (x[0], y[2])),
                    d,
                    max((x[0] for x, *_ in pairs if x[0] is not None), default=None),
                )
            ]
        case "key":
            return [(total(pairs, lambda x, y: (y[1], x[0])), total(pairs, lambda x, y: (x[1], y[2])))]
    triples = [((x[0], z[0], y[0]), n * z[3]) for x, y, n in pairs for z in r if z[1] == y[1]]
    products = [a * c * n for (a, c, _), n in triples if a is not None and c is not None]
    values = [b * n for (*_, b), n in triples if b is not None]
    return [(sum(products) if products else None, sum(values) if values else None)]


def total(pairs: list[Any], factors: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
    found = [(*factors(x, y), n) for x, y, n in pairs]
    products = [
        WIDE.multiply(WIDE.multiply(Decimal(a), Decimal(b)), n) for a, b, n in found if a is not None and b is not None
    ]
    if not products:
        return None
    whole = reduce(WIDE.add, products)
    return int(whole) if all(not isinstance(v, Decimal) for a, b, _ in found for v in (a, b)) else whole


def shown(rows: list[tuple[Any, ...]]) -> list[str]:
    return sorted(
        str([None if v is None else v if isinstance(v, int) else WIDE.normalize(v) + 0 for v in row]) for row in rows
    )


def made(backend: str, name: str, strategy: str) -> Database:
    database = make_database(backend)
    for table in "rt":
        database.create_table(table, {"a": "int", "b": "int", "p": "decimal(10, 2)"})
    options = {} if strategy == "auto" else {"strategy": strategy}
    view = database.create_view("v", QUERIES[name], **options)
    assert not view.explain().blocks, "it is one block, without the joined rows"
    return database


@pytest.mark.parametrize("backend", ["native", "pure"])
@pytest.mark.parametrize("strategy", ["auto", "classical", "recursive"])
@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=examples(8), deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES)
def test_sums_of_products_are_those_of_all_pairs(backend: str, strategy: str, name: str, changes: Any) -> None:
    with made(backend, name, strategy) as database:
        tables: dict[str, Counter[Any]] = {"r": Counter(), "t": Counter()}
        for table, row, is_insert in changes:
            if not is_insert and not tables[table][row]:
                continue
            after = {each: rows.copy() for each, rows in tables.items()}
            after[table][row] += 1 if is_insert else -1
            after[table] += Counter()
            change = partial(database.insert if is_insert else database.delete, table, [row])
            if any(isinstance(value, int) and abs(value) >= 2**63 for each in expected(name, after) for value in each):
                with pytest.raises(DataError, match="does not fit"):
                    change()
                continue
            change()
            tables = after
            assert shown(list(database.view("v"))) == shown(expected(name, tables))


def test_a_change_of_a_price_costs_the_same_however_many_rows_have_it() -> None:
    def operations(size: int) -> float:
        with Database() as database:
            database.create_table("sale", {"item": "int", "amount": "int"})
            database.create_table("price", {"item": "int", "value": "decimal(10, 2)"}, primary_key=["item"])
            database.insert("sale", [(n % 10, n) for n in range(size)])
            database.insert("price", [(n, Decimal(n)) for n in range(10)])
            view = database.create_view(
                "v", "SELECT SUM(s.amount * p.value) AS total FROM sale s JOIN price p ON s.item = p.item"
            )
            before = view.stats()["operations"]
            for n in range(10):
                database.upsert("price", [(n, Decimal(7))])
            return float(view.stats()["operations"] - before)

    assert operations(20_000) <= operations(100)
