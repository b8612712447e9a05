"""What a table that keeps no rows takes, and how it refuses what needs them later (decision 0740)."""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.errors import DataError, ExpressionError, IvmeError, PlanError, SchemaError, UnsupportedError
from ivme.shards.database import ShardedDatabase
from ivme.tables import read_tables
from tests.sharded_databases import LocalCluster

EVENTS = {"user": "int", "kind": "string", "note": "string"}

pytestmark = pytest.mark.filterwarnings("ignore:ivme's compiled kernel is missing")
KERNEL = pytest.mark.parametrize("engine", ["kernel"], indirect=True)


@pytest.fixture(autouse=True, params=["kernel", "plain"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine of the databases that a test makes."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "ivme.engine.codes.native_dictionary", None)


def database_with_rows(rows: int = 3) -> Database:
    db = Database()
    db.create_table("events", EVENTS, keep_rows=False)
    db.create_view("kinds", "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind")
    db.insert("events", [(number, "ab"[number % 2], f"note {number}") for number in range(rows)])
    return db


@pytest.mark.parametrize(
    ("promised", "message"),
    [
        ({"primary_key": "user"}, "declare user as unique and not_null"),
        ({"static": True}, "cannot be static"),
    ],
)
def test_what_could_not_be_enforced_is_not_declared(promised: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Database().create_table("events", EVENTS, keep_rows=False, **promised)


@pytest.mark.parametrize("option", ["keep_rows", "append_only", "static"])
def test_an_option_that_is_no_bool_is_refused(option: str) -> None:
    """Any text counts as true in Python: "no" declared a table append-only."""
    said: dict[str, Any] = {option: "no"}
    with Database() as db:
        with pytest.raises(SchemaError, match=f"table events: {option} must be True or False; it is 'no'"):
            db.create_table("events", EVENTS, **said)
        db.create_table("events", EVENTS)


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("keep_rows = maybe", "write keep_rows = true or keep_rows = false"),
        ("keeprows = false", "did you mean keep_rows"),
        ("fillfactor = 70", "the options of a table are append_only, static, keep_rows"),
    ],
)
def test_an_option_in_sql_that_is_not_known_is_answered_with_what_to_write(option: str, instead: str) -> None:
    with pytest.raises(UnsupportedError, match=instead):
        Database().sql(f"CREATE TABLE events (id INT) WITH ({option})")


@pytest.mark.parametrize("form", ["one row", "rows", "Arrow", "batches"])
def test_rows_that_no_view_takes_are_lost_with_a_warning(form: str) -> None:
    rows = [(1, "a", "n")] if form == "one row" else [(number, "a", "n") for number in range(9)]
    with Database() as db:
        db.create_table("events", EVENTS, keep_rows=False)
        columns = dict(zip(EVENTS, map(list, zip(*rows, strict=True)), strict=True))
        given = pa.table(columns) if form == "Arrow" else rows
        take = (
            partial(db.apply_batches, [{"events": rows}]) if form == "batches" else partial(db.insert, "events", given)
        )
        with pytest.warns(UserWarning, match="table events keeps no rows and has no views"):
            take()


def test_changes_of_rows_that_are_not_kept_say_what_is_possible() -> None:
    with database_with_rows() as db:
        for text in ("DELETE FROM events WHERE user = 1", "UPDATE events SET kind = 'c'", "TRUNCATE TABLE events"):
            with pytest.raises(IvmeError, match="none can be changed or deleted: only insert into it"):
                db.sql(text)
        with pytest.raises(IvmeError, match="cannot be altered after its first rows"):
            db.add_column("events", "more", "int")


def test_promises_of_other_tables_are_checked_before_those_of_rows_that_are_not_kept() -> None:
    with Database() as db:
        db.create_table("events", {"id": "int"}, unique=["id"], keep_rows=False)
        db.create_view("n", "SELECT COUNT(*) AS n FROM events")
        db.create_table("users", {"id": "int"}, unique=["id"])
        db.insert("events", [(1,)])
        with pytest.raises(PlanError, match="table events keeps no rows"):
            db.check_promises()
        db.insert("users", [(1,), (1,)])
        with pytest.raises(DataError, match="of table users is declared UNIQUE"):
            db.check_promises()


def test_a_primary_key_in_sql_is_refused_at_its_place() -> None:
    with pytest.raises(UnsupportedError, match="a primary key cannot be enforced"):
        Database().sql("CREATE TABLE events (id INT PRIMARY KEY) WITH (keep_rows = false)")
    with pytest.raises(UnsupportedError, match="none can be deleted"):
        Database().sql("CREATE TABLE events (id INT) WITH (keep_rows = false, append_only = false)")
    with pytest.raises(UnsupportedError, match="has none of a query"):
        Database().sql("CREATE TABLE events WITH (keep_rows = false) AS SELECT 1 AS a")


@pytest.mark.parametrize("options", ["WITH (keep_rows = false)", "TBLPROPERTIES ('keep_rows' = 'false')"])
def test_sql_declares_it(options: str) -> None:
    with Database() as db:
        db.sql(
            f"CREATE TABLE events (user INT, kind STRING) {options}; CREATE VIEW n AS SELECT COUNT(*) AS n FROM events"
        )
        db.sql("INSERT INTO events VALUES (1, 'a'), (2, 'b')")
        assert db.view("n").scalar() == 2


def test_declarations_in_files_have_it() -> None:
    (made,) = read_tables({"events": {"columns": EVENTS, "keep_rows": False}})
    assert (made.keep_rows, made.append_only) == (False, True)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM events",
        "CREATE VIEW late AS SELECT user, COUNT(*) AS n FROM events GROUP BY user",
        "CREATE VIEW late AS SELECT note FROM events UNION SELECT kind FROM events",
        "ALTER TABLE events ADD COLUMN more INT",
        "INSERT INTO other SELECT user FROM events",
    ],
)
def test_whatever_reads_the_rows_later_is_refused(text: str) -> None:
    with database_with_rows() as db:
        db.create_table("other", {"a": "int"})
        before = dict(db.view("kinds").items())
        with pytest.raises(IvmeError, match="table events keeps no rows"):
            db.sql(text)
        assert dict(db.view("kinds").items()) == before
        assert list(db.views) == ["kinds"]


def test_methods_that_read_the_rows_are_refused() -> None:
    with database_with_rows() as db:
        view = db.view("kinds")
        for reading in (
            view.verify,
            lambda: view.why(("a", 2)),
            lambda: db.replace("events", []),
            lambda: db.truncate("events"),
        ):
            with pytest.raises(IvmeError, match=r"keeps no rows|append-only"):
                reading()
        with pytest.raises(DataError, match="append-only"):
            db.delete("events", [(0, "a", "note 0")])
        assert dict(view.items()) == {("a", 2): 1, ("b", 1): 1}


def test_before_its_first_rows_views_come_and_go() -> None:
    with database_with_rows(0) as db:
        db.create_view("notes", "SELECT note FROM events")
        db.drop_view("kinds")
        db.sql("ALTER TABLE events ADD COLUMN more INT")
        db.insert("events", [(1, "a", "n", 5)])
        assert list(db.view("notes")) == [("n",)]


def test_a_view_that_has_all_it_needs_in_another_one_needs_no_rows() -> None:
    with database_with_rows() as db:
        db.create_view("same", "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind")
        db.insert("events", [(9, "a", "")])
        assert dict(db.view("same").items()) == dict(db.view("kinds").items()) == {("a", 3): 1, ("b", 1): 1}


def test_a_table_with_rows_that_is_dropped_may_be_created_again() -> None:
    with database_with_rows() as db:
        db.drop_view("kinds")
        db.drop_table("events")
        db.create_table("events", EVENTS, keep_rows=False)
        db.create_view("n", "SELECT COUNT(*) AS n FROM events")
        db.insert("events", [(9, "a", "")])
        assert db.view("n").scalar() == 1


def test_an_expression_that_fails_behind_a_join_names_the_table() -> None:
    """The rows are not there to find the one that fails."""
    with Database() as db:
        db.create_table("events", {"user": "int", "ms": "int"}, keep_rows=False)
        db.create_table("users", {"id": "int"}, primary_key="id")
        db.create_view("shares", "SELECT id, 100 / ms AS share FROM events JOIN users ON user = id")
        db.insert("events", [(7, 0)])
        assert list(db.view("shares")) == []
        with pytest.raises(ExpressionError, match="a row of table events, which keeps none"):
            db.insert("users", [(7,)])
        db.insert("users", [(8,)])
        assert list(db.view("shares")) == []


def test_refused_rows_are_not_counted() -> None:
    with database_with_rows() as db:
        size = db.definitions.runtime.backend.size
        rows = pa.table({"user": [1] * 90, "kind": ["a"] * 90, "note": pa.array([b"\xff"] * 90).view(pa.string())})
        with pytest.raises(DataError):
            db.insert("events", rows)
        with pytest.raises(DataError):
            db.apply_batches([[("events", [(1, "a", "n")], 1), ("events", [("one", "a", "n")], 1)]])
        assert size("table events") == 3
        assert dict(db.view("kinds").items()) == {("a", 2): 1, ("b", 1): 1}


def _with(column: str, value: pa.Array) -> pa.RecordBatch:
    """Rows whose last one has another value in a column."""
    values = {
        "user": pa.array(range(90)),
        "price": pa.array([Decimal("1.25")] * 90, pa.decimal128(4, 2)),
        "ratio": pa.array([0.5] * 90),
        "note": pa.array(["n"] * 90),
    }
    values[column] = pa.concat_arrays([values[column].slice(1), value])
    return pa.record_batch(values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("price", pa.Array.from_buffers(pa.decimal128(4, 2), 1, [None, pa.py_buffer((12345).to_bytes(16, "little"))])),
        ("ratio", pa.array([math.nan])),
        ("note", pa.array([b"\xff"]).view(pa.string())),
        ("user", pa.array([-(2**63)])),
    ],
)
@pytest.mark.parametrize("keep_rows", [True, False])
def test_columns_that_no_view_reads_are_checked(column: str, value: pa.Array, keep_rows: bool) -> None:
    declared = {"user": "int", "price": "decimal(4, 2)", "ratio": "float", "note": "string"}
    with Database() as db:
        db.create_table("events", declared, append_only=True, keep_rows=keep_rows)
        db.create_view("n", "SELECT COUNT(*) AS n FROM events")
        good = _with("user", pa.array([7]))
        db.insert("events", good)
        with pytest.raises(DataError):
            db.insert("events", _with(column, value))
        db.insert("events", good)
        assert db.view("n").scalar() == 180


def test_only_views_have_entries() -> None:
    with database_with_rows(200) as db:
        backend = db.definitions.runtime.backend
        assert backend.size("table events") == 200
        assert backend.entries() <= 4


@KERNEL
def test_rows_take_no_memory() -> None:
    with database_with_rows() as db:
        rows = pa.table({"user": range(50_000), "kind": ["a"] * 50_000, "note": [f"n {i}" for i in range(50_000)]})
        db.insert("events", rows)
        before = db.definitions.runtime.backend.memory_bytes()
        for _ in range(10):
            db.insert("events", rows)
        assert db.definitions.runtime.backend.memory_bytes() < before + 1_000_000
        assert db.definitions.runtime.backend.size("table events") == 550_003


@KERNEL
def test_the_kernel_refuses_to_show_what_it_has_not() -> None:
    """Whoever forgot to ask would take the table for an empty one."""
    with database_with_rows() as db:
        backend = db.definitions.runtime.backend
        assert isinstance(backend, NativeBackend)
        for reading in (backend.scan, backend.weights, lambda name: backend.column(name, 0)):
            with pytest.raises(Exception, match="not kept"):
                reading("table events")


def test_directories_and_shards_keep_all_rows(tmp_path: Path) -> None:
    with Database(tmp_path / "state") as db:
        with pytest.raises(PlanError, match="in a directory"):
            db.create_table("events", EVENTS, keep_rows=False)
        assert not db.tables
    for rows in (0, 3):
        with database_with_rows(rows) as db:
            with pytest.raises(PlanError, match=r"keeps no rows|in a directory"):
                db.backup(tmp_path / "copy")
            assert not (tmp_path / "copy").exists()
            assert db.view("kinds").count() == min(rows, 2)
    with (
        ShardedDatabase(LocalCluster(tmp_path / "shards", 2)) as sharded,
        pytest.raises(PlanError, match="over shards"),
    ):
        sharded.create_table("events", EVENTS, keep_rows=False)
