"""Parameters on every runtime: lists, defaults, and values that no row has."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from ivme.database import Database
from ivme.errors import DataError, PlanError, UnknownNameError, UnsupportedError
from tests.example_counts import some_of
from tests.serve.running import serving
from tests.sharded_databases import local_database

Ask = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]

TABLES = {
    "orders": {"id": "int", "city": "string", "price": "int"},
    "seen": {"id": "int", "day": "date"},
}
ROWS: dict[str, list[tuple[Any, ...]]] = {
    "orders": [(1, "Zurich", 3), (2, "Bern", 4), (3, "Bern", 5), (4, None, 6), (5, "Oslo", 5)],
    "seen": [(1, datetime.date(2026, 1, 1)), (2, datetime.date(2026, 1, 1)), (5, datetime.date(2026, 1, 2))],
}
VIEWS = {
    "of_city": "SELECT id FROM orders WHERE city = :city DEFAULT 'Bern'",
    "of_day": "SELECT id FROM seen WHERE day = :day DEFAULT DATE '2026-01-02'",
    "totals": "SELECT COUNT(*) + 0 AS n, SUM(price) AS total FROM orders WHERE city = :city",
    "unseen": "SELECT o.id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM seen s WHERE s.id = o.id AND s.day = :day)",
    "of_cities": "SELECT id FROM orders WHERE city IN (:cities)",
    "by_city": "SELECT city, AVG(price) AS mean FROM orders WHERE city IN (:cities) GROUP BY city",
    "of_all": "SELECT COUNT(*) AS n, SUM(price) AS total, MAX(id) AS last FROM orders WHERE city IN (:cities)",
    "by_price": "SELECT price, COUNT(*) AS n FROM orders WHERE city IN (:cities) GROUP BY price",
    "prices": "SELECT DISTINCT price FROM orders WHERE city = ANY (:cities)",
    "dear": "SELECT id, price FROM orders WHERE city IN (:cities DEFAULT 'Oslo') ORDER BY price DESC, id LIMIT 2",
    "both": "SELECT id FROM orders WHERE city = :city UNION ALL SELECT id FROM seen WHERE day = :day",
}
NEW_YEAR = datetime.date(2026, 1, 1)
ANSWERS: list[tuple[str, dict[str, Any], list[tuple[Any, ...]]]] = [
    ("of_city", {}, [(2,), (3,)]),
    ("of_city", {"city": "Zurich"}, [(1,)]),
    ("of_day", {}, [(5,)]),
    ("totals", {"city": "Bern"}, [(2, 9)]),
    ("totals", {"city": "Paris"}, [(0, None)]),
    ("unseen", {"day": NEW_YEAR}, [(3,), (4,), (5,)]),
    ("unseen", {"day": datetime.date(1999, 1, 1)}, [(1,), (2,), (3,), (4,), (5,)]),
    ("of_cities", {"cities": ["Bern", "Oslo", "Bern", "Paris"]}, [(2,), (3,), (5,)]),
    ("by_city", {"cities": ["Bern", "Oslo"]}, [("Bern", 4.5), ("Oslo", 5.0)]),
    ("of_all", {"cities": ["Bern", "Oslo"]}, [(3, 14, 5)]),
    ("of_all", {"cities": ["Paris"]}, [(0, None, None)]),
    ("by_price", {"cities": ["Bern", "Oslo"]}, [(4, 1), (5, 2)]),
    ("prices", {"cities": ["Bern", "Oslo"]}, [(4,), (5,)]),
    ("dear", {"cities": ["Bern", "Zurich", "Oslo"]}, [(3, 5), (5, 5)]),
    ("dear", {}, [(5, 5)]),
    ("both", {"city": "Bern", "day": NEW_YEAR}, [(2,), (3,), (1,), (2,)]),
]


def _fill(database: Any) -> None:
    for name, schema in TABLES.items():
        database.create_table(name, schema)
        database.insert(name, ROWS[name][:2])
    for name, text in VIEWS.items():
        database.create_view(name, text)
    for name, rows in ROWS.items():
        database.insert(name, rows[2:])


def _asking(database: Any) -> Ask:
    return lambda view, request: list(database.view(view)(**request))


@contextmanager
def _embedded(_path: Path) -> Iterator[Ask]:
    with Database() as database:
        _fill(database)
        yield _asking(database)


@contextmanager
def _reopened(path: Path) -> Iterator[Ask]:
    with Database(path / "db") as database:
        _fill(database)
    with Database(path / "db") as database:
        assert not database.broken_views
        yield _asking(database)


@contextmanager
def _served(_path: Path) -> Iterator[Ask]:
    with Database() as database:
        _fill(database)
        with serving(database) as address, httpx.Client(base_url=address, timeout=30) as client:

            def ask(view: str, request: Mapping[str, Any]) -> list[tuple[Any, ...]]:
                answer = client.get(f"/views/{view}", params=dict(request))
                assert answer.status_code == 200, answer.text
                return [tuple(row) for row in answer.json()["rows"]]

            yield ask


@contextmanager
def _sharded(path: Path) -> Iterator[Ask]:
    database = local_database(path, 3)
    _fill(database)
    yield _asking(database)
    for name in VIEWS:
        database.view(name).verify()
    database.close()


@pytest.mark.parametrize("runtime", [_embedded, _reopened, _served, _sharded])
def test_requests_have_the_same_rows_on_every_runtime(runtime: Any, tmp_path: Path) -> None:
    with runtime(tmp_path) as ask:
        for view, request, rows in ANSWERS:
            found = ask(view, request)
            assert Counter(found) == Counter(rows), (view, request)
            assert view != "dear" or found == rows, "it has an order"


@pytest.mark.parametrize("runtime", some_of([_embedded, _sharded], _embedded))
def test_an_empty_list_and_null_have_no_rows(runtime: Any, tmp_path: Path) -> None:
    with runtime(tmp_path) as ask:
        for empty in ([], [None]):
            assert ask("of_cities", {"cities": empty}) == []
            assert ask("of_all", {"cities": empty}) == [(0, None, None)]
            assert ask("dear", {"cities": empty}) == []


@pytest.fixture
def database() -> Iterator[Database]:
    with Database() as made:
        _fill(made)
        yield made


def test_every_way_to_read_takes_lists_and_defaults(database: Database) -> None:
    listed, one = database.view("of_cities"), database.view("of_city")
    cities = ["Bern", "Oslo"]

    assert listed.count(cities=cities) == 3
    assert dict(listed.items(cities=cities)) == {(2,): 1, (3,): 1, (5,): 1}
    assert listed.multiplicity((5,), cities=cities) == 1
    assert listed.to_arrow(cities=cities).to_pylist() == [{"id": 2}, {"id": 3}, {"id": 5}]
    many = listed.request_many(cities=[["Oslo"], [], cities])
    assert many.column("id").to_pylist() == [5, 2, 3, 5]
    assert many.column("cities").to_pylist() == [["Oslo"], cities, cities, cities]
    assert (list(one), one.count(), one.multiplicity((3,))) == ([(2,), (3,)], 2, 1)
    assert one.request_many().to_pylist() == [{"city": "Bern", "id": 2}, {"city": "Bern", "id": 3}]
    for name in VIEWS:
        database.view(name).verify()


def test_a_wrong_request_says_what_the_view_takes(database: Database) -> None:
    with pytest.raises(UnknownNameError, match=r"it takes cities: list of string = \['Oslo'\]"):
        list(database.view("dear")(town="Bern"))
    with pytest.raises(DataError, match="is a list; give the values in"):
        list(database.view("of_cities")(cities="Bern"))
    with pytest.raises(DataError, match="not a string"):
        list(database.view("of_cities")(cities=[1]))
    with pytest.raises(UnknownNameError, match="needs a value for cities"):
        list(database.view("of_cities"))


def test_explain_tells_defaults_lists_and_values(database: Database) -> None:
    assert "the parameter :city is 'Bern' where a request leaves it out" in database.view("of_city").explain().notes
    assert any("is a list" in note for note in database.view("of_cities").explain().notes)
    assert any("values that :day is compared with" in note for note in database.view("unseen").explain().notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT id FROM orders WHERE price = :p DEFAULT 'x'", "the default of :p"),
        ("SELECT id FROM orders WHERE price = :p DEFAULT 1 AND id = :p DEFAULT 2", "has two defaults"),
        ("SELECT id FROM orders WHERE city IN (:p) OR price = 1", "is not supported in this place"),
        ("SELECT id FROM orders WHERE city NOT IN (:p)", "is not supported in this place"),
        ("SELECT id FROM orders WHERE id IN (:p) AND price IN (:p)", "is used 2 times"),
        ("SELECT AVG(price) AS m FROM orders WHERE city IN (:p)", "is not known from those of each member"),
        ("SELECT COUNT(*) AS m FROM orders WHERE city IN (:p) GROUP BY price", "cannot be told apart"),
        ("SELECT COUNT(*) + 1 AS m FROM orders WHERE city IN (:p)", "runs across the members"),
        (
            "SELECT city, COUNT(*) AS m FROM orders WHERE city IN (:p) GROUP BY city WITH ROLLUP",
            "runs across the members",
        ),
        ("SELECT id FROM orders WHERE id IN (SELECT id FROM seen WHERE day IN (:p))", "is not supported in this place"),
    ],
)
def test_what_a_parameter_cannot_be_is_refused_by_name(database: Database, text: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        database.create_view("v", text)


def test_lists_are_followed_and_filtered_by_their_members(database: Database) -> None:
    with database.view("of_cities").changes() as changes:
        database.insert("orders", [(6, "Bern", 1), (7, "Paris", 1)])
        assert [dict(change.items()) for change in changes] == [{("Bern", 6): 1, ("Paris", 7): 1}]


def test_an_ordered_view_of_groups_is_not_followed(database: Database) -> None:
    """Nobody is told of its changes, so that nothing is kept for it, and dropping it leaves nothing behind."""
    view = database.create_view(
        "top", "SELECT price, COUNT(*) AS n FROM orders WHERE city = :city GROUP BY price ORDER BY n DESC LIMIT 1"
    )
    assert list(view(city="Oslo")) == [(5, 1)]
    with pytest.raises(PlanError):
        view.changes()
    database.drop_view("top")
    database.drop_view("of_cities")


def test_sums_over_a_list_are_exact_and_fit_their_type() -> None:
    with Database() as database:
        database.create_table("r", {"k": "int", "a": "int", "d": "decimal(38,2)"})
        database.create_table("t", {"k": "int", "d": "int"})
        sums = database.create_view("sums", "SELECT SUM(d) AS d, SUM(a) AS a FROM r WHERE k IN (:k)")
        joint = database.create_view("joint", "SELECT SUM(r.a * t.d) AS s FROM r JOIN t ON r.k = t.k WHERE r.k IN (:k)")
        long = Decimal("123456789012345678901234567890123456.11")
        database.insert("r", [(1, 2**62, long), (2, 2**61, Decimal("0.01")), (3, 2**62, None)])
        database.insert("t", [(1, 1), (2, 1)])

        assert list(sums(k=[1, 2])) == [(Decimal("123456789012345678901234567890123456.12"), 2**62 + 2**61)]
        assert list(joint(k=[1, 2])) == [(2**62 + 2**61,)]
        with pytest.raises(DataError, match="does not fit int"):
            list(sums(k=[1, 2, 3]))


def test_lists_of_arrays_give_rows_that_can_be_counted() -> None:
    with Database() as database:
        database.create_table("t", {"id": "int", "l": "array<int>"})
        database.insert("t", [(1, [1, None]), (2, [1, None]), (3, [])])
        view = database.create_view("v", "SELECT l, COUNT(*) AS n FROM t WHERE l IN (:l) GROUP BY l")
        ordered = database.create_view("o", "SELECT DISTINCT l FROM t WHERE id IN (:i) ORDER BY l LIMIT 5")

        assert dict(view.items(l=[[1, None]])) == {((1, None), 2): 1}
        assert list(ordered(i=[1, 2, 3])) == [((),), ((1, None),)]
