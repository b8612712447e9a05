"""Columns that the kernel computes: what it asks for, what it remembers, and what it leaves to `evaluate`."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from ivme import _kernel
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.expression.by_code import Elsewhere
from ivme.engine.expression.columns import KernelColumns
from ivme.engine.expression.computed import computed_columns
from ivme.engine.expression.feed_column import FeedColumn
from ivme.engine.expression.rows import RowColumns
from ivme.engine.ingest.row_batch import Layout, RowBatch
from ivme.errors import ExpressionError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.model import table
from ivme.query.sql_values import DECIMALS

T = table("T", {"i": "int", "s": "string", "n": "decimal(10, 2)", "w": "decimal(38, 4)", "t": "string"})
K, S, N, W, OTHER = (ColumnRef(column.name) for column in T.columns)
NULL = -(2**63)


def changed(rows: list[tuple[Any, ...]], domains: Domains) -> RowBatch:
    layout = Layout(T, domains)
    columns = list(zip(*rows, strict=True)) or [()] * len(T.columns)
    codes = [
        np.array([d.encode_value(v) for v in column], np.int64)
        for d, column in zip(layout.domains, columns, strict=True)
    ]
    return RowBatch(layout, np.ones(len(rows), np.int64), None, list(codes))


def computed(expression: Expression, rows: list[tuple[Any, ...]], form: str = "code") -> list[int]:
    domains = native_domains()
    (found,) = KernelColumns(T, [FeedColumn(expression, form)], domains).of(changed(rows, domains))
    return [int(code) for code in found]


def row(**values: Any) -> tuple[Any, ...]:
    return tuple(values.get(column.name) for column in T.columns)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The rows that `evaluate` is called for, as they come."""
    calls: list[tuple[int, ...]] = []
    one = Elsewhere._one

    def counting(self: Elsewhere, codes: tuple[int, ...]) -> tuple[int, int]:
        calls.append(codes)
        return one(self, codes)

    monkeypatch.setattr(Elsewhere, "_one", counting)
    return calls


def test_a_function_of_text_is_evaluated_once_for_each_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, domains = counted(monkeypatch), native_domains()
    wanted = [FeedColumn(Call("like", (S, Literal("a%"))), "test")]
    rows = changed([row(s=text) for text in ["a", "b", "ab", "a", None, "b"]], domains)
    assert [1, 0, 1, 1, 0, 0] == KernelColumns(T, wanted, domains).of(rows)[0].tolist()
    assert 4 == len(calls)
    assert [1, 0, 1, 1, 0, 0] == KernelColumns(T, wanted, domains).of(rows)[0].tolist()
    assert 4 == len(calls)


def test_text_that_no_row_gets_to_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    guarded = Call("and", (Call("gt", (K, Literal(0))), Call("like", (S, Literal("a%")))))
    assert [0, 1] == computed(guarded, [row(i=0, s="x"), row(i=1, s="a")], "test")
    assert 1 == len(calls)


def test_what_is_remembered_by_code_is_forgotten_with_the_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, domains = counted(monkeypatch), native_domains()
    columns = KernelColumns(T, [FeedColumn(Call("length", (S,)), "code")], domains)
    rows = changed([row(s="abc")], domains)
    columns.of(rows)
    domains.memos.forget()
    assert [3] == columns.of(rows)[0].tolist()
    assert 2 == len(calls)


def test_constants_of_text_have_the_codes_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    domains = native_domains()
    chosen = Call("case", (Call("gt", (K, Literal(0))), Literal("yes"), Literal("no")))
    columns = KernelColumns(T, [FeedColumn(chosen, "code")], domains)
    rows = changed([row(i=1), row(i=0)], domains)
    before = columns.of(rows)[0].tolist()
    strings = domains.domain(T.columns[1].type)  # type: ignore[arg-type]
    assert ["yes", "no"] == strings.values(before)
    monkeypatch.setattr(strings, "encode_value", {"yes": 70, "no": 71}.__getitem__)
    domains.memos.forget()
    assert [70, 71] == columns.of(rows)[0].tolist()
    row_codes = tuple(column[0].item() for column in rows.codes())
    assert (*row_codes, 70) == columns.row(row_codes)


def test_a_decimal_beyond_38_digits_is_what_evaluate_rounds_it_to() -> None:
    large = Decimal("9" * 34 + ".9999")
    assert [large] == _values(Call("subtract", (W, Literal(0))), [row(w=large)])
    product = Call("cast_decimal", (Call("multiply", (W, W)), Literal(38), Literal(0)))
    assert [Decimal(10) ** 36] == _values(product, [row(w=Decimal(10) ** 18)])


def test_decimals_that_are_not_their_own_codes_are_read_from_their_dictionary() -> None:
    values = [Decimal("-12345678901234567890.1234"), Decimal("12345678901234567890.1234"), None, Decimal("0.5000")]
    rows = [row(w=value) for value in values]
    doubled = Call("add", (W, W))
    assert [None if v is None else v + v for v in values] == _values(doubled, rows)
    assert [1, 0, 0, 0] == computed(Call("lt", (W, Literal(0))), rows, "test")


def _values(expression: Expression, rows: list[tuple[Any, ...]]) -> list[Any]:
    domains = native_domains()
    columns = [FeedColumn(expression, form) for form in ("low", "high", "known")]
    low, high, known = (column.tolist() for column in KernelColumns(T, columns, domains).of(changed(rows, domains)))
    scale = 0 if "AS DECIMAL(38, 0)" in str(expression) else 4
    numbers = [(h << 64) + (one if one >= 0 else one + 2**64) for one, h in zip(low, high, strict=True)]
    return [None if k == NULL else Decimal(n).scaleb(-scale, DECIMALS) for n, k in zip(numbers, known, strict=True)]


def test_a_quotient_of_decimals_is_rounded_half_up_once() -> None:
    third = Call("cast_decimal", (Call("divide", (N, Literal(3))), Literal(10), Literal(2)))
    assert [67, -67, 0, NULL] == computed(third, [row(n=Decimal(v)) for v in ("2", "-2", "0")] + [row()])
    half = Call("cast_decimal", (Call("divide", (N, Literal(200))), Literal(10), Literal(2)))
    assert [1, -1] == computed(half, [row(n=Decimal("1")), row(n=Decimal("-1"))])


def test_a_long_list_is_searched_and_null_in_it_is_unknown() -> None:
    rows = [row(i=i) for i in (1, 50, 1000, None)]
    listed = Call("in", (K, *map(Literal, range(1, 101))))
    assert [1, 1, 0, NULL] == computed(listed, rows)
    assert [1, 1, NULL, NULL] == computed(Call("in", (K, *map(Literal, range(1, 101)), Literal(None))), rows)


def test_two_columns_of_text_are_compared_by_code_and_ordered_by_value() -> None:
    rows = [row(s="a", t="a"), row(s="b", t="a"), row(s="a", t="b"), row(s=None, t="a")]
    assert [1, 0, 0, NULL] == computed(Call("eq", (S, OTHER)), rows)
    assert [0, 0, 1, NULL] == computed(Call("lt", (S, OTHER)), rows)


def test_a_failing_row_is_named_and_those_that_do_not_get_to_it_are_computed() -> None:
    quotient = Call("divide", (Literal(1), K))
    guarded = Call("case", (Call("ne", (K, Literal(0))), quotient))
    assert NULL == computed(guarded, [row(i=0), row(i=1)])[0]
    seen: list[Any] = []

    def failure(column: FeedColumn, failing: tuple[Any, ...], error: ExpressionError) -> ExpressionError:
        seen.append((column.expression, failing[0]))
        return error

    domains = native_domains()
    columns = KernelColumns(T, [FeedColumn(quotient, "code")], domains)
    with pytest.raises(ExpressionError, match="division by zero"):
        columns.of(changed([row(i=2), row(i=0)], domains), failure)
    assert [(quotient, 0)] == seen


def test_an_integer_too_large_for_64_bits_makes_every_row_doubtful_and_no_result_wrong() -> None:
    assert [0, NULL] == computed(Call("eq", (K, Literal(2**64))), [row(i=1), row()])
    assert [0] == computed(Call("eq", (K, Literal(-(2**63)))), [row(i=1)])


def test_plain_domains_are_computed_row_by_row() -> None:
    domains = Domains()
    columns = computed_columns(T, [FeedColumn(Call("add", (K, Literal(1))), "code")], domains)
    assert isinstance(columns, RowColumns)
    rows = changed([row(i=2), row()], domains)
    assert [3, NULL] == columns.of(rows)[0].tolist()
    codes = tuple(column[0].item() for column in rows.codes())
    assert (*codes, 3) == columns.row(codes)


@pytest.mark.parametrize(
    "instruction",
    [
        ("no_such", 2, 0, 0, 1, 0),
        ("add_int", 2, 0, 9, 1, 0),
        ("add_real", 2, 0, 0, 1, 0),
        ("add_int", 0, 0, 0, 1, 0),
        ("look_up", 2, 0, 0, 1, 0),
        ("foreign", 2, 0, 0, 1, 1),
        ("in_words", 2, 0, 0, 1, 0),
        ("wide_of_code", 3, 0, 0, 1, 0),
        ("fits_word", 0, 0, 0, 1, 39),
        ("out_word", 1, 0, 0, 1, 0),
    ],
)
def test_a_program_that_names_what_is_not_there_is_refused(instruction: tuple[str, int, int, int, int, int]) -> None:
    with pytest.raises(ValueError, match="instruction"):
        _kernel.Expressions(1, "wwwd", 1, 0, [], [], [], [instruction])


def test_columns_that_are_too_short_are_refused() -> None:
    program = _kernel.Expressions(1, "ww", 1, 0, [], [], [], [("out_word", 0, 0, 0, 1, 0)])
    with pytest.raises(ValueError, match="too short"):
        program.run([np.zeros(2, np.int64)], 3, [])
    with pytest.raises(ValueError, match="lacks columns"):
        program.run([], 3, [])


@pytest.mark.parametrize("count", [0, 1, 1023, 1024, 1025, 20_000])
def test_rows_beyond_a_chunk_are_computed_like_the_first(count: int) -> None:
    """More rows than a chunk has, and than the GIL is kept for; every thousandth is doubtful, and text is foreign."""
    domains, numbers = native_domains(), np.arange(count)
    rows = [
        row(i=int(n) if n % 1000 else 2**62, s=f"s{n % 700}", n=Decimal(int(n) % 97), t=f"t{n % 3}") for n in numbers
    ]
    large = Call("cast_float", (Call("cast_decimal", (K, Literal(38), Literal(18))),))
    wanted = [
        FeedColumn(Call("concat", (S, OTHER)), "code", Call("gt", (N, Literal(50)))),
        FeedColumn(Call("multiply", (N, Call("length", (S,)))), "low"),
        FeedColumn(large, "code"),
        FeedColumn(Call("like", (S, Literal("%1"))), "test"),
    ]
    given = changed(rows, domains)
    found = [column.tolist() for column in KernelColumns(T, wanted, domains).of(given)]
    assert [column.tolist() for column in RowColumns(T, wanted, domains).of(given)] == found
