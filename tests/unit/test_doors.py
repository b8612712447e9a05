"""What people have becomes tables and rows, and what a database holds becomes what they use."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from xml.etree import ElementTree

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pydantic
import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError, PlanError, SchemaError

DATA = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "name": pa.array(["a", None], pa.large_string()),
        "day": [datetime.date(2024, 1, 1), None],
        "price": pa.array([Decimal("1.50"), None], pa.decimal128(8, 2)),
    }
)
TYPES = ["int", "string", "date", "decimal(8,2)"]


@dataclass
class Item:
    id: int
    name: str | None
    day: datetime.date
    price: Annotated[Decimal, "decimal(8, 2)"]


class Model(pydantic.BaseModel):
    id: int
    name: str | None = None
    day: datetime.date
    price: Annotated[Decimal, "decimal(8, 2)"]


class Stream:
    """What polars and others look like to us: something that streams Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return DATA.__arrow_c_stream__(requested_schema)


def types(db: Database, name: str) -> list[str]:
    return [str(column.type) for column in db.relation(name).columns]


@pytest.mark.parametrize("schema", [DATA, DATA.schema, Item, Model, Stream(), pyarrow.dataset.dataset(DATA)])
def test_a_table_is_made_of_what_has_a_schema(schema: Any) -> None:
    db = Database()
    db.create_table("t", schema, primary_key="id")
    assert (types(db, "t"), db.relation("t").column_names) == (TYPES, ("id", "name", "day", "price"))
    assert len(db.table("t")) == 0


def test_a_table_is_made_of_a_frame_of_pandas() -> None:
    db = Database()
    frame = pd.DataFrame({"a": [1], "b": [1.5], "c": ["x"], "d": pd.to_datetime(["2024-01-01"]), "e": [True]})
    db.create_table("t", frame)
    assert types(db, "t") == ["int", "float", "string", "timestamp", "bool"]
    db.insert("t", frame)
    assert list(db.table("t")) == [(1, 1.5, "x", datetime.datetime(2024, 1, 1), True)]


@dataclass
class Odd:
    value: Decimal


@pytest.mark.parametrize("schema", [Odd, 5, ["a", "b"], pa.schema([("a", pa.duration("s"))]), {}])
def test_what_names_no_columns_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaError):
        Database().create_table("t", schema)


def test_what_is_there_is_left_or_replaced() -> None:
    db = Database()
    db.create_table("t", {"a": "int"})
    db.create_table("t", {"b": "int"}, if_not_exists=True)
    assert db.relation("t").column_names == ("a",)
    db.create_table("T", {"b": "int"}, replace=True)
    assert (db.tables, db.relation("t").column_names) == (("T",), ("b",))
    view = db.create_view("v", "SELECT b FROM t")
    assert db.create_view("v", "SELECT b + 1 AS c FROM t", if_not_exists=True) is view
    assert db.create_view("v", "SELECT b + 1 AS c FROM t", replace=True).columns == ("c",)
    for name in ("t", "v"):
        with pytest.raises(SchemaError, match="already"):
            db.create_table(name, {"b": "int"}, replace=name == "v")
    with pytest.raises(SchemaError, match="already a table"):
        db.create_view("t", "SELECT b FROM t", replace=True)
    with pytest.raises(PlanError, match="v needs it"):
        db.create_table("t", {"b": "int"}, replace=True)
    with pytest.raises(SchemaError, match="either"):
        db.create_table("t", {"b": "int"}, replace=True, if_not_exists=True)


def test_a_replaced_view_is_there_when_the_directory_is_opened_again(tmp_path: Path) -> None:
    for checkpoint in (False, True):
        with Database(tmp_path / str(checkpoint)) as db:
            db.create_table("t", {"a": "int"})
            db.insert("t", [(1,)])
            db.create_view("v", "SELECT a FROM t")
            db.create_view("v", "SELECT a + 1 AS b FROM t", replace=True)
            with pytest.raises(SchemaError):
                db.create_view("v", "SELECT a AS x FROM t", replace=True, if_not_exists=True)
            if checkpoint:
                db.checkpoint()
        with Database(tmp_path / str(checkpoint)) as db:
            assert (db.views, list(db.view("v"))) == (("v",), [(2,)])


def test_a_broken_view_is_replaced(tmp_path: Path) -> None:
    with Database(tmp_path) as db:
        db.create_table("t", {"a": "int"})
        db.create_function("f", "math:floor", arguments=["float"], returns="int")
        db.create_view("v", "SELECT f(CAST(a AS DOUBLE)) AS b FROM t")
    with Database(tmp_path) as db:
        if db.broken_views:
            db.sql("CREATE OR REPLACE VIEW v AS SELECT a FROM t")
            assert (db.views, db.broken_views) == (("v",), {})
    with Database(tmp_path) as db:
        assert db.broken_views == {}


# Rows


def _filled(rows: Any) -> list[Any]:
    db = Database()
    db.create_table("t", DATA)
    db.insert("t", rows)
    return sorted(db.table("t"), key=repr)


EXPECTED = [(1, "a", datetime.date(2024, 1, 1), Decimal("1.50")), (2, None, None, None)]


def test_rows_come_from_files(tmp_path: Path) -> None:
    pq.write_table(DATA, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("name,id,day,price\na,1,2024-01-01,1.5\n,2,,\n")
    assert _filled(tmp_path / "t.parquet") == EXPECTED
    assert _filled(str(tmp_path / "t.parquet")) == EXPECTED
    assert _filled(tmp_path / "t.csv") == EXPECTED
    for path in (tmp_path / "none.csv", "rows"):
        with pytest.raises(DataError):
            _filled(path)


def test_rows_come_from_datasets_and_readers() -> None:
    assert _filled(pyarrow.dataset.dataset(DATA)) == EXPECTED
    assert _filled(DATA.to_reader(max_chunksize=1)) == EXPECTED
    assert _filled(Stream()) == EXPECTED


def test_rows_of_a_generator_are_one_batch() -> None:
    db = Database()
    db.create_table("t", {"a": "int"})
    changes = db.create_view("v", "SELECT COUNT(*) AS n FROM t").changes()
    db.insert("t", ((number,) for number in range(150_000)))
    assert [dict(change) for change in changes] == [{(0,): -1, (150_000,): 1}]


def test_a_generator_that_fails_adds_nothing() -> None:
    db = Database()
    db.create_table("t", {"a": "int"})

    def rows(last: Any) -> Iterator[Any]:
        yield from ((number,) for number in range(70_000))
        if last is None:
            raise ValueError("no more")
        yield last

    with pytest.raises(ValueError, match="no more"):
        db.insert("t", rows(None))
    with pytest.raises(DataError, match="counted from number 65536"):
        db.insert("t", rows(("x",)))
    with db.batch() as batch:
        batch.insert("t", [(5,)])
        with pytest.raises(DataError):
            batch.insert("t", rows(("x",)))
    assert list(db.table("t")) == [(5,)]


# Out of the database


def test_views_and_tables_stream_arrow_data() -> None:
    db = Database()
    db.create_table("t", {"a": "int", "b": "string"})
    db.insert("t", [(1, "x"), (1, "x"), (2, None)])
    view = db.create_view("v", "SELECT b, COUNT(*) AS n FROM t GROUP BY b")
    rows = db.table("t")
    assert sorted(pa.table(view).to_pylist(), key=repr) == [{"b": "x", "n": 2}, {"b": None, "n": 1}]
    assert pa.table(rows).num_rows == 3
    assert pa.table(db.sql("SELECT a FROM t")).num_rows == 3
    with duckdb.connect() as peer:
        assert peer.execute("SELECT SUM(n) FROM view").fetchall() == [(3,)]
        assert peer.execute("SELECT SUM(a) FROM rows").fetchall() == [(4,)]


def test_databases_tables_and_views_are_shown() -> None:
    db = Database()
    assert repr(db) == "<Database in memory: tables none; views none>"
    db.create_table("t", {"a": "int", "b": "string"})
    db.insert("t", [(number, "<b>") for number in range(30)])
    view = db.create_view("v", "SELECT a, b FROM t")
    asked = db.create_view("w", "SELECT a FROM t WHERE b = :b")
    assert repr(db) == "<Database in memory: tables t; views v, w>"
    assert repr(db.table("t")) == "<Table t: a int, b string>"
    assert str(db.table("t")).splitlines()[:3] == [" a  b", "--  ---", " 0  <b>"]
    assert str(db.table("t")).endswith("30 rows, the first 20 are shown")
    for shown in (view._repr_html_(), db.table("t")._repr_html_(), db.sql("SELECT * FROM t")._repr_html_()):
        assert "&lt;b&gt;" in shown
        assert shown.count("<tr>") == 21
        assert "20" in shown
    assert "parameters: b" in asked._repr_html_()
    assert "SELECT a, b FROM t" in db._repr_html_()
    db.close()
    assert repr(db) == "<Database in memory, closed>"


def test_databases_and_views_are_drawn(tmp_path: Path) -> None:
    db = Database(tmp_path)
    assert "Database in " in ElementTree.fromstring(db._repr_svg_()).findtext(".//{*}title", "")
    db.create_table("t & u", {"a": "int", "b": "int"})
    db.create_table("lonely", {"a": "int"})
    top = db.create_view("top", "SELECT b, SUM(a) AS s FROM `t & u` GROUP BY b ORDER BY s DESC LIMIT 3")
    db.create_view("joined", "SELECT t.a, top.s FROM `t & u` AS t JOIN top USING (b)")
    db.create_view("constant", "SELECT 1 AS one")
    picture = ElementTree.fromstring(db._repr_svg_())
    lefts = {box[1].text: int(box[0].get("x", "")) for box in zip(*[iter(picture[4:][-10:])] * 2, strict=True)}
    assert {"t & u", "lonely", "constant"} == {name for name, left in lefts.items() if left == 24}
    assert 24 < lefts["top"] < lefts["joined"]
    assert 3 == len(picture.findall("{*}line"))
    assert top._repr_svg_() == top.explain()._repr_svg_()
    assert "top" in top._repr_svg_()
    db.close()
    with pytest.raises(IvmeError, match="closed"):
        db._repr_svg_()


def test_duckdb_answers_a_select_by_choice() -> None:
    db = Database()
    db.sql("CREATE TABLE t (a BIGINT, b STRING); INSERT INTO t VALUES (1, 'x'), (2, 'y'), (2, 'y')")
    db.sql("CREATE VIEW v AS SELECT a, COUNT(*) AS n FROM t GROUP BY a")
    text = "SELECT T.b, SUM(v.n) AS n FROM t JOIN V ON v.a = t.a WHERE t.a > :least GROUP BY t.b"
    assert [("y", 4)] == db.sql(text, least=1).rows() == db.sql(text, engine="duckdb", least=1).rows()
    hidden = "WITH v AS (SELECT DISTINCT a FROM t) SELECT a FROM v"
    assert [(1,), (2,)] == sorted(db.sql(hidden, engine="duckdb").rows())
    db.sql("BEGIN; INSERT INTO t VALUES (3, 'z')")
    assert 4 == db.sql("SELECT COUNT(*) AS n FROM t", engine="duckdb").scalar()
    db.sql("ROLLBACK")
    assert 3 == db.sql("SELECT COUNT(*) AS n FROM t", engine="duckdb").scalar()
    for wrong, message in (
        ("DELETE FROM t", "one SELECT at a time"),
        ("SELECT 1; SELECT 2", "one SELECT at a time"),
        ("SELECT a FROM nothing", "DuckDB refuses"),
        ("SELECT * FROM read_csv('/etc/passwd')", "DuckDB refuses"),
        ("SELECT a FROM t WHERE a = :a", "no value"),
    ):
        with pytest.raises(IvmeError, match=message):
            db.sql(wrong, engine="duckdb")
    with pytest.raises(IvmeError, match="'ivme' or 'duckdb'"):
        db.sql("SELECT a FROM t", engine="sqlite")


def test_rows_go_by_their_keys() -> None:
    db = Database()
    db.create_table("t", {"b": "string", "k": "int", "l": "string"}, primary_key=["k", "l"])
    db.create_table("u", {"k": "int", "b": "string"}, primary_key="k")
    db.create_table("plain", {"k": "int"})
    db.insert("t", [("x", n, "l") for n in range(5)])
    db.insert("u", [(n, "x") for n in range(5)])
    db.delete_keys("t", [(0, "l"), {"L": "l", "k": 1}])
    db.delete_keys("u", [0, (1,), 1])
    assert [2, 3, 4] == sorted(k for _, k, _ in db.table("t")) == sorted(k for k, _ in db.table("u"))
    with pytest.raises(DataError, match="no row with the key \\(9,\\)"):
        db.delete_keys("u", [2, 9])
    db.delete_keys("u", [2, 9], strict=False)
    with db.batch() as batch:
        batch.insert("u", [(7, "y")])
        batch.delete_keys("u", [7, 3])
    assert [(4, "x")] == list(db.table("u"))
    for keys in ("4", [(1, 2)], [{"b": "x"}], [None], 4):
        with pytest.raises(DataError):
            db.delete_keys("u", keys)
    with pytest.raises(SchemaError, match="no primary key"):
        db.delete_keys("plain", [1])
    assert [(4, "x")] == list(db.table("u"))


def test_floats_are_rounded_into_decimals_by_choice() -> None:
    db = Database()
    db.create_table("t", {"a": "int", "p": "decimal(6, 2)"})
    with pytest.raises(DataError, match="is a float"):
        db.insert("t", [(1, 0.125)])
    db.insert("t", [(1, 0.125), (2, -2.675), (3, Decimal("1.10")), (4, None), {"p": 7, "a": 5}], round_floats=True)
    db.insert("t", pd.DataFrame({"a": [6], "p": [1 / 3]}), round_floats=True)
    found = [Decimal(text) for text in ("0.13", "-2.68", "1.10", "7.00", "0.33")]
    assert [*found[:3], None, *found[3:]] == [p for _, p in sorted(db.table("t"))]
    for value in (float("nan"), float("inf"), 12345.678):
        with pytest.raises(DataError):
            db.insert("t", [(7, value)], round_floats=True)
    assert 6 == len(db.table("t"))


def test_floats_are_rounded_by_every_change_that_takes_rows(tmp_path: Path) -> None:
    db = Database()
    db.create_table("t", {"a": "int", "p": "decimal(6, 2)"}, primary_key="a")
    (tmp_path / "rows.csv").write_text("a,p\n1,0.125\n2,-2.675\n3,\n4,1e-3\n")
    (tmp_path / "rows.json").write_text('{"a": 5, "p": "7.005"}\n')
    half, rounded = [(1, 0.125), (2, -2.675)], [(1, Decimal("0.13")), (2, Decimal("-2.68"))]
    for change in (db.insert, db.upsert, db.replace, partial(db.apply, weights=[1, 1])):
        with pytest.raises(DataError, match="is a float"):
            change("t", rows=half)
        change("t", rows=half, round_floats=True)
        assert rounded == sorted(db.table("t"))
        db.truncate("t")
    db.insert("t", (row for row in half), round_floats=True)
    assert rounded == sorted(db.table("t"))
    db.update("t", set={"p": 0.335}, where="a = :a", a=1, round_floats=True)
    assert Decimal("0.34") == db.sql("SELECT p FROM t WHERE a = 1").scalar()
    with pytest.raises(DataError, match="is a float"):
        db.update("t", set={"p": 0.335})
    db.truncate("t")
    db.insert("t", tmp_path / "rows.csv", round_floats=True)
    db.sql("COPY t FROM :path (ROUND_FLOATS true)", path=str(tmp_path / "rows.json"))
    assert [*rounded, (3, None), (4, Decimal("0.00")), (5, Decimal("7.01"))] == sorted(db.table("t"))
    with pytest.raises(DataError, match="cannot be read as csv"):
        db.sql("COPY t FROM :path", path=str(tmp_path / "rows.csv"))
    (tmp_path / "large.csv").write_text("a,p\n9,123456789.5\n")
    with pytest.raises(DataError, match="cannot be read as csv"):
        db.insert("t", tmp_path / "large.csv", round_floats=True)
    assert 5 == len(db.table("t"))


def _refusal(work: Callable[[], object]) -> str:
    with pytest.raises(IvmeError) as refused:
        work()
    return str(refused.value)


def test_a_csv_file_that_does_not_fit_its_types_is_refused_with_the_row_and_the_value(tmp_path: Path) -> None:
    """Arrow said `In CSV column #2: Rescaling Decimal value would cause data loss`, and nothing else."""
    db, path = Database(), tmp_path / "orders.csv"
    db.sql("CREATE TABLE orders (id INT, price DECIMAL(8, 2), day DATE)")
    path.write_text("id,price,day\n1,2.50,2026-01-31\n2,3.999,2026-01-31\n")
    said = _refusal(lambda: db.insert("orders", path))
    assert "in row 2, '3.999' in column price is not of type decimal(8,2); round_floats=True" in said
    path.write_text("id,price,day\n1,2.501,2026-01-31\n2,3,31/01/2026\n")
    said = _refusal(lambda: db.insert("orders", path, round_floats=True))
    assert "in row 2, '31/01/2026' in column day is not of type date; or load the file into a table of strings" in said


@pytest.mark.parametrize(
    "query",
    ["SELECT * FROM mine WHERE customer = 1", "SELECT m.id FROM mine(1) m", "CREATE VIEW w AS SELECT x FROM Mine"],
)
def test_a_view_with_parameters_in_a_query_is_refused_with_how_to_read_it(query: str) -> None:
    """The column of the parameter was refused, as one that the view does not have."""
    db = Database()
    db.sql("CREATE TABLE orders (id INT, customer INT)")
    db.sql("CREATE VIEW mine AS SELECT id FROM orders WHERE customer = :customer")
    assert "read the rows for given values with db.view('mine')(customer=...)" in _refusal(lambda: db.sql(query))
    assert "no column 'x'" in _refusal(lambda: db.sql("CREATE OR REPLACE VIEW mine AS SELECT x FROM orders"))


@pytest.mark.parametrize(
    ("statement", "way"),
    [
        ("ALTER TABLE t ADD PRIMARY KEY (id)", "create another table with the key, INSERT INTO another SELECT"),
        (
            "ALTER TABLE t ADD CONSTRAINT one UNIQUE (id)",
            "create another table with the key, INSERT INTO another SELECT",
        ),
        ("DROP TABLE t CASCADE", "drop the views that read it first, by DROP VIEW"),
        ("SHOW CREATE VIEW v", "SHOW VIEWS (with their SQL)"),
        ("CREATE VIEW w AS SELECT id FROM t WHERE SUM(id) > 3 GROUP BY id", "compare aggregates in HAVING"),
        ("SELECT id FROM t WHERE id = %s", "write a parameter as :name"),
        ("INSERT INTO t VALUES (%s)", "write a parameter as :name"),
    ],
)
def test_what_other_systems_have_and_ivme_lacks_is_refused_with_the_way_to_do_it(statement: str, way: str) -> None:
    db = Database()
    db.sql("CREATE TABLE t (id INT); CREATE VIEW v AS SELECT id FROM t")
    assert way in _refusal(lambda: db.sql(statement))


def test_a_file_with_other_columns_than_the_table_is_refused_with_what_loads_it(tmp_path: Path) -> None:
    db, path = Database(), tmp_path / "people.csv"
    db.sql("CREATE TABLE people (id INT, name STRING)")
    path.write_text("id,name,extra\n1,Ann,x\n")
    way = _refusal(lambda: db.insert("people", path)).partition("the same: ")[2]
    db.sql(way.replace(", then", ";"))
    path.write_text("id\n2\n")
    db.sql(_refusal(lambda: db.insert("people", path)).partition("the same: ")[2].partition(" leaves")[0])
    assert [(1, "Ann"), (2, None)] == sorted(db.table("people"))
    assert "load the file first: CREATE TABLE loaded AS" in _refusal(lambda: db.sql(f"SELECT id FROM '{path}'"))


def test_statements_convert_the_numbers_of_parameters_and_files_as_constants(tmp_path: Path) -> None:
    """A parameter was refused by INSERT where UPDATE took it."""
    db = Database()
    db.sql("CREATE TABLE t (a BIGINT, p DECIMAL(6, 2), x DOUBLE)")
    for value in (0.125, Decimal("0.125")):
        db.sql("INSERT INTO t VALUES (1, :p, :p)", p=value)
        db.sql("UPDATE t SET p = :p", p=value)
        db.sql("INSERT INTO t VALUES (1, 0.125, 0.125)")
    assert {(1, Decimal("0.13"), 0.125)} == set(db.table("t"))
    (tmp_path / "rows.csv").write_text("a,p,x\n1,0.125,0.125\n")
    db.sql(f"INSERT INTO t SELECT * FROM '{tmp_path}/rows.csv'")
    assert {(1, Decimal("0.13"), 0.125)} == set(db.table("t"))
    for value in (float("inf"), 1e9):
        with pytest.raises(IvmeError):
            db.sql("INSERT INTO t VALUES (1, :p, 0)", p=value)
    assert 5 == len(db.table("t"))


def test_an_explanation_is_shown_in_a_notebook() -> None:
    db = Database()
    db.create_table("t", {"a": "int"})
    found = db.create_view("v", "SELECT a, COUNT(*) AS n FROM t WHERE a < 3 GROUP BY a").explain()
    assert found._repr_svg_().startswith("<svg")
    assert "a &lt; 3" in found._repr_html_()
