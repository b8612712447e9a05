"""What new users write and ivme refuses: the message names the way that works, and that way does work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ivme.database import Database
from ivme.errors import IvmeError


@pytest.fixture
def db() -> Iterator[Database]:
    with Database() as made:
        made.sql("""
            CREATE TABLE orders (id INT PRIMARY KEY, customer INT, amount INT, at TIMESTAMP);
            CREATE VIEW spent AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer;
            CREATE VIEW big AS SELECT customer FROM spent WHERE total > 20;
            CREATE VIEW bought AS SELECT id FROM orders WHERE customer = :who AND amount = :much;
            INSERT INTO orders VALUES (1, 1, 40, NULL), (2, 1, 5, NULL), (3, 2, 7, NULL);
        """)
        yield made


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("SELECT * FROM bought", r"with db\.view\('bought'\)\(who=\.\.\., much=\.\.\.\)"),
        ("CREATE VIEW spent AS SELECT id FROM orders", "replace=True, CREATE OR REPLACE"),
        ("CREATE TABLE orders (id INT)", "replace=True, CREATE OR REPLACE"),
        ("CREATE OR REPLACE VIEW spent AS SELECT id FROM orders", "cannot replace view spent: big needs it"),
        ("CREATE OR REPLACE TABLE orders (id INT)", "cannot replace table orders"),
        ("ALTER VIEW spent AS SELECT id FROM orders", "CREATE OR REPLACE VIEW"),
        ("REFRESH MATERIALIZED VIEW spent", "views are always up to date"),
        ("CREATE UNIQUE INDEX i ON orders (id)", "ivme makes the indexes that views need"),
        ("ALTER TABLE orders ALTER COLUMN amount TYPE DECIMAL(8, 2)", "ADD COLUMN another of the new type"),
        ("CREATE VIEW v AS SELECT id FROM {{ ref('orders') }} GROUP BY 1", r"template(.|\n)*dbt compile"),
        (
            "CREATE VIEW v AS SELECT id FROM orders {% if x %} WHERE id > 1",
            r"template(.|\n)*dbt compile",
        ),
        ("CREATE VIEW v AS SELECT id FROM orders WHERE mz_now() <= at", r"write NOW\(\)"),
        (
            "CREATE VIEW v AS SELECT o.id, l.id AS best FROM orders o, "
            "LATERAL (SELECT id FROM orders p WHERE p.customer = o.customer ORDER BY p.amount LIMIT 1) l",
            r"QUALIFY ROW_NUMBER\(\)",
        ),
    ],
)
def test_a_refusal_names_the_way_that_works(db: Database, text: str, advice: str) -> None:
    before = (sorted(db.views), sorted(db.tables), sorted(db.view("spent")))
    with pytest.raises(IvmeError, match=advice):
        db.sql(text)
    assert before == (sorted(db.views), sorted(db.tables), sorted(db.view("spent")))


def test_braces_in_a_string_are_no_template(db: Database) -> None:
    assert [("{{",)] == db.sql("SELECT '{{' AS a FROM orders WHERE id = 1").rows()


def test_the_type_of_a_column_is_changed_as_the_message_says(db: Database) -> None:
    db.sql("""
        DROP VIEW big; DROP VIEW spent; DROP VIEW bought;
        ALTER TABLE orders ADD COLUMN another DECIMAL(8, 2);
        UPDATE orders SET another = CAST(amount AS DECIMAL(8, 2));
        ALTER TABLE orders DROP COLUMN amount;
        ALTER TABLE orders RENAME COLUMN another TO amount;
        CREATE VIEW spent AS SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
    """)
    assert [(1, "45.00"), (2, "7.00")] == sorted((who, str(total)) for who, total in db.view("spent"))


def test_the_first_rows_of_each_group_are_ranked_in_place_of_lateral(db: Database) -> None:
    view = db.create_view(
        "best",
        """SELECT c.customer, top.id FROM (SELECT DISTINCT customer FROM orders) c
           JOIN (SELECT id, customer FROM orders
                 QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY amount DESC) <= 1) top
           ON top.customer = c.customer""",
    )
    assert [(1, 1), (2, 3)] == sorted(view)


def test_lower_bounds_are_told_to_those_who_ask_why(db: Database) -> None:
    query = "SELECT a.id FROM orders a JOIN orders b ON b.id = a.customer"
    assert "lower bound" not in str(db.sql(f"EXPLAIN {query}"))
    assert "no lower bound is claimed" in str(db.sql(f"EXPLAIN (why) {query}"))
