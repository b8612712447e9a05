"""Single rows in one call of the kernel: the same rows, answers and refusals as in a batch."""

from __future__ import annotations

import dataclasses
import datetime
import random
from decimal import Decimal
from typing import Any

import pytest

from ivme.database import Database
from ivme.errors import DataError, IvmeError

COLUMNS = {
    "k": "int",
    "f": "float",
    "d": "decimal(6, 2)",
    "s": "string",
    "b": "bool",
    "t": "date",
    "m": "timestamp",
    "x": "binary",
    "w": "decimal(30, 1)",
    "a": "array<int>",
}
VIEWS = {
    "sums": "SELECT s, SUM(d * 2) AS d, COUNT(*) AS n FROM R WHERE t >= DATE '2000-01-01' AND b GROUP BY s",
    "most": "SELECT b, MAX(m) AS m, SUM(w) AS w FROM R WHERE s LIKE 'a%' GROUP BY b",
}
ORDINARY: dict[str, list[Any]] = {
    "k": [0, 1, 2, -(2**63) + 1, 2**63 - 1],
    "f": [0.0, -0.0, 1.5, -2.25, float("inf"), None],
    "d": [Decimal("1.5"), Decimal("-0.00"), Decimal("9999.99"), Decimal("0.10"), Decimal("1E+2"), 7, None],
    "s": ["", "ab", "a" * 300, "ä€😀", None],
    "b": [True, False, None],
    "t": [datetime.date(1, 1, 1), datetime.date(1999, 12, 31), datetime.date(2024, 2, 29), None],
    "m": [datetime.datetime(1970, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999), None],
    "x": [b"", b"\x00\xff", None],
    "w": [Decimal("0.1"), Decimal(10) ** 28, None],
    "a": [[], [1, None], None],
}
ODD: dict[str, list[Any]] = {
    "k": [2**63, -(2**63), True, 1.0, "1", None, Decimal(3)],
    "f": [float("nan"), 1, 2**60 + 1, "1", True],
    "d": [Decimal("0.001"), Decimal("10000"), Decimal("NaN"), Decimal("-Infinity"), 1.5, 10**5, "1"],
    "s": [1, b"a", "\ud800"],
    "b": [0, 1, "true"],
    "t": [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 1, 1), "2024-01-01"],
    "m": [
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(2024, 1, 1, fold=1),
        7,
    ],
    "x": ["a", bytearray(b"\x01")],
    "w": [Decimal("0.11"), 1.5],
    "a": [["x"], 3],
}
Row = dataclasses.make_dataclass("Row", list(COLUMNS))
Slotted = dataclasses.make_dataclass("Slotted", list(COLUMNS), slots=True, frozen=True)


def database(key: str | None) -> Database:
    made = Database()
    made.create_table("R", COLUMNS, primary_key=key)
    for name, text in VIEWS.items():
        made.create_view(name, text)
    return made


def in_form(values: tuple[Any, ...], form: str) -> Any:
    if form == "dict":
        return dict(zip(COLUMNS, values, strict=True))
    return {"tuple": tuple, "list": list}[form](values) if form in ("tuple", "list") else Row(*values)


def outcome(work: Any) -> str:
    try:
        work()
    except IvmeError as error:
        return str(error)
    return ""


def contents(made: Database) -> list[Any]:
    return [sorted(map(repr, made.table("R"))), *(sorted(map(repr, made.view(name))) for name in VIEWS)]


@pytest.mark.parametrize("key", [None, "k"])
def test_rows_in_any_form_do_what_a_batch_of_one_does(key: str | None) -> None:
    rng = random.Random(7)
    singly, batched = database(key), database(key)
    taken = 0
    given: list[tuple[Any, ...]] = []
    for number in range(300):
        values = (rng.choice([number, 1]), *(rng.choice(ORDINARY[column]) for column in list(COLUMNS)[1:]))
        is_insert = rng.random() < 0.7
        values = values if is_insert or not given else rng.choice(given)
        if number % 3 == 0:
            odd = rng.choice(list(COLUMNS))
            values = tuple(rng.choice(ODD[c]) if c == odd else v for c, v in zip(COLUMNS, values, strict=True))
        row = in_form(values, rng.choice(["tuple", "list", "dict", "dataclass"]))
        change, weight = (singly.insert, 1) if is_insert else (singly.delete, -1)
        found = outcome(lambda change=change, row=row: change("R", [row]))
        assert outcome(lambda row=row, weight=weight: batched.apply("R", [row], [weight])) == found
        taken += not found
        given.append(values)
    assert contents(singly) == contents(batched)
    assert 60 < taken
    for name in VIEWS:
        singly.view(name).verify()


@pytest.mark.parametrize("key", [None, "k"])
def test_short_lists_do_what_a_batch_does(key: str | None) -> None:
    """Lists of up to 70 rows, some with a row that is refused, a key twice, or a delete of what is not there."""
    rng = random.Random(8)
    listed, batched = database(key), database(key)
    taken = 0
    held: list[tuple[Any, ...]] = []
    for number in range(120):
        count = rng.choice([2, 2, 3, 5, 64, 70])
        fresh = [
            (100 * number + i, *(rng.choice(ORDINARY[column]) for column in list(COLUMNS)[1:])) for i in range(count)
        ]
        is_insert = rng.random() < 0.6 or len(held) < count
        rows = fresh if is_insert else rng.sample(held, count)
        if rng.random() < 0.3:
            wrong = rng.randrange(count)
            odd = rng.choice(list(COLUMNS))
            changed = tuple(rng.choice(ODD[c]) if c == odd else v for c, v in zip(COLUMNS, rows[wrong], strict=True))
            rows[wrong] = rng.choice([changed, rows[0], fresh[wrong]])
        change, weight = (listed.insert, 1) if is_insert else (listed.delete, -1)
        given = [in_form(row, rng.choice(["tuple", "list", "dict"])) for row in rows]
        found = outcome(lambda change=change, given=given: change("R", given))
        assert outcome(lambda rows=rows, weight=weight: batched.apply("R", rows, [weight] * len(rows))) == found
        assert contents(listed) == contents(batched)
        taken += not found
        held = list(listed.table("R"))
    assert 20 < taken < 120
    for name in VIEWS:
        listed.view(name).verify()


def test_a_list_that_changes_while_it_is_read_is_left_to_python() -> None:
    rows: list[tuple[int]] = []

    def growing(value: int) -> int:
        rows.append((7,))
        return value

    made = Database()
    made.create_function("growing", growing, arguments=["int"], returns="int")
    made.create_table("T", {"a": "int"})
    made.create_view("v", "SELECT growing(a) AS b FROM T")
    made.insert("T", [(0,)])
    rows[:] = [(1,), (2,)]
    made.insert("T", rows)
    assert sorted(made.table("T"))[:3] == [(0,), (1,), (2,)]
    made.view("v").verify()


def test_ordinary_rows_are_taken_by_the_kernel_alone() -> None:
    made = database("k")
    gate = made._runtime.catalog.row_gate
    assert gate is not None
    values: list[Any] = [1, 1.5, Decimal("1.50"), "ab", True, datetime.date(2024, 1, 1), None, b"\x01", None, None]
    made.insert("R", [tuple(values)])
    forms = [tuple(values), values, in_form(tuple(values), "dict"), Row(*values), Slotted(*values)]
    for form in forms:
        assert gate.apply("R", [form], -1)
        assert gate.apply("R", [form], 1)
    assert not gate.apply("R", [tuple(values)], 1), "the key is there"
    assert not gate.apply("r", [tuple(values)], -1), "Python finds names in other letters"
    assert list(made.view("sums")) == [("ab", Decimal("3.00"), 1)]


def test_what_the_kernel_must_not_take_alone_is_left_to_python() -> None:
    made = database(None)
    gate = made._runtime.catalog.row_gate
    assert gate is not None
    row = tuple(True if column == "b" else values[-2] for column, values in ORDINARY.items())
    made.insert("R", [row])
    for number in range(2000):
        made.insert("R", [(*row[:3], f"text {number}", *row[4:])])
    before = list(made.view("sums"))
    reading = iter(made.view("sums"))
    first = next(reading)
    assert gate.apply("R", [row], 1), "an answer that is being read has its maps as they were"
    assert before == [first, *reading]
    with made._runtime.lock:
        assert not gate.apply("R", [row], 1), "a change may be under way"
    seen: list[dict[str, int]] = []
    made._runtime.observers += (lambda rows, _: seen.append(dict(rows)),)
    made.insert("R", [row])
    assert seen == [{"R": 1}]
    made._runtime.observers = ()
    feed = made.view("sums").changes()
    made.insert("R", [row])
    assert len(list(feed)) == 1
    assert gate.apply("R", [row], 1)
    assert len(list(feed)) == 1, "somebody follows the view"


def test_attributes_that_run_code_are_not_read_by_the_kernel() -> None:
    made = Database()
    made.create_table("T", {"a": "int"})

    @dataclasses.dataclass
    class Computed:
        a: int = 3

    Computed.a = property(lambda _: 7)  # type: ignore[assignment]
    made.insert("T", [(1,)])
    gate = made._runtime.catalog.row_gate
    assert gate is not None
    assert not gate.apply("T", [Computed.__new__(Computed)], 1)
    made.insert("T", [Computed.__new__(Computed)])
    assert sorted(made.table("T")) == [(1,), (7,)]


def test_a_dataclass_with_other_fields_is_refused() -> None:
    made = Database()
    made.create_table("T", {"a": "int"})
    made.insert("T", [(1,)])
    wrong = dataclasses.make_dataclass("wrong", ["b"])
    with pytest.raises(DataError, match="there is no column 'b'"):
        made.insert("T", [wrong(1)])
    assert list(made.table("T")) == [(1,)]


def test_constants_are_found_anew_after_codes_were_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivme.engine.runtime.reclaim.LEAST_CODES", 0)
    made = Database()
    made.create_table("T", {"a": "int", "s": "string"})
    view = made.create_view("v", "SELECT a FROM T WHERE s = 'wanted'")
    for number in range(1000):
        made.insert("T", [(number, f"text {number}")])
        made.delete("T", [(number, f"text {number}")])
    made.insert("T", [(1, "wanted")])
    made.insert("T", [(2, "text 2")])
    assert list(view) == [(1,)]
    view.verify()


def test_lists_of_rows_are_encoded_as_arrow_would(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(11)
    quick, slow = database(None), database(None)
    monkeypatch.setattr(slow._runtime.catalog.layout("R"), "rows", None)
    for number in range(40):
        rows = [
            in_form(
                tuple(rng.choice(ORDINARY[column]) for column in COLUMNS), rng.choice(["tuple", "dict", "dataclass"])
            )
            for _ in range(rng.choice([0, 1, 3, 30]))
        ]
        if rows and number % 4 == 0:
            odd = rng.choice(list(COLUMNS))
            values = [rng.choice(ODD[c]) if c == odd else ORDINARY[c][0] for c in COLUMNS]
            rows.insert(rng.randrange(len(rows)), tuple(values))
        found = outcome(lambda rows=rows: quick.apply("R", rows, [1] * len(rows)))
        assert outcome(lambda rows=rows: slow.apply("R", rows, [1] * len(rows))) == found
    assert contents(quick) == contents(slow)


def test_the_codes_of_rows_in_an_open_batch_are_not_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ivme.engine.runtime.reclaim.LEAST_CODES", 0)
    made = Database()
    made.create_table("T", {"a": "int", "s": "string"})
    with made.batch() as batch:
        batch.insert("T", [(number, f"kept {number}") for number in range(100)])
        for number in range(1000):
            made.insert("T", [(number, f"text {number}")])
            made.delete("T", [(number, f"text {number}")])
    assert sorted(made.table("T")) == [(number, f"kept {number}") for number in range(100)]


def test_a_batch_that_the_kernel_refuses_changes_nothing_and_says_why() -> None:
    made = database("k")
    row = tuple(values[0] for values in ORDINARY.values())
    rows = [(number, *row[1:]) for number in range(30)]
    with pytest.raises(DataError, match="two rows of table R would have the primary key"):
        made.insert("R", [*rows, rows[7]])
    assert len(made.table("R")) == 0
    with pytest.raises(DataError, match="cannot delete"):
        made.apply("R", [*rows, (99, *row[1:])], [1] * 30 + [-1])
    assert len(made.table("R")) == 0
    for name in VIEWS:
        assert list(made.view(name)) == []
