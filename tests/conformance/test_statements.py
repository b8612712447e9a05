"""Statements of SQL on a database: each does what it says, as a whole or not at all."""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ivme.database import Database
from ivme.errors import (
    DataError,
    ExpressionError,
    IvmeError,
    PlanError,
    QueryError,
    UnknownNameError,
    UnsupportedError,
)


@pytest.fixture
def shop(db: Database) -> Database:
    db.sql("""
        CREATE TABLE items (id BIGINT PRIMARY KEY, name STRING, price DECIMAL(8, 2), weight DOUBLE);
        CREATE TABLE sales (item BIGINT, day DATE, n BIGINT);
        INSERT INTO items VALUES (1, 'pen', 2.5, 0.1), (2, 'ink', 8, NULL), (3, NULL, NULL, 1e-3);
        INSERT INTO sales VALUES (1, DATE '2024-05-01', 3), (1, DATE '2024-05-02', 1), (2, NULL, 5);
    """)
    return db


def rows(db: Database, text: str, **parameters: Any) -> list[Any]:
    return sorted(db.sql(text, **parameters).rows(), key=repr)


# Definitions


def test_a_table_is_created_with_its_key_and_its_options(db: Database) -> None:
    db.sql("CREATE TABLE log (a BIGINT, b STRING, PRIMARY KEY (a)) WITH (append_only = true)")
    db.sql("CREATE TABLE days (d DATE) TBLPROPERTIES ('static' = 'true')")
    assert db.relation("log").primary_key == ("a",)
    assert db.relation("log").append_only
    assert db.relation("days").static


def test_create_if_not_exists_leaves_what_is_there(shop: Database) -> None:
    shop.sql("CREATE TABLE IF NOT EXISTS items (other BIGINT)")
    assert shop.relation("items").column_names == ("id", "name", "price", "weight")
    shop.sql("CREATE VIEW v AS SELECT id FROM items; CREATE VIEW IF NOT EXISTS v AS SELECT name FROM items")
    assert shop.view("v").columns == ("id",)


def test_a_table_is_replaced_by_an_empty_one(shop: Database) -> None:
    shop.sql("CREATE OR REPLACE TABLE sales (x STRING)")
    assert shop.sql("SELECT * FROM sales").rows() == []
    assert shop.relation("sales").column_names == ("x",)


def test_a_table_that_a_view_reads_is_not_replaced(shop: Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT item FROM sales")
    with pytest.raises(UnsupportedError, match="v needs it"):
        shop.sql("CREATE OR REPLACE TABLE sales (x STRING)")
    assert shop.sql("SELECT COUNT(*) AS n FROM sales").scalar() == 3


def test_a_view_is_maintained(shop: Database) -> None:
    shop.sql("CREATE MATERIALIZED VIEW sold AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
    shop.sql("INSERT INTO sales (item, n) VALUES (2, 1)")
    assert sorted(shop.view("sold")) == [(1, 4), (2, 6)]


def test_a_view_takes_options(shop: Database) -> None:
    shop.sql("CREATE VIEW v WITH (strategy = 'classical') AS SELECT i.name FROM items i JOIN sales s ON i.id = s.item")
    assert "classical" in str(shop.view("v").explain().strategy)


def test_a_view_is_replaced(shop: Database) -> None:
    shop.sql("CREATE OR REPLACE VIEW v AS SELECT id FROM items")
    old = shop.view("v")
    shop.sql("CREATE OR REPLACE VIEW v AS SELECT name FROM items WHERE id = :id")
    assert list(shop.view("v")(id=1)) == [("pen",)]
    with pytest.raises(IvmeError, match="was dropped"):
        list(old)


def test_a_view_that_cannot_be_replaced_stays(shop: Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT id FROM items; CREATE VIEW w AS SELECT id FROM v")
    for text in ("SELECT nothing FROM items", "SELECT id / 0 AS x FROM items", "SELECT id FROM v", "SELECT id FROM w"):
        with pytest.raises(IvmeError):
            shop.sql(f"CREATE OR REPLACE VIEW v AS {text}")
        assert sorted(shop.view("v")) == [(1,), (2,), (3,)]
        assert shop.views == ("v", "w")


def test_a_view_with_parameters_and_defaults_is_created(shop: Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT name FROM items WHERE id = :id DEFAULT 2")
    assert list(shop.view("v")()) == [("ink",)]


def test_tables_and_views_are_dropped(shop: Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT id FROM items")
    with pytest.raises(UnsupportedError, match="v needs it"):
        shop.sql("DROP TABLE items")
    shop.sql("DROP MATERIALIZED VIEW v; DROP TABLE items; DROP TABLE IF EXISTS items; DROP VIEW IF EXISTS v")
    assert (shop.tables, shop.views) == (("sales",), ())
    with pytest.raises(UnknownNameError, match="there is no table 'items'"):
        shop.sql("DROP TABLE items")


def test_columns_are_added_and_dropped(shop: Database) -> None:
    shop.sql("ALTER TABLE sales ADD COLUMN note STRING DEFAULT 'none'; ALTER TABLE sales DROP COLUMN day")
    assert rows(shop, "SELECT * FROM sales") == [(1, 1, "none"), (1, 3, "none"), (2, 5, "none")]


def test_a_table_is_made_of_a_query(shop: Database) -> None:
    result = shop.sql("CREATE TABLE heavy AS SELECT id, price * 2 AS twice FROM items WHERE price > :least", least=1)
    assert result.count == 2
    assert rows(shop, "SELECT * FROM heavy") == [(1, Decimal("5.00")), (2, Decimal("16.00"))]


def test_what_is_there_is_shown(shop: Database) -> None:
    shop.sql("CREATE VIEW v AS SELECT id FROM items")
    assert [row[0] for row in shop.sql("SHOW TABLES")] == ["items", "sales"]
    assert shop.sql("SHOW VIEWS").rows() == [("v", "SELECT id FROM items", None)]
    assert shop.sql("DESCRIBE items").rows()[0] == ("id", "int", "primary", None)
    assert shop.sql("DESC v").rows() == [("id", "int", None, None)]


def test_a_select_is_explained(shop: Database) -> None:
    found = shop.sql("EXPLAIN SELECT item, COUNT(*) AS n FROM sales GROUP BY item")
    assert "SELECT item, COUNT(*) AS n FROM sales GROUP BY item" == str(found).splitlines()[0]
    assert "view-tree" in str(found)
    assert "class" not in str(found)
    assert shop.views == ()
    why = str(shop.sql("EXPLAIN (why) SELECT item, COUNT(*) AS n FROM sales GROUP BY item"))
    assert "class          CQAP0" in why
    assert "Q(item, COUNT | .) = sales(item)" in why


# Changes


def test_values_are_expressions_without_columns(db: Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT, b DOUBLE, c STRING, d DATE, e TIMESTAMP, f BOOLEAN, g BINARY, h DECIMAL(5, 1))")
    db.sql(
        "INSERT INTO t VALUES (1 + 1, 2, concat('a', :b), DATE '2024-01-02', TIMESTAMP '2024-01-02 03:04:05', "
        "1 < 2, X'00ff', 1.25), (NULL, -1.5, :b, NULL, :e, NULL, NULL, -3)",
        b="it's",
        e=datetime.datetime(2024, 1, 1),
    )
    day, time = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5)
    assert db.sql("SELECT * FROM t ORDER BY a NULLS LAST").rows() == [
        (2, 2.0, "ait's", day, time, True, b"\x00\xff", Decimal("1.3")),
        (None, -1.5, "it's", None, datetime.datetime(2024, 1, 1), None, None, Decimal("-3.0")),
    ]


def test_values_never_become_sql(shop: Database) -> None:
    hostile = "x', 1); DROP TABLE sales; --\\"
    shop.sql("INSERT INTO items (id, name) VALUES (9, :name)", name=hostile)
    assert shop.sql("SELECT id FROM items WHERE name = :name", name=hostile).rows() == [(9,)]
    assert shop.sql("UPDATE items SET weight = 5 WHERE name = :name", name=hostile).count == 1
    subquery = "DELETE FROM items WHERE name = :name AND id IN (SELECT id FROM items)"
    assert shop.sql(subquery, name=hostile).count == 1
    assert shop.tables == ("items", "sales")


def test_columns_that_are_not_named_are_null(shop: Database) -> None:
    shop.sql("INSERT INTO items (name, id) VALUES ('cap', 7)")
    assert shop.sql("SELECT * FROM items WHERE id = 7").rows() == [(7, "cap", None, None)]


def test_rows_of_a_query_are_inserted_in_the_types_of_the_columns(shop: Database) -> None:
    result = shop.sql("INSERT INTO sales (n, item) SELECT price, id FROM items WHERE price IS NOT NULL")
    assert result.count == 2
    assert rows(shop, "SELECT item, n FROM sales WHERE day IS NULL AND n <> 5") == [(1, 2), (2, 8)]


def test_columns_of_a_query_are_inserted_by_their_places(shop: Database) -> None:
    assert shop.sql("INSERT INTO items SELECT n + 20, NULL, 0, 0 FROM sales WHERE n = 3").count == 1
    assert shop.sql("INSERT INTO sales SELECT n, NULL, n FROM sales WHERE n = :n", n=3).count == 1
    assert shop.sql("SELECT * FROM items WHERE id = 23").rows() == [(23, None, Decimal("0.00"), 0.0)]
    assert shop.sql("SELECT * FROM sales WHERE item = 3").rows() == [(3, None, 3)]


def test_a_table_is_inserted_into_itself_once(shop: Database) -> None:
    assert shop.sql("INSERT INTO sales SELECT item, day, n + 10 FROM sales").count == 3
    assert shop.sql("SELECT COUNT(*) AS n FROM sales").scalar() == 6


def test_rows_take_the_place_of_those_with_their_key(shop: Database) -> None:
    shop.sql("INSERT OR REPLACE INTO items (id, name) VALUES (1, 'pencil'), (8, 'tape')")
    assert rows(shop, "SELECT id, name, price FROM items WHERE id IN (1, 8)") == [
        (1, "pencil", None),
        (8, "tape", None),
    ]


def test_overwrite_replaces_all_rows(shop: Database) -> None:
    shop.sql("INSERT OVERWRITE sales SELECT item, day, n FROM sales WHERE n > 2")
    assert rows(shop, "SELECT item, n FROM sales") == [(1, 3), (2, 5)]


def test_an_update_computes_with_the_old_row(shop: Database) -> None:
    assert shop.sql("UPDATE sales AS s SET n = s.n * 2, item = n WHERE s.item = :i", i=1).count == 2
    assert rows(shop, "SELECT item, n FROM sales") == [(1, 2), (2, 5), (3, 6)]


def test_an_update_by_null_changes_nothing(shop: Database) -> None:
    assert shop.sql("UPDATE sales SET n = 0 WHERE day = :day", day=None).count == 0
    assert shop.sql("UPDATE sales SET n = 0 WHERE NOT (day > DATE '2000-01-01')").count == 0
    assert shop.sql("UPDATE sales SET n = 0 WHERE day IS NULL").count == 1


def test_an_update_reads_other_tables_by_subqueries(shop: Database) -> None:
    text = "UPDATE items SET weight = (SELECT SUM(n) FROM sales), name = NULL WHERE id IN (SELECT item FROM sales)"
    assert shop.sql(text).count == 2
    assert rows(shop, "SELECT id, name, weight FROM items") == [(1, None, 9.0), (2, None, 9.0), (3, None, 0.001)]


def test_a_delete_takes_the_rows_of_a_condition(shop: Database) -> None:
    assert shop.sql("DELETE FROM sales WHERE n BETWEEN 2 AND 4").count == 1
    assert (
        shop.sql("DELETE FROM sales s WHERE NOT EXISTS (SELECT 1 FROM items i WHERE i.id = s.item + :k)", k=1).count
        == 0
    )
    assert shop.sql("DELETE FROM sales WHERE item IN (:items)", items=[2, 7]).count == 1
    assert shop.sql("DELETE FROM sales WHERE item NOT IN (:none)", none=[]).count == 1
    assert shop.sql("DELETE FROM items").count == 3
    assert shop.sql("TRUNCATE TABLE sales").count == 0


MERGE = """
    MERGE INTO items AS t USING (SELECT item, SUM(n) AS n FROM sales GROUP BY item) AS s ON t.id = s.item
    WHEN MATCHED AND s.n > :most THEN DELETE
    WHEN MATCHED THEN UPDATE SET weight = s.n, name = concat(t.name, '!')
    WHEN NOT MATCHED AND s.item < 100 THEN INSERT (id, weight) VALUES (s.item, s.n + 0.5)
    WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'unsold'
"""


def test_merge_does_what_its_clauses_say(shop: Database) -> None:
    shop.sql("INSERT INTO sales (item, n) VALUES (7, 7), (700, 1)")
    assert shop.sql(MERGE, most=4).count == 4
    assert rows(shop, "SELECT id, name, weight FROM items") == [(1, "pen!", 4.0), (3, "unsold", 0.001), (7, None, 7.5)]


def test_merge_takes_all_columns(shop: Database) -> None:
    shop.sql("CREATE TABLE news AS SELECT id + 2 AS id, name, price, weight FROM items")
    clauses = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    assert shop.sql(f"MERGE INTO items USING news ON items.id = news.id {clauses}").count == 3
    assert rows(shop, "SELECT id, name FROM items") == [(1, "pen"), (2, "ink"), (3, "pen"), (4, "ink"), (5, None)]


def test_merge_refuses_two_rows_for_one(shop: Database) -> None:
    before = rows(shop, "SELECT * FROM items")
    with pytest.raises(DataError, match="several rows of the source match"):
        shop.sql("MERGE INTO items USING sales ON id = item WHEN MATCHED THEN UPDATE SET weight = n")
    assert rows(shop, "SELECT * FROM items") == before


def test_merge_counts_equal_rows_of_the_target(db: Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT); CREATE TABLE s (a BIGINT); INSERT INTO t VALUES (1), (1), (2)")
    db.sql("INSERT INTO s VALUES (1)")
    assert db.sql("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = 10").count == 2
    assert rows(db, "SELECT a FROM t") == [(10,), (10,), (2,)]
    db.sql("INSERT INTO s VALUES (2), (2)")
    with pytest.raises(DataError, match="several rows of the source match"):
        db.sql("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = s.a")


# Whole or not at all

FAILING = [
    "INSERT INTO items (id) VALUES (10), (1)",
    "INSERT INTO items (id) VALUES (10), (NULL)",
    "INSERT INTO items (id) SELECT item FROM sales",
    "UPDATE items SET weight = 1 / (id - 3)",
    "UPDATE items SET weight = 1 / (id - (SELECT MAX(id) FROM items))",
    "UPDATE items SET id = NULL WHERE id = 1",
    "UPDATE items SET id = 2 WHERE id = 1",
    "DELETE FROM items WHERE 1 / (id - 2) > 0",
    "MERGE INTO items USING sales ON id = item WHEN MATCHED THEN UPDATE SET weight = n",
    "MERGE INTO items USING sales ON id = item AND n = 3 WHEN MATCHED THEN UPDATE SET weight = n "
    "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (n, 'x'), (1, 2)",
    "MERGE INTO items USING sales ON id = n AND n = 3 WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED THEN INSERT (id) VALUES (NULL)",
    "CREATE TABLE u AS SELECT id / 0 AS x FROM items",
    "CREATE TABLE items AS SELECT n FROM sales",
    "INSERT INTO sales VALUES (1, '2024-02-30', 1)",
]


@pytest.mark.parametrize("text", FAILING)
def test_a_statement_that_fails_changes_nothing(shop: Database, text: str) -> None:
    before = {name: rows(shop, f"SELECT * FROM {name}") for name in shop.tables}
    with pytest.raises(IvmeError):
        shop.sql(text)
    assert {name: rows(shop, f"SELECT * FROM {name}") for name in shop.tables} == before


@pytest.mark.parametrize("text", FAILING)
def test_a_statement_that_fails_leaves_its_transaction_as_it_was(shop: Database, text: str) -> None:
    shop.sql("BEGIN; INSERT INTO sales VALUES (3, NULL, 33)")
    try:
        shop.sql(text)
        shop.sql("COMMIT")  # some fail only here: then all of the transaction does
        raise AssertionError("nothing failed")
    except IvmeError:
        if shop._session.in_transaction:
            shop.sql("COMMIT")
            assert rows(shop, "SELECT n FROM sales") == [(1,), (3,), (33,), (5,)]
        else:
            assert rows(shop, "SELECT n FROM sales") == [(1,), (3,), (5,)]
    assert rows(shop, "SELECT id FROM items") == [(1,), (2,), (3,)]


def test_a_transaction_takes_effect_at_its_end(shop: Database) -> None:
    shop.sql("CREATE VIEW total AS SELECT SUM(n) AS n FROM sales")
    changes = shop.view("total").changes()
    shop.sql("BEGIN; INSERT INTO sales VALUES (3, NULL, 1); UPDATE sales SET n = n + 1; DELETE FROM sales WHERE n = 2")
    assert shop.view("total").scalar() == 9
    shop.sql("COMMIT")
    assert shop.view("total").scalar() == 10
    assert [dict(change) for change in changes] == [{(9,): -1, (10,): 1}]


def test_a_transaction_that_is_rolled_back_changes_nothing(shop: Database) -> None:
    shop.sql("START TRANSACTION; TRUNCATE TABLE sales; INSERT INTO items (id) VALUES (77); ROLLBACK")
    assert shop.sql("SELECT COUNT(*) AS n FROM sales").scalar() == 3
    assert shop.sql("SELECT COUNT(*) AS n FROM items").scalar() == 3


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE u (a BIGINT)",
        "DROP TABLE items",
        "BEGIN",
    ],
)
def test_a_transaction_refuses_what_it_cannot_do(shop: Database, text: str) -> None:
    shop.sql("CREATE VIEW total AS SELECT SUM(n) AS n FROM sales; BEGIN; INSERT INTO sales (n) VALUES (1)")
    with pytest.raises(UnsupportedError):
        shop.sql(text)
    assert len(shop.sql("SELECT * FROM items")) == 3
    shop.sql("ROLLBACK")
    with pytest.raises(UnsupportedError, match="no transaction has begun"):
        shop.sql("COMMIT")


def test_strings_are_dates_and_times_where_these_are_wanted(db: Database) -> None:
    db.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, d DATE, ts TIMESTAMP)")
    db.sql(
        "INSERT INTO t VALUES (1, '2024-01-05', '2024-01-05 10:00:00'), (2, :d, :ts)", d="2024-02-29", ts="2024-03-01"
    )
    db.sql("UPDATE t SET d = '2024-12-31' WHERE d = '2024-01-05'")
    assert db.sql("SELECT d, ts FROM t ORDER BY id").rows() == [
        (datetime.date(2024, 12, 31), datetime.datetime(2024, 1, 5, 10)),
        (datetime.date(2024, 2, 29), datetime.datetime(2024, 3, 1)),
    ]
    with pytest.raises(QueryError, match=r"'yesterday' is not a date.*line 1, column 34"):
        db.sql("INSERT INTO t (id, d) VALUES (9, 'yesterday')")
    with pytest.raises(QueryError, match="is not a date"):
        db.sql("INSERT INTO t (id, d) VALUES (9, :d)", d="2024-13-01")
    with pytest.raises(UnsupportedError, match="of type string"):
        db.sql("INSERT INTO t VALUES ('9', NULL, NULL)")
    assert len(db.sql("SELECT * FROM t")) == 2


def test_the_time_of_a_statement_is_one_and_it_is_now(db: Database) -> None:
    db.sql("CREATE TABLE t (id BIGINT, d DATE, ts TIMESTAMP)")
    before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    db.sql("INSERT INTO t VALUES (1, CURRENT_DATE, now()), (2, current_date(), CURRENT_TIMESTAMP)")
    db.sql("UPDATE t SET ts = now() + INTERVAL '1' DAY WHERE id = 2")
    after = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    first, second = db.sql("SELECT d, ts FROM t ORDER BY id").rows()
    assert before <= first[1] <= after
    assert before <= second[1] - datetime.timedelta(days=1) <= after
    assert {first[0], second[0]} <= {before.date(), after.date()}


def test_null_alone_has_the_type_of_its_column(db: Database) -> None:
    db.sql("CREATE TABLE t (a BIGINT, f DOUBLE, s STRUCT<x DOUBLE, n BIGINT>)")
    db.sql("INSERT INTO t (a) VALUES (1)")
    db.sql("INSERT INTO t SELECT a, NULL, NULL FROM t")
    assert rows(db, "SELECT a, f FROM t") == [(1, None), (1, None)]


CONFLICTS = [
    ("INSERT INTO items (id) VALUES (1) ON CONFLICT (name) DO NOTHING", "primary key of table items"),
    ("INSERT INTO items (name) VALUES ('x') ON CONFLICT DO NOTHING", "column id of the primary key has no value"),
    ("INSERT INTO sales (n) VALUES (1) ON CONFLICT DO NOTHING", "has no primary key"),
    ("INSERT INTO items (id) SELECT n FROM sales ON CONFLICT DO NOTHING", "ON CONFLICT is for VALUES"),
    ("INSERT INTO items (id) VALUES (1, 2) ON CONFLICT DO NOTHING", "2 values for 1 columns"),
    ("INSERT INTO items (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET nothing = 1", "no column 'nothing'"),
    ("INSERT INTO items (id) VALUES ('1') ON CONFLICT DO NOTHING", "of type string"),
]


def test_a_conflict_is_one_of_the_primary_key(shop: Database) -> None:
    assert shop.sql("INSERT INTO items (id, price) VALUES (1, 9), (7, 8) ON CONFLICT DO NOTHING").count == 1
    update = "ON CONFLICT (id) DO UPDATE SET price = excluded.price"
    shop.sql(f"INSERT INTO items (id, price) VALUES (:id, :p) {update}", id=7, p=4)
    shop.sql(f"INSERT INTO items VALUES (2, 'x', 1, 2) {update}, name = excluded.name, weight = excluded.weight")
    found = rows(shop, "SELECT id, name, price FROM items")
    assert found == [(1, "pen", Decimal("2.50")), (2, "x", 1), (3, None, None), (7, None, 4)]
    for text, message in CONFLICTS:
        with pytest.raises(QueryError, match=message):
            shop.sql(text)
    assert rows(shop, "SELECT id, name, price FROM items") == found


def test_a_transaction_sees_its_own_changes_and_nobody_else_does(shop: Database) -> None:
    shop.sql("""
        CREATE VIEW total AS SELECT item, SUM(n) AS n FROM sales GROUP BY item;
        CREATE VIEW most AS SELECT item, n FROM total ORDER BY n DESC LIMIT 1;
        BEGIN; INSERT INTO sales VALUES (1, NULL, 10)
    """)
    assert rows(shop, "SELECT * FROM sales")[-1] == (2, None, 5)
    assert len(shop.sql("SELECT * FROM sales")) == 4
    assert rows(shop, "SELECT * FROM total") == [(1, 14), (2, 5)]
    assert rows(shop, "SELECT * FROM most") == [(1, 14)]
    assert rows(shop, "SELECT item, n + 1 AS m FROM most") == [(1, 15)]
    assert rows(shop, "SELECT name FROM items WHERE id IN (SELECT item FROM sales WHERE n = :n)", n=10) == [("pen",)]
    shop.sql("INSERT INTO items (id) SELECT n FROM total WHERE n > 10; DELETE FROM sales WHERE item IN (SELECT 2)")
    assert rows(shop, "SELECT id FROM items") == [(1,), (14,), (2,), (3,)]
    assert sorted(shop.view("total")) == [(1, 4), (2, 5)]
    assert list(shop.view("most")) == [(2, 5)]
    shop.sql("MERGE INTO items USING total ON id = item WHEN MATCHED THEN DELETE; COMMIT")
    assert rows(shop, "SELECT id FROM items") == [(14,), (2,), (3,)]
    assert sorted(shop.view("total")) == list(shop.view("most")) == [(1, 14)]


def test_what_a_transaction_reads_leaves_no_trace(shop: Database) -> None:
    shop.sql("CREATE VIEW total AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
    feed = shop.view("total").changes()
    shop.sql("BEGIN; INSERT INTO sales VALUES (1, NULL, 10)")
    assert len(shop.sql("SELECT n FROM total WHERE item = 1")) == 1
    with pytest.raises(ExpressionError):
        shop.sql("SELECT 1 / (n - 14) AS x FROM total")
    shop.sql("ROLLBACK")
    assert list(feed) == []
    assert sorted(shop.view("total")) == [(1, 4), (2, 5)]
    assert shop.views == ("total",)


def test_reading_in_a_transaction_tells_what_is_wrong_with_it(shop: Database) -> None:
    shop.sql("BEGIN; INSERT INTO items (id) VALUES (1)")
    with pytest.raises(DataError, match="primary key"):
        shop.sql("SELECT id FROM items")
    assert len(shop.sql("SELECT 1 AS one")) == 1
    shop.sql("ROLLBACK")


def test_a_transaction_sees_its_changes_through_closures_and_odd_names(db: Database) -> None:
    db.create_table("net.edge", {"src": "int", "dst": "int"})
    db.create_view(
        "paths",
        "WITH RECURSIVE reach AS (SELECT src, dst FROM `net.edge` UNION SELECT r.src, e.dst FROM reach r "
        "JOIN `net.edge` e ON e.src = r.dst) SELECT src, dst FROM reach",
    )
    db.sql("INSERT INTO `net.edge` VALUES (1, 2); BEGIN; INSERT INTO net.edge VALUES (2, 3)")
    assert rows(db, "SELECT src FROM net.edge") == [(1,), (2,)]
    assert rows(db, "SELECT * FROM `net.edge`") == [(1, 2), (2, 3)]
    assert rows(db, "SELECT * FROM paths") == [(1, 2), (1, 3), (2, 3)]
    assert rows(db, "SELECT DISTINCT src FROM paths") == [(1,), (2,)]
    assert sorted(db.view("paths")) == [(1, 2)]
    db.sql("COMMIT")
    assert rows(db, "SELECT * FROM paths") == [(1, 2), (1, 3), (2, 3)]


def test_statements_before_one_that_fails_stay_done(shop: Database) -> None:
    with pytest.raises(ExpressionError):
        shop.sql("DELETE FROM sales WHERE n = 1; UPDATE sales SET n = 1 / (n - 3); TRUNCATE TABLE items")
    assert rows(shop, "SELECT n FROM sales") == [(3,), (5,)]
    assert len(shop.sql("SELECT * FROM items")) == 3


def test_a_text_with_a_mistake_runs_nothing(shop: Database) -> None:
    with pytest.raises(QueryError, match=r"line 1, column 24"):
        shop.sql("TRUNCATE TABLE sales; DROPP TABLE items".replace("sales; ", "sales;  "))
    assert len(shop.sql("SELECT * FROM sales")) == 3


# Queries

QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("SELECT * FROM items", {}),
    ("SELECT id, price * 2 AS twice FROM items WHERE weight IS NOT NULL", {}),
    ("SELECT i.name, SUM(s.n) AS n FROM items i LEFT JOIN sales s ON i.id = s.item GROUP BY i.name", {}),
    ("SELECT n FROM sales WHERE item = :item", {"item": 1}),
    ("SELECT n FROM sales WHERE item IN (:items)", {"items": [1, 2]}),
    ("SELECT n FROM sales WHERE item = :item DEFAULT 2", {}),
    ("SELECT DISTINCT item FROM sales ORDER BY item DESC LIMIT 1", {}),
    ("SELECT COUNT(*) AS n FROM sales WHERE n > 1000", {}),
    ("WITH x AS (SELECT item, n FROM sales WHERE n > 1) SELECT item, COUNT(*) AS c FROM x GROUP BY item", {}),
    ("SELECT item FROM sales UNION ALL SELECT id FROM items", {}),
    ("SELECT id FROM items WHERE id NOT IN (SELECT item FROM sales)", {}),
    ("SELECT n FROM sales WHERE item = ANY (:items)", {"items": [1, 1, 7]}),
    ("SELECT COUNT(*) AS n FROM sales WHERE item IN (:items)", {"items": []}),
    ("SELECT COUNT(*) AS n FROM sales WHERE item = :item", {"item": None}),
]


@pytest.mark.parametrize(("text", "parameters"), QUERIES)
def test_a_select_has_the_rows_of_a_view_of_its_text(shop: Database, text: str, parameters: dict[str, Any]) -> None:
    entries, views = shop.entries(), dict(shop.definitions.catalog.views)
    alone = shop.sql(text, **parameters)
    assert (shop.entries(), shop.views, shop.definitions.catalog.views) == (entries, (), views)
    view = shop.create_view("v", text)
    assert sorted(alone, key=repr) == sorted(view(**parameters), key=repr)
    assert alone.columns == view.columns
    assert sorted(shop.sql(f"-- by the view\n {text}", **parameters), key=repr) == sorted(alone, key=repr)
    shop.drop_view("v")


def test_a_select_reads_views(shop: Database) -> None:
    shop.sql("CREATE VIEW sold AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
    assert shop.sql("SELECT name FROM items JOIN sold ON id = item WHERE n > 4").rows() == [("ink",)]
    shop.sql("INSERT INTO sales (item, n) VALUES (1, 100)")
    assert sorted(shop.view("sold")) == [(1, 104), (2, 5)]
    assert rows(shop, "SELECT * FROM sold") == [(1, 104), (2, 5)]


def test_equal_rows_come_as_often_as_they_are_there(shop: Database) -> None:
    shop.sql("INSERT INTO sales SELECT * FROM sales")
    assert len(shop.sql("SELECT * FROM sales")) == 6
    assert len(shop.sql("SELECT item FROM sales")) == 6


def test_a_view_of_other_semantics_is_not_the_same_query(shop: Database) -> None:
    shop.create_view("v", "SELECT item FROM sales", semantics="set")
    assert rows(shop, "SELECT item FROM sales") == [(1,), (1,), (2,)]


def test_a_select_that_fails_leaves_nothing(shop: Database) -> None:
    with pytest.raises(ExpressionError):
        shop.sql("SELECT 1 / (id - 2) AS x FROM items")
    assert shop.views == ()
    assert not shop.definitions.catalog.views


def test_a_relation_may_have_the_name_that_is_used_inside(db: Database) -> None:
    db.sql("CREATE TABLE query (a BIGINT); INSERT INTO query VALUES (1); CREATE VIEW `query 2` AS SELECT a FROM query")
    assert db.sql("SELECT a + 1 AS b FROM query WHERE a IN (SELECT a FROM `query 2`)").rows() == [(2,)]


def test_a_parameter_of_a_select_stands_anywhere(shop: Database) -> None:
    text = "SELECT n + :more AS m FROM sales WHERE n > :least AND day IS NOT NULL ORDER BY m"
    assert shop.sql(text, more=10, least=0).rows() == [(11,), (13,)]
    with pytest.raises(UnknownNameError, match=r"the parameter :least has no value"):
        shop.sql(text, more=10)
    with pytest.raises(UnknownNameError, match=r"there is no parameter :other"):
        shop.sql(text, more=10, least=0, other=1)


def test_a_select_without_from_is_one_row(db: Database) -> None:
    assert db.sql("SELECT 1 AS one, 'x' AS text, NULL AS nothing, :p + 1 AS two", p=1).rows() == [(1, "x", None, 2)]


def test_the_time_of_a_statement_is_asked_for(db: Database) -> None:
    before = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    one, other, day = db.sql("SELECT now() AS a, CURRENT_TIMESTAMP AS b, CURRENT_DATE AS c").rows()[0]
    assert one == other >= before
    assert one.date() == day
    with pytest.raises(UnsupportedError, match="not the same each time"):
        db.create_view("v", "SELECT now() AS a")


def test_a_view_with_parameters_says_how_it_is_asked(shop: Database) -> None:
    shop.create_view("v", "SELECT n FROM sales WHERE item = :item AND n > :least")
    with pytest.raises(PlanError, match=r"db.view\('v'\)\(item=..., least=...\)"):
        shop.sql("SELECT * FROM v")
    with pytest.raises(UnsupportedError, match="COPY FROM STDIN"):
        shop.sql("COPY sales FROM STDIN")


def test_users_functions_are_called(shop: Database) -> None:
    shop.create_function("twice", lambda value: value * 2, arguments=["int"], returns="int")
    assert rows(shop, "SELECT twice(n) AS d FROM sales") == [(10,), (2,), (6,)]
    shop.sql("UPDATE sales SET n = twice(n) WHERE twice(n) > 5")
    assert rows(shop, "SELECT n FROM sales") == [(1,), (10,), (6,)]


def test_selects_of_several_threads_see_whole_batches(shop: Database) -> None:
    shop.sql("TRUNCATE TABLE sales; CREATE VIEW v AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
    found: list[Any] = []
    over = threading.Event()

    def read(text: str) -> None:
        while not over.is_set():
            found.append(shop.sql(text).scalar() or 0)

    texts = ("SELECT SUM(n) AS n FROM sales", "SELECT SUM(n) AS n FROM v", "SELECT SUM(n) AS n FROM v WHERE item > -1")
    readers = [threading.Thread(target=read, args=(text,)) for text in texts]
    for reader in readers:
        reader.start()
    try:
        for number in range(40):
            shop.sql("INSERT INTO sales (item, n) VALUES (1, :n), (2, -:n)", n=number)
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert set(found) == {0}
    assert list(shop.definitions.catalog.views) == ["v"]


# Files


@pytest.mark.parametrize("ending", ["parquet", "csv", "json"])
def test_files_are_read(shop: Database, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"sales.{ending}"
    data = pa.table({"n": [1, 2], "item": pa.array([7, None], pa.int64()), "day": [datetime.date(2024, 1, 1), None]})
    if ending == "parquet":
        pq.write_table(data, path)
    elif ending == "csv":
        path.write_text("n,item,day\n1,7,2024-01-01\n2,,\n")
    else:
        path.write_text('{"n": 1, "item": 7, "day": "2024-01-01"}\n{"n": 2, "item": null, "day": null}\n')
    shop.sql("TRUNCATE TABLE sales")
    assert shop.sql(f"COPY sales FROM '{path}'").count == 2
    assert rows(shop, "SELECT * FROM sales") == [(7, datetime.date(2024, 1, 1), 1), (None, None, 2)]
    assert shop.sql("COPY sales FROM :path", path=str(path)).count == 2
    assert shop.sql(f"CREATE TABLE again AS SELECT * FROM '{path}'").count == 2
    assert rows(shop, "SELECT n, item FROM again") == [(1, 7), (2, None)]
    assert shop.sql(f"INSERT INTO again SELECT * FROM {ending}.`{path}`").count == 2
    with pytest.raises(UnsupportedError, match="3 columns for 1"):
        shop.sql(f"INSERT INTO again (n) SELECT * FROM '{path}'")


def test_columns_of_a_file_go_by_name_or_by_place(db: Database, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("b,a\n1,2\n")
    db.sql(f"CREATE TABLE t (a BIGINT, b BIGINT); COPY t FROM '{path}'; INSERT INTO t SELECT * FROM '{path}'")
    assert rows(db, "SELECT * FROM t") == [(1, 2), (2, 1)]


def test_csv_without_a_header_has_the_columns_of_the_table(shop: Database, tmp_path: Path) -> None:
    path = tmp_path / "sales.txt"
    path.write_text("9;2024-01-01;3\n")
    shop.sql(f"COPY sales FROM '{path}' (FORMAT csv, HEADER false, DELIMITER ';')")
    assert rows(shop, "SELECT n FROM sales WHERE item = 9") == [(3,)]


def test_a_file_that_does_not_fit_is_refused(shop: Database, tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("n,day\n1,2024-01-01\n")
    for text in (f"COPY sales FROM '{path}'", "COPY sales FROM 'nothing.csv'", "COPY sales FROM 'a.xyz'"):
        with pytest.raises(DataError):
            shop.sql(text)
    path.write_text("item,n,day\n1,x,2024-01-01\n")
    with pytest.raises(DataError, match="cannot be read as csv"):
        shop.sql(f"COPY sales FROM '{path}'")
    assert len(shop.sql("SELECT * FROM sales")) == 3


def test_a_select_without_from_but_with_clauses_means_what_its_view_does(shop: Database) -> None:
    for text, rows in (
        ("SELECT ARRAY[-3, 0, 7] AS c ORDER BY c DESC NULLS FIRST LIMIT 1", [((-3, 0, 7),)]),
        ("SELECT 1 AS a LIMIT 1 OFFSET 2", []),
    ):
        assert rows == list(shop.create_view("v", text)) == shop.sql(text).rows()
        shop.drop_view("v")


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT 1 AS a", [(1,)]),
        ("SELECT 1 AS a LIMIT 1", [(1,)]),
        ("SELECT a, b FROM (VALUES (1, 'x'), (2, 'y')) AS t(a, b) ORDER BY a", [(1, "x"), (2, "y")]),
        ("WITH x AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT SUM(a) AS s FROM x", [(3,)]),
    ],
)
def test_a_query_without_tables_needs_none(db: Database, text: str, rows: list[Any]) -> None:
    """It was refused in a database without tables, and taken as soon as there was one."""
    assert () == db.tables
    assert rows == db.sql(text).rows() == list(db.create_view("v", text))
    assert db.sql(f"EXPLAIN {text}").message
    db.create_table("t", {"a": "int"})
    assert rows == db.sql(text).rows() == list(db.view("v"))


def test_a_table_that_is_not_there_is_named_in_a_database_without_tables(db: Database) -> None:
    for text in ("SELECT a FROM t", "WITH x AS (SELECT 1 AS a) SELECT a FROM x JOIN t USING (a)"):
        for run in (db.sql, lambda each: db.create_view("v", each), lambda each: db.sql(f"EXPLAIN {each}")):
            with pytest.raises(UnknownNameError, match=r"there is no table 't' \(line 1"):
                run(text)
    assert () == db.views
