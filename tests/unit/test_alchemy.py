"""SQLAlchemy and pandas over the dialect of ivme, with the real packages."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from ivme.client import dbapi
from ivme.database import Database

ROWS = [
    {"id": 1, "name": "pen", "price": Decimal("1.50"), "at": datetime.datetime(2024, 1, 1), "ok": True, "x": 1.5},
    {"id": 2, "name": "ink", "price": None, "at": None, "ok": False, "x": None},
    {"id": 3, "name": "Tüte", "price": Decimal("0.10"), "at": None, "ok": None, "x": float("inf")},
]

METADATA = sa.MetaData()
ITEMS = sa.Table(
    "items",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(20), nullable=False),
    sa.Column("price", sa.Numeric(10, 2)),
    sa.Column("at", sa.DateTime),
    sa.Column("ok", sa.Boolean),
    sa.Column("x", sa.Float),
)
SALES = sa.Table("sales", METADATA, sa.Column("item", sa.ForeignKey("items.id")), sa.Column("n", sa.BigInteger))


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    made = sa.create_engine("ivme://")
    METADATA.create_all(made)
    with made.begin() as connection:
        connection.execute(ITEMS.insert(), ROWS)
        connection.execute(SALES.insert(), [{"item": 1, "n": 2}, {"item": 1, "n": 5}, {"item": 2, "n": 1}])
        connection.exec_driver_sql("CREATE VIEW totals AS SELECT item, SUM(n) AS n FROM sales GROUP BY item")
    yield made
    made.dispose()


def test_values_of_all_types_come_back(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        found = connection.execute(sa.select(ITEMS).order_by(ITEMS.c.id)).mappings().all()
    assert [dict(row) for row in found] == ROWS


def test_queries_are_what_sqlalchemy_makes_of_them(engine: sa.Engine) -> None:
    names = sa.select(ITEMS.c.name).order_by(ITEMS.c.id)
    joined = sa.select(ITEMS.c.name, sa.func.sum(SALES.c.n)).join(SALES, isouter=True).group_by(ITEMS.c.name)
    with engine.connect() as connection:
        assert connection.scalars(names.limit(2)).all() == ["pen", "ink"]
        assert connection.scalars(names.offset(1)).all() == ["ink", "Tüte"]
        assert connection.scalars(names.limit(1).offset(2)).all() == ["Tüte"]
        assert connection.scalars(names.where(ITEMS.c.id.in_([1, 3]))).all() == ["pen", "Tüte"]
        assert connection.scalars(names.where(ITEMS.c.name.like("%n%"))).all() == ["pen", "ink"]
        assert connection.scalars(names.where(ITEMS.c.price.is_(None))).all() == ["ink"]
        assert sorted(map(tuple, connection.execute(joined))) == [("Tüte", None), ("ink", 1), ("pen", 7)]
        assert connection.scalar(sa.select(sa.func.count()).select_from(ITEMS)) == 3
        assert connection.scalar(sa.select(sa.literal(1))) == 1


def test_a_transaction_ends_as_it_should(engine: sa.Engine) -> None:
    count = sa.select(sa.func.count()).select_from(SALES)
    with engine.connect() as connection:
        connection.execute(SALES.delete().where(SALES.c.n > 1))
        assert connection.scalar(count) == 1
        connection.rollback()
        assert connection.scalar(count) == 3
        connection.execute(sa.update(SALES).where(SALES.c.item == 2).values(n=SALES.c.n + 10))
        connection.commit()
        assert connection.scalar(sa.text("SELECT n FROM totals WHERE item = :item"), {"item": 2}) == 11


def test_tables_and_views_are_reflected(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert (found.get_table_names(), found.get_view_names()) == (["items", "sales"], ["totals"])
    assert found.get_pk_constraint("items")["constrained_columns"] == ["id"]
    assert found.get_foreign_keys("sales")[0]["referred_columns"] == ["id"]
    assert found.get_view_definition("totals") == "SELECT item, SUM(n) AS n FROM sales GROUP BY item"
    types = {column["name"]: (str(column["type"]), column["nullable"]) for column in found.get_columns("items")}
    assert types["id"] == ("BIGINT", False)
    assert types["name"] == ("TEXT", False)
    assert types["price"] == ("DECIMAL(10, 2)", True)
    assert found.has_table("TOTALS")
    assert not found.has_table("nothing")
    with pytest.raises(sa.exc.NoSuchTableError):
        sa.Table("nothing", sa.MetaData(), autoload_with=engine)
    totals = sa.Table("totals", sa.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        assert sorted(map(tuple, connection.execute(sa.select(totals)))) == [(1, 7), (2, 1)]


def test_pandas_reads_and_writes(engine: sa.Engine) -> None:
    frame = pd.DataFrame(
        {"a": [1, 2], "s": ["x", None], "f": [1.5, 2.5], "d": pd.to_datetime(["2024-01-01", "2024-01-02"])}
    )
    frame.to_sql("frame", engine, index=False)
    pd.testing.assert_frame_equal(pd.read_sql("frame", engine), frame, check_dtype=False)
    frame.to_sql("frame", engine, index=False, if_exists="append", method="multi")
    assert (
        pd.read_sql_query(sa.text("SELECT COUNT(*) AS n FROM frame WHERE a = :a"), engine, params={"a": 2})["n"][0] == 2
    )
    frame.to_sql("frame", engine, index=False, if_exists="replace")
    assert len(pd.read_sql_table("frame", engine)) == 2


def test_mapped_classes_are_stored_and_seen_before_commit(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([User(id=1, name="Zoë"), User(id=2, name="Ann")])
        session.commit()
        found = session.get(User, 1)
        assert found is not None
        found.name = "Zoe"
        assert session.scalars(sa.select(User.name).order_by(User.id)).all() == ["Zoe", "Ann"]
        session.rollback()
        assert session.scalars(sa.select(User.name).order_by(User.id)).all() == ["Zoë", "Ann"]
        session.delete(session.get(User, 2))
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(User)) == 1


def test_connections_to_a_directory_share_it(tmp_path: Path) -> None:
    engine = sa.create_engine(f"ivme:///{tmp_path / 'shop'}")
    with engine.begin() as one, engine.connect() as other:
        one.exec_driver_sql("CREATE TABLE t (a BIGINT)")
        one.exec_driver_sql("INSERT INTO t VALUES (1)")
        assert other.exec_driver_sql("SELECT a FROM t").fetchall() == []
        one.commit()
        assert other.exec_driver_sql("SELECT a FROM t").fetchall() == [(1,)]
    engine.dispose()
    with Database(tmp_path / "shop") as database:
        assert database.tables == ("t",)


def test_an_open_database_is_used_as_it_is() -> None:
    with Database() as database:
        engine = sa.create_engine("ivme://", creator=lambda: dbapi.connect(database))
        with engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE t (a BIGINT)")
        engine.dispose()
        assert database.tables == ("t",)


def test_a_host_in_the_address_is_refused_with_the_right_address() -> None:
    with pytest.raises(dbapi.InterfaceError, match="ivme:///shop"):
        sa.create_engine("ivme://shop").connect()


def test_errors_are_sqlalchemys(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        with pytest.raises(sa.exc.ProgrammingError, match="no column"):
            connection.exec_driver_sql("SELECT nothing FROM items")
        connection.execute(ITEMS.insert(), [ROWS[0]])
        with pytest.raises(sa.exc.DataError, match="primary key"):
            connection.commit()


class Noted(Base):
    __tablename__ = "noted"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(server_default="new")
    at: Mapped[datetime.datetime] = mapped_column(server_default=sa.func.now())


def test_changes_answer_with_their_rows(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        added = connection.execute(ITEMS.insert().values(id=9, name="cap").returning(ITEMS.c.id, ITEMS.c.name))
        assert [(9, "cap")] == added.all()
        double = (ITEMS.c.price * 2).label("double")
        raised = ITEMS.update().where(ITEMS.c.id <= 2).values(price=Decimal("2.50"))
        assert [(1, Decimal("5.00")), (2, Decimal("5.00"))] == sorted(
            connection.execute(raised.returning(ITEMS.c.id, double)).all()
        )
        gone = connection.execute(ITEMS.delete().where(ITEMS.c.id == 9).returning(ITEMS))
        assert ["cap"] == [row.name for row in gone]
        many = connection.execute(
            ITEMS.insert().returning(ITEMS.c.id, sort_by_parameter_order=True),
            [{"id": n, "name": f"n{n}"} for n in (30, 20, 10)],
        )
        assert [30, 20, 10] == many.scalars().all()
    with engine.connect() as connection:
        assert 6 == connection.scalar(sa.select(sa.func.count()).select_from(ITEMS))


def test_defaults_of_the_server_come_back_with_a_mapped_class(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        note = Noted(id=1)
        session.add(note)
        session.commit()
        assert "new" == note.text
        assert isinstance(note.at, datetime.datetime)
        found = session.scalars(sa.update(Noted).values(text="old").returning(Noted)).one()
        assert "old" == found.text
