"""Views over a table that keeps no rows are as over one that does, however rows come and whatever is refused
(decision 0740).

Beside it is a database with the same views over a table that keeps its rows; what these show is verified from the rows.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ivme.database import Database
from ivme.engine.native_backend import NativeBackend
from ivme.engine.runtime.reclaim import reclaim
from ivme.errors import DataError, IvmeError, PlanError
from tests.example_counts import examples

CLICKS = {
    "user": "int",
    "url": "string",
    "ms": "int",
    "price": "decimal(6, 2)",
    "day": "date",
    "ratio": "float",
    "seen": "bool",
    "note": "string",
    "raw": "binary",
}
ARROW = pa.schema(
    [
        ("user", pa.int64()),
        ("url", pa.string()),
        ("ms", pa.int64()),
        ("price", pa.decimal128(6, 2)),
        ("day", pa.date32()),
        ("ratio", pa.float64()),
        ("seen", pa.bool_()),
        ("note", pa.string()),
        ("raw", pa.binary()),
    ]
)

VIEWS = {
    "cities": """SELECT city, COUNT(*) AS n, SUM(price) AS paid, MAX(ms) AS most
        FROM clicks JOIN users ON user = id GROUP BY city""",
    "all_cities": "SELECT city, COUNT(*) AS n FROM clicks LEFT JOIN users ON user = id GROUP BY city",
    "visitors": "SELECT url, COUNT(DISTINCT user) AS n FROM clicks GROUP BY url",
    "first": "SELECT url, SUM(ms) AS total FROM clicks GROUP BY url ORDER BY total DESC, url LIMIT 2",
    "ranked": "SELECT url, ms, RANK() OVER (PARTITION BY url ORDER BY ms) AS place FROM clicks WHERE ms > 60",
    "absent": "SELECT id FROM users WHERE NOT EXISTS (SELECT 1 FROM clicks WHERE user = id)",
    "both": "SELECT url AS x, ms FROM clicks WHERE ms < 20 UNION ALL SELECT city AS x, id AS ms FROM users",
    "distinct": "SELECT DISTINCT url FROM clicks UNION SELECT city FROM users",
    "next": "SELECT COUNT(*) AS n FROM clicks a JOIN clicks b ON a.user = b.ms",
    "triangles": """SELECT COUNT(*) AS n
        FROM clicks a JOIN clicks b ON a.ms = b.user JOIN clicks c ON b.ms = c.user AND c.ms = a.user""",
    "before": "SELECT COUNT(*) AS n FROM clicks JOIN users ON ms < id AND url = city",
    "shares": "SELECT user, 100 / ms AS share FROM clicks WHERE user < 3",
    "rich": "SELECT url, COUNT(*) AS n FROM clicks GROUP BY url HAVING SUM(price) > 50",
    "days": "SELECT day, MIN(url) AS least, AVG(price) AS paid FROM clicks WHERE seen GROUP BY day",
}
TRIED = "CREATE VIEW late AS SELECT note, COUNT(*) AS n FROM clicks GROUP BY note"
URLS = ["a", "b", "schön", "", "x" * 40, None]


def table_of(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), ARROW, strict=True)], ARROW
    )


class TablesWithoutRows(RuleBasedStateMachine):
    @initialize(threads=st.sampled_from([1, 2]), followed=st.booleans())
    def make(self, threads: int, followed: bool) -> None:
        self.there, self.passing = Database(threads=threads), Database(threads=threads)
        self.made, self.came = 0, 0
        for database in self.databases:
            database.create_table("users", {"id": "int", "city": "string"}, primary_key="id")
            database.create_table("clicks", CLICKS, append_only=True, keep_rows=database is self.there)
            for name, text in VIEWS.items():
                database.create_view(name, text)
        self.followed: dict[str, Counter[tuple[Any, ...]]] = {}
        self.changes: dict[str, Any] = {}
        for name in ("cities", "all_cities", "visitors") if followed else ():
            self.changes[name], self.followed[name] = self.passing.view(name).changes(), Counter()

    @property
    def databases(self) -> tuple[Database, Database]:
        return self.there, self.passing

    def rows(self, n: int, *, failing: bool = False) -> list[tuple[Any, ...]]:
        found = []
        for _ in range(n):
            self.made += 1
            k = self.made * 7919
            price = Decimal(k % 9999) / 100
            row = (
                k % 7,
                URLS[k % 6],
                1 + k % 97,
                price,
                None,
                k / 3,
                bool(k % 2),
                f"note {k % 50} {k}",
                bytes([k % 256]),
            )
            found.append(row)
        if failing:
            found[-1] = (1, "a", 0, *found[-1][3:])
        return found

    def both(self, act: Any) -> None:
        outcomes = []
        for database in self.databases:
            try:
                act(database)
                outcomes.append("")
            except IvmeError as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1], outcomes
        self.came += not outcomes[0]

    @rule(
        n=st.sampled_from([1, 2, 17, 70, 300]),
        way=st.sampled_from(["rows", "dicts", "arrow", "stream"]),
        failing=st.booleans(),
    )
    def insert(self, n: int, way: str, failing: bool) -> None:
        rows = self.rows(n, failing=failing and n != 17)
        given: Any = table_of(rows) if way in ("arrow", "stream") else rows
        if way == "dicts":
            given = [dict(zip(CLICKS, row, strict=True)) for row in rows]
        if way == "stream":
            half = n // 2
            self.both(
                lambda database: database.apply_batches(
                    [[("clicks", given.slice(0, half), 1)], [("clicks", given.slice(half), 1)]]
                )
            )
        else:
            self.both(lambda database: database.insert("clicks", given))

    @rule(place=st.sampled_from([1, 4, 7, 8]), n=st.sampled_from([1, 80]))
    def insert_what_does_not_fit(self, place: int, n: int) -> None:
        """Also in columns that no view reads."""
        rows = table_of(self.rows(n))
        bad = pa.array([b"\xff\xfe"] * n, pa.binary()).view(pa.string()) if place in (1, 7) else pa.array(["?"] * n)
        given = rows.set_column(place, ARROW.names[place], bad)
        if place == 8:
            given = rows.drop_columns("raw")
        before = self.came
        self.both(lambda database: database.insert("clicks", given))
        assert self.came == before or place == 8

    @rule(n=st.sampled_from([1, 90]), user=st.integers(0, 9))
    def insert_with_users(self, n: int, user: int) -> None:
        rows = table_of(self.rows(n))

        def act(database: Database) -> None:
            with database.batch() as batch:
                batch.insert("clicks", rows)
                batch.upsert("users", [(user, URLS[(user + self.made) % 5])])

        self.both(act)

    @rule(user=st.integers(0, 9))
    def delete_user(self, user: int) -> None:
        self.both(lambda database: database.delete_where("users", "id = :id", id=user))

    @rule()
    def delete_clicks(self) -> None:
        with pytest.raises(DataError, match="append-only"):
            self.passing.delete("clicks", self.rows(1))

    @rule()
    def read_or_build_late(self) -> None:
        """Whatever would need the rows is refused once there were some, and nothing changes."""
        if not self.passing.definitions.runtime.backend.size("table clicks"):
            return
        for text in (TRIED, "SELECT COUNT(*) FROM clicks", "ALTER TABLE clicks ADD COLUMN more INT"):
            with pytest.raises(IvmeError, match="keeps no rows"):
                self.passing.sql(text)
        with pytest.raises(PlanError, match="keeps no rows"):
            self.passing.view("cities").verify()

    @rule()
    def take_codes_back(self) -> None:
        for database in self.databases:
            with database.definitions.runtime.lock:
                reclaim(database.definitions.catalog, now=True)

    @invariant()
    def shows_the_same(self) -> None:
        for name in VIEWS:
            expected = Counter(dict(self.there.view(name).items()))
            assert Counter(dict(self.passing.view(name).items())) == expected, name
            if name in self.changes:
                for change in self.changes[name]:
                    for row, weight in change.items():
                        self.followed[name][row] += weight
                assert {row: n for row, n in self.followed[name].items() if n} == expected

    def teardown(self) -> None:
        if not hasattr(self, "there"):
            return
        for name in VIEWS:
            self.there.view(name).verify()
        for database in self.databases:
            backend = database.definitions.runtime.backend
            if isinstance(backend, NativeBackend):
                backend.kernel.verify()
            database.close()


TestTablesWithoutRows = TablesWithoutRows.TestCase
TestTablesWithoutRows.settings = settings(max_examples=examples(30), stateful_step_count=15, deadline=None)
