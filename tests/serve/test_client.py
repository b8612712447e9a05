"""The client has the methods of a database and of a view, and each does over HTTP what it does here."""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ivme
from ivme.client.async_client import AsyncDatabase
from ivme.client.async_view import AsyncView
from ivme.client.connection import RemoteDatabase, RemoteError, RemoteView
from ivme.client.remote_batch import RemoteBatch
from ivme.database import Database
from ivme.engine.runtime.batch import Batch
from ivme.errors import DataError, IvmeError, PlanError, SchemaError, UnknownNameError, VerificationError
from ivme.serve.grants import read_grant
from ivme.serve.settings import Settings
from ivme.view import View
from tests.serve.running import serving

TOKEN = "0123456789abcdef"
WRITER, READER = "writer-0123456789", "reader-0123456789"

NOT_REMOTE = {
    "create_function": "a function of Python is code, which a server does not take from its clients",
    "drop_function": "the same",
    "functions": "the same",
    "create_ring_view": "its ring is an object of Python",
    "replan": "a server plans anew on its own, as views are used",
    "create_ies": "its programs run in DuckDB with all rights of the server",
    "definitions": "is for packages around the database",
    "relation": "is a declaration of the planner; `table(name).described` and `view(name).described` have it in words",
}
NOT_REMOTE_OF_VIEWS = {
    **dict.fromkeys(
        ("analysed", "asked", "calls", "made_with", "state", "feeds"), "is for packages around the database"
    ),
    **dict.fromkeys(("check_alive", "check_followed", "end", "is_gone", "is_stored", "lock", "read_lock"), "the same"),
    **dict.fromkeys(("before_reading", "check_readable"), "the same"),
    **dict.fromkeys(("engine_stats", "follow", "unfollow", "few_rows", "group_batches", "limited_table"), "the same"),
    **dict.fromkeys(("is_mapped", "known_size", "mapped_page", "own_order", "page", "weighted"), "the same"),
}


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("here", "there", "missing"),
    [
        (Database, RemoteDatabase, NOT_REMOTE),
        (View, RemoteView, NOT_REMOTE_OF_VIEWS),
        (
            Batch,
            RemoteBatch,
            dict.fromkeys(("all_or_nothing", "change", "check", "hold", "look", "make", "mark"), "of packages"),
        ),
    ],
)
def test_the_client_has_every_method_that_can_be_remote(here: type, there: type, missing: dict[str, str]) -> None:
    attributes = {"name", "columns", "parameters", "relations", "described"}
    own = {name for name in missing if not hasattr(here, name)}
    assert own <= {"definitions", "analysed", "asked", "calls", "made_with", "state"}, "others are gone: drop them"
    assert set() == public(here) - public(there) - missing.keys() - attributes
    for name in public(here) & public(there):
        given = getattr(here, name)
        if inspect.isfunction(given):
            wanted, found = (set(inspect.signature(each).parameters) for each in (given, getattr(there, name)))
            assert wanted - found <= {"analyze"}, f"{there.__name__}.{name}"


def test_no_method_of_the_client_is_missing_for_event_loops() -> None:
    assert {"request", "open_stream"} == public(RemoteDatabase) - public(AsyncDatabase)
    assert {"read_by"} == public(RemoteView) - public(AsyncView)


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with Database() as made:
        yield made


@pytest.fixture(scope="module")
def address(db: Database) -> Iterator[str]:
    tokens = (read_grant("writer", WRITER, ["write:items"]), read_grant("seer", READER, ["read:dear"]))
    with serving(db, Settings(token=TOKEN, tokens=tokens, rows=1000)) as found:
        yield found


@pytest.fixture
def remote(address: str, db: Database) -> Iterator[RemoteDatabase]:
    for view in reversed(db.views):
        db.drop_view(view)
    for table in db.tables:
        db.drop_table(table)
    schema = {"id": "int", "name": "string", "price": "decimal(8, 2)", "day": "date", "x": "float"}
    with ivme.connect(address, token=TOKEN) as made:
        made.create_table("items", schema, primary_key="id")
        made.create_view("dear", "SELECT name, price FROM items WHERE price > 5")
        yield made


Change = Callable[[Any], object]


def changes(seed: int) -> Iterator[Change]:
    """Random changes, for a database and for a client alike; some are refused."""
    draw = random.Random(seed)

    def row() -> tuple[Any, ...]:
        price = draw.choice([None, Decimal(draw.randrange(2000)) / 100])
        moment = draw.choice([None, date(2024, 2, draw.randrange(1, 29))])
        return (draw.randrange(12), draw.choice(["pen", "ink", "", None, "ä'\""]), price, moment, draw.random())

    def rows() -> Any:
        found = [row() for _ in range(draw.randrange(4))]
        names = ["id", "name", "price", "day", "x"]
        form = draw.randrange(4)
        if form == 1:
            return [dict(reversed(list(zip(names, each, strict=True)))) for each in found]
        if form == 2:
            types = [pa.int64(), pa.string(), pa.decimal128(8, 2), pa.date32(), pa.float64()]
            columns = list(zip(*found, strict=True)) or [()] * 5
            arrays = {n: pa.array(c, t) for n, c, t in zip(names, columns, types, strict=True)}
            return pa.table({name: arrays[name] for name in sorted(names)})
        return found

    for _ in range(40):
        given, number = rows(), draw.randrange(12)
        text, strict = draw.choice(["pen", "ink"]), draw.random() < 0.5
        weighted = [(number, "w", None, None, 1.5)]
        rounded = {"price": 0.125 * number, "name": ":t"}
        exact = {"price": 0.125 * number, "day": date(2024, 3, 1)}
        calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
            ("insert", (given,), {}),
            ("upsert", (given,), {}),
            ("replace", (given,), {}),
            ("delete", (given,), {"strict": strict}),
            ("delete_keys", ([number],), {"strict": strict}),
            ("apply", (weighted, [1]), {}),
            ("update", (), {"set": exact, "where": "id > :n", "n": number}),
            ("update", (), {"set": rounded, "round_floats": True, "t": f"n{number}"}),
            ("delete_where", ("name = :text",), {"text": text}),
            ("truncate", (), {}),
        ]
        yield _call(*draw.choice(calls))


def _call(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Change:
    return lambda to: getattr(to, name)("items", *arguments, **options)


@pytest.mark.parametrize("seed", range(3))
def test_changes_do_the_same_here_and_there(remote: RemoteDatabase, db: Database, seed: int) -> None:
    with Database() as here:
        here.create_table("items", remote.table("items").described["columns"], primary_key="id")
        view = here.create_view("dear", "SELECT name, price FROM items WHERE price > 5")
        for change in changes(seed):
            told = [_outcome(change, to) for to in (here, remote)]
            assert (told[0] is None) == (told[1] is None), told
            assert sorted(here.table("items"), key=repr) == sorted(db.table("items"), key=repr)
        assert sorted(view, key=repr) == sorted(remote.view("dear"), key=repr)
    remote.view("dear").verify()


def _outcome(change: Change, to: Any) -> str | None:
    try:
        with to.batch() as batch:
            change(batch)
    except IvmeError as error:
        return f"{type(error).__name__}: {error}"
    return None


@dataclass
class Item:
    id: int
    name: str
    price: Decimal
    day: date | None
    x: float


def test_rows_come_in_many_forms(remote: RemoteDatabase, db: Database, tmp_path: Path) -> None:
    frame = pandas.DataFrame({"x": [0.5], "day": [None], "price": [Decimal("1.10")], "name": ["pd"], "id": [1]})
    remote.insert("items", frame)
    remote.insert("items", polars.DataFrame({"id": [2], "name": ["pl"], "price": [None], "day": [None], "x": [1.0]}))
    remote.insert("items", (row for row in [Item(3, "dc", Decimal("3.30"), date(2024, 1, 1), 0.0)]))
    remote.insert("items", [(np.int64(4), np.str_("np"), None, None, np.float64(2.5))])
    (tmp_path / "rows.csv").write_text("id,name,price,day,x\n5,csv,0.50,2024-02-29,1e3\n6,,,,\n")
    (tmp_path / "rows.json").write_text('{"id": 7, "name": "json", "price": 7.25, "day": null, "x": 0.1}\n')
    pq.write_table(
        pa.table({**{n: [None] for n in ("name", "price", "day", "x")}, "id": [8]}), tmp_path / "rows.parquet"
    )
    for name in ("rows.csv", "rows.json", "rows.parquet"):
        remote.insert("items", tmp_path / name)
    found = {row[0]: row[1:] for row in db.table("items")}
    assert ("pd", Decimal("1.10"), None, 0.5) == found[1]
    assert ("dc", Decimal("3.30"), date(2024, 1, 1), 0.0) == found[3]
    assert ("np", None, None, 2.5) == found[4]
    assert ("csv", Decimal("0.50"), date(2024, 2, 29), 1000.0) == found[5]
    assert (None, None, None, None) == found[6] == found[8]
    assert ("json", Decimal("7.25"), None, 0.1) == found[7]
    for wrong in ("text", 7, [object()], [(9, object(), None, None, None)], {"id": 9}, tmp_path / "none.csv", ["ab"]):
        with pytest.raises(IvmeError):
            remote.insert("items", wrong)
    assert 8 == len(remote.table("items")) == len(db.table("items"))
    remote.insert("items", [(10, "r", 0.125, None, None)], round_floats=True)
    assert Decimal("0.13") == remote.sql("SELECT price FROM items WHERE id = 10").scalar()


def test_what_is_no_row_position_or_moment_is_told_here(remote: RemoteDatabase, db: Database) -> None:
    remote.create_table("nested", {"id": "int", "a": "array<int>"})
    remote.insert("nested", [(1, (1, 2))])
    view, here = remote.create_view("arrays", "SELECT id, a FROM nested"), db.view("arrays")
    assert isinstance(here, View)
    assert here.why((1, (1, 2))) == view.why((1, (1, 2)))
    assert 1 == view.multiplicity((1, (1, 2)))
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("which no column holds", lambda: view.why((1, object()))),
        ("by its position", lambda: view["a"]),  # type: ignore[call-overload]
        ("by its position", lambda: here["a"]),  # type: ignore[call-overload]
        ("by its position", lambda: here["a":]),
        ("is one row", lambda: remote.insert("items", (1, "a", None, None, None))),
        ("is one row", lambda: remote.insert("items", {"id": 1})),
        ("is a view", lambda: remote.insert("dear", [("a", 1)])),
        ("to a datetime", lambda: remote.advance("now")),  # type: ignore[arg-type]
        ("position is missing", lambda: remote.batch("source")),
        ("write `with db.batch", lambda: remote.batch().insert("R", [])),
        ("are waited for", lambda: view.changes(wait=False)),
        ("answers by itself", lambda: remote.sql("SELECT 1 AS a", engine="duckdb")),
    ]
    for message, call in wrong:
        with pytest.raises(IvmeError, match=message):
            call()


def test_a_batch_is_sent_as_a_whole_and_once(remote: RemoteDatabase, db: Database) -> None:
    with remote.batch("till", 7) as batch:
        batch.insert("items", [(1, "a", None, None, None), (2, "b", None, None, None)])
        batch.update("items", set={"name": "CONCAT(name, name)"}, where="id = 2")
        batch.delete_keys("items", [1])
        assert ("items",) == batch.tables
    assert [(2, "bb")] == remote.sql("SELECT id, name FROM items").rows()
    assert 7 == remote.position("till")
    assert remote.position("other") is None
    with pytest.raises(IvmeError, match="applied before"), remote.batch("till", 7) as batch:
        batch.truncate("items")
    with pytest.raises(PlanError, match="is over"):
        batch.truncate("items")
    with pytest.raises(ZeroDivisionError), remote.batch() as batch:
        batch.update("items", set={"x": 1 / 0})
    with pytest.raises(PlanError, match="is over"):
        batch.truncate("items")
    with remote.batch() as batch:
        batch.truncate("items")
        batch.discard()
    assert 1 == len(db.table("items"))


def test_views_are_read_as_they_are_here(remote: RemoteDatabase, db: Database) -> None:
    remote.insert("items", [(n, f"n{n % 3}", Decimal(n), None, n / 4) for n in range(20)])
    remote.create_view("top", "SELECT id, price FROM items ORDER BY price DESC LIMIT 7", favour="reads")
    remote.create_view("named", "SELECT id, x FROM items WHERE name = :name")
    remote.create_view("bag", "SELECT name FROM items")
    for name in ("dear", "top", "bag"):
        there, here = remote.view(name), db.view(name)
        assert isinstance(here, View)
        assert (len(here), bool(here), here.count()) == (len(there), bool(there), there.count())
        assert sorted(here.items(), key=repr) == sorted(there.items(), key=repr)
        assert (here.schema, here.change_schema, here.columns) == (there.schema, there.change_schema, there.columns)
        assert here.relations == there.relations or name == "top"
        for key in (slice(None), slice(2, 5), slice(-3, None), slice(5, 2), slice(0, 99)):
            assert here[key] == there[key]
        assert (here[0], here[-1], here[3]) == (there[0], there[-1], there[3])
        for place in (99, -99):
            with pytest.raises(IndexError):
                there[place]
        assert here.sample(3, seed=5) == there.sample(3, seed=5)
        assert len(here) == len(there.sample(500))
        for options in ({}, {"limit": 4}, {"limit": 4, "offset": 2}, {"order_by": [f"-{here.columns[0]}"], "limit": 0}):
            assert here.rows(**options) == there.rows(**options)
        page = here.rows(order_by=f"-{here.columns[0]}", limit=4)
        assert page == there.rows(order_by=f"-{here.columns[0]}", limit=4)
        assert here.rows(order_by=f"-{here.columns[0]}", after=page[-1]) == there.rows(
            order_by=[f"-{here.columns[0]}"], after=page[-1]
        )
        assert here.multiplicity(here[0]) == there.multiplicity(here[0]) > 0
        assert here[0] in there
        assert (*(None,) * len(here.columns),) not in there
        assert there.snapshot().equals(there.to_arrow())
        assert there._repr_html_().count("<tr>") == min(len(here), 20) + 1
        assert here._repr_svg_() == there._repr_svg_()
        there.verify()
    named, here = remote.view("named"), db.view("named")
    assert sorted(here.rows(order_by="-id", limit=3, name="n1")) == sorted(
        named.rows(order_by="-id", limit=3, name="n1")
    )
    assert 7 == named.count(name="n1") == here.count(name="n1")
    assert here.request_many(name=["n1", "n0", "?"]) == named.request_many(name=pa.array(["n1", "n0", "?"]))
    assert bool(named)
    assert 19 == remote.create_view("most", "SELECT MAX(id) AS m FROM items").scalar()
    with pytest.raises(DataError, match="not a single value"):
        remote.view("dear").scalar()
    data, counts = remote.contents("bag")
    assert {("n0",): 7, ("n1",): 7, ("n2",): 6} == dict(
        zip(zip(*data.to_pydict().values(), strict=True), counts, strict=True)
    )
    assert db.entries() == remote.entries()


def test_reasons_and_differences_are_told(
    remote: RemoteDatabase, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.insert("items", [(1, "pen", Decimal("7.50"), date(2024, 2, 29), 0.5)])
    here, there = db.view("dear"), remote.view("dear")
    assert isinstance(here, View)
    row = ("pen", Decimal("7.50"))
    assert here.why(row) == there.why(row)
    assert str(here.why_not(("ink", None))) == str(there.why_not(("ink", None)))
    with pytest.raises(DataError, match="is not in view"):
        there.why(("ink", None))

    def differs(_: View) -> None:
        raise VerificationError("one row differs")

    monkeypatch.setattr(View, "verify", differs)
    with pytest.raises(VerificationError, match="one row differs"):
        there.verify()


def test_tables_are_made_with_all_that_can_be_said_of_them(remote: RemoteDatabase, db: Database) -> None:
    remote.create_table(
        "sales",
        {"item": "int", "n": int, "at": "timestamp", "tag": "string", "tags": "array<int>"},
        references={"item": "items"},
        unique=[["at", "tag"]],
        not_null=["n"],
        defaults={"n": 1, "at": "now()", "tag": "new"},
        append_only=True,
    )
    declared = db.relation("sales")
    assert declared.append_only
    assert ("items",) == tuple(each.table for each in declared.references)
    assert ((("at", "tag"),), ("n",)) == (declared.unique, declared.not_null)
    remote.insert("sales", [{"item": 1, "tags": [1, 2]}])
    ((item, number, moment, tag, tags),) = remote.table("sales")
    assert (1, 1, "new", (1, 2)) == (item, number, tag, tags)
    assert isinstance(moment, datetime)
    with pytest.raises(IvmeError, match="items"):
        remote.check_promises("sales")
    with pytest.raises(IvmeError, match="items"):
        remote.check_promises()
    remote.insert("items", [(1, None, None, None, None)])
    remote.check_promises()
    remote.set_default("sales", "tag", "other")
    remote.set_default("sales", "at", None)
    remote.add_column("sales", "day", "date", "now()")
    remote.insert("sales", [{"item": 1, "tags": None, "at": None}])
    assert {"new", "other"} == {row[3] for row in remote.table("sales")}
    remote.create_table("sales", {"a": "int"}, if_not_exists=True)
    assert "item" in remote.table("SALES").columns
    remote.create_table("sales", {"a": "int"}, replace=True)
    assert ("a",) == remote.table("sales").columns
    assert "<RemoteTable sales: a int>" == repr(remote.table("sales"))
    remote.create_view("dear", "SELECT id FROM items", replace=True)
    assert ("id",) == remote.create_view("dear", "SELECT 1 AS one", if_not_exists=True).columns
    for wrong, kind in (
        (lambda: remote.create_table("sales", {"a": "int"}), IvmeError),
        (lambda: remote.create_table("new", {"a": "nothing"}), SchemaError),
        (lambda: remote.create_table("new", {}), IvmeError),
        (lambda: remote.create_table("new", {"a": "int"}, primary_key="b"), IvmeError),
        (lambda: remote.table("nothing"), UnknownNameError),
        (lambda: remote.rebuild_view("dear"), IvmeError),
    ):
        with pytest.raises(kind):
            wrong()
    assert ("items", "sales") == remote.tables
    assert "sales" in remote._repr_html_()
    assert "<svg" in remote._repr_svg_()


def test_a_backup_comes_over_http_and_can_be_opened(remote: RemoteDatabase, tmp_path: Path) -> None:
    remote.insert("items", [(n, "a", Decimal(n), None, 0.5) for n in range(100)])
    remote.checkpoint()
    remote.backup(tmp_path / "copy")
    with Database(tmp_path / "copy") as copy:
        assert sorted(remote.view("dear"), key=repr) == sorted(copy.view("dear"), key=repr)
    with pytest.raises(IvmeError, match="exists already"):
        remote.backup(tmp_path / "copy")
    assert [tmp_path / "copy"] == list(tmp_path.iterdir())


def test_a_subscriber_gets_changes_in_the_types_of_the_columns(remote: RemoteDatabase) -> None:
    got, came = list[dict[Any, int]](), threading.Event()

    def take(change: dict[Any, int]) -> None:
        got.append(change)
        came.set()

    with remote.view("dear").subscribe(take) as subscription:
        remote.insert("items", [(1, "oak", Decimal("70"), None, None)])
        assert came.wait(30)
    assert [{("oak", Decimal("70.00")): 1}] == got
    assert subscription.error is None
    assert not subscription.is_active


def test_tokens_do_only_what_their_scopes_say(remote: RemoteDatabase, address: str) -> None:
    remote.insert("items", [(1, "a", Decimal(9), None, None)])
    with ivme.connect(address, token=WRITER) as writer:
        writer.upsert("items", [(2, "b", None, None, None)])
        writer.delete_keys("items", [2])
        assert writer.position("anything") is None
        for refused in (
            lambda: writer.update("items", set={"x": 1.0}),
            lambda: writer.delete_where("items", "id = 1"),
            lambda: writer.backup("/tmp/never"),
            lambda: writer.checkpoint(),
            lambda: writer.create_table("t", {"a": "int"}),
            lambda: list(writer.table("items")),
            lambda: writer.check_promises("items"),
        ):
            with pytest.raises(RemoteError, match="lacks the scope"):
                refused()
    with ivme.connect(address, token=READER) as reader:
        view = reader.view("dear")
        assert [("a", Decimal(9))] == view[:] == view.sample(5) == view.rows(order_by="name")
        with pytest.raises(IvmeError, match="no parameter"):
            view.request_many(name=[1])
        assert 1 == view.count()
        assert view.why(("a", Decimal(9))).present
        others: list[Callable[[], object]] = [lambda: reader.position("x"), lambda: reader.truncate("items")]
        for wrong in others:
            with pytest.raises(RemoteError):
                wrong()
        with pytest.raises(RemoteError):
            reader.backup("/tmp/never")
    assert 1 == len(remote.table("items"))


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/batch", {"changes": [{"table": "items"}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "items", "change": "insert"}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "items", "change": []}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "items", "change": "insert", "rows": {}}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "items", "change": "truncate", "rows": []}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "none", "change": "truncate"}]}, 404),
        ("POST", "/batch", {"changes": [{"table": "items", "change": "update", "set": {"x": {"type": "?"}}}]}, 422),
        ("POST", "/batch", {"changes": [{"table": "items", "change": "apply", "rows": [[1]], "weights": [1, 2]}]}, 422),
        ("POST", "/batch", {"changes": [7]}, 422),
        ("POST", "/tables", {"name": "t"}, 422),
        ("POST", "/tables", {"name": "t", "columns": {"a": 1}}, 422),
        ("POST", "/tables", {"name": "t", "columns": {"a": "int"}, "unique": ["a"]}, 422),
        ("POST", "/views", {"name": "t", "query": "SELECT 1 AS a", "replace": 1}, 422),
        ("POST", "/views/dear/requests", {"parameters": {"x": [1]}}, 422),
        ("POST", "/views/dear/requests", [], 422),
        ("GET", "/views/dear/slice?_start=x", None, 422),
        ("GET", "/views/dear/sample", None, 422),
        ("GET", "/views/dear/sample?_count=-1", None, 422),
        ("GET", "/views/dear/sample?_count=1001", None, 413),
        ("GET", "/views/dear/why?_row=[1]", None, 422),
        ("GET", "/views/dear/why?_row=", None, 400),
        ("GET", "/views/none/count", None, 404),
        ("GET", "/views/dear/count?other=1", None, 422),
        ("GET", "/views/dear?_offset=1", None, 422),
        ("GET", "/views/dear?_order_by=[1]", None, 422),
        ("GET", "/views/dear?_order_by=&_offset=-1", None, 422),
        ("GET", "/position", None, 422),
        ("GET", "/promises?table=none", None, 404),
    ],
)
def test_what_is_wrong_is_refused(
    remote: RemoteDatabase, address: str, method: str, path: str, body: Any, status: int
) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    found = httpx.request(method, f"{address}{path}", json=body, headers=headers)
    assert status == found.status_code, found.text
    assert found.json()["error"]
    assert ("items",) == remote.tables


def test_a_view_with_too_many_rows_is_not_read_by_position(remote: RemoteDatabase) -> None:
    remote.insert("items", [(n, "a", Decimal(9), None, None) for n in range(1001)])
    view = remote.view("dear")
    reads: list[Callable[[], object]] = [lambda: view[:5], lambda: view.sample(1), view.rows, lambda: list(view)]
    for read in reads:
        with pytest.raises(IvmeError, match="more than 1000 rows"):
            read()
    first = remote.create_view("first", "SELECT id, price FROM items ORDER BY id", favour="reads")
    assert [(0, Decimal(9)), (1, Decimal(9))] == first[:2] == first.rows(limit=2)
    assert 1001 == len(first)


def test_everything_is_awaited_in_an_event_loop(remote: RemoteDatabase, address: str, tmp_path: Path) -> None:
    async def use() -> None:
        async with await ivme.connect_async(address, token=TOKEN) as there:
            async with there.batch("loop", 3) as batch:
                batch.insert("items", [(1, "a", Decimal(9), None, 0.5), (2, "b", Decimal(1), None, None)])
                batch.update("items", set={"price": ":p"}, where="id = 2", p=Decimal("6.5"))
            assert 3 == await there.position("loop")
            view = await there.view("dear")
            assert [("b", Decimal("6.50"))] == await view.rows(order_by="-name", limit=1)
            assert (2, 2) == (await view.count(), len(await view.sample(5)))
            assert 1 == await view.multiplicity(("a", Decimal(9)))
            assert (await view.why(("a", Decimal(9)))).present
            assert not (await view.why_not(("z", Decimal(9)))).present
            await view.verify()
            assert 2 == len(await view.items()) == len(await view())
            assert [1, 2] == sorted([row[0] async for row in await there.table("items")])
            await there.delete_keys("items", [1])
            await there.apply("items", [(7, "c", None, None, None)], 1)
            await there.checkpoint()
            await there.backup(tmp_path / "copy")
            with pytest.raises(ZeroDivisionError):
                async with there.batch() as batch:
                    batch.update("items", set={"x": 1 / 0})
            assert 2 == (await (await there.table("items")).to_arrow()).num_rows
            assert 2 == len((await there.contents("items"))[1])

    asyncio.run(use())
    with Database(tmp_path / "copy") as copy:
        assert 2 == len(copy.table("items"))
    assert 2 == len(remote.table("items"))
