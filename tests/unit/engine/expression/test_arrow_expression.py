from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.codes.arrow_types import arrow_schema, arrow_type
from ivme.engine.expression.arrow_expression import evaluate_columns
from ivme.engine.expression.arrow_text import KERNELS
from ivme.engine.expression.arrow_values import evaluate_table
from ivme.errors import DataError
from ivme.query.expression import Call, ColumnRef, Expression, Literal
from ivme.query.functions import COMPARISONS, FUNCTIONS
from ivme.query.inference import type_of
from tests.example_counts import examples
from tests.random_expressions import ANYTHING, ROWS, TABLE, as_shown, expected, expressions


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None)
@given(st.data(), st.sampled_from(ANYTHING), ROWS)
def test_columns_are_evaluated_as_rows_are(data: Any, kind: str, rows: list[dict[str, Any]]) -> None:
    expression = data.draw(expressions(kind))
    columns = pa.Table.from_pylist(rows, schema=arrow_schema(TABLE))
    type_ = type_of(expression, TABLE)
    wanted = expected(expression, columns.to_pylist(), type_)
    if wanted is None:
        with pytest.raises(DataError):
            evaluate_columns(expression, columns)
        return
    found = evaluate_columns(expression, columns)
    assert found.type == (pa.null() if type_ is None else arrow_type(type_))
    assert as_shown(found.to_pylist()) == as_shown(wanted)


def case_of_division() -> Expression:
    j = ColumnRef("j")
    return Call("case", (Call("ne", (j, Literal(0))), Call("divide", (ColumnRef("i"), j)), Literal(-1.0)))


def test_a_case_guards_a_division() -> None:
    data = pa.table({"i": [1, 2, None, 3], "j": [2, 0, 4, None]})
    assert evaluate_table(case_of_division(), data).to_pylist() == [0.5, -1.0, None, -1.0]


def test_a_conjunct_is_not_evaluated_where_an_earlier_one_is_false() -> None:
    data = pa.table({"i": [1, 2], "j": [2, 0]})
    guarded = Call("gt", (Call("divide", (ColumnRef("i"), ColumnRef("j"))), Literal(0.25)))
    nonzero = Call("ne", (ColumnRef("j"), Literal(0)))
    assert evaluate_table(Call("and", (nonzero, guarded)), data).to_pylist() == [True, False]
    assert evaluate_table(Call("or", (Call("not", (nonzero,)), guarded)), data).to_pylist() == [True, True]
    with pytest.raises(DataError, match=r"i / j fails: division by zero"):
        evaluate_table(Call("and", (guarded, nonzero)), data)


def test_an_overflow_names_the_expression() -> None:
    data = pa.table({"i": [2**62, 2**62]})
    with pytest.raises(DataError, match=r"i \+ i fails: the integer does not fit 64 bits"):
        evaluate_table(Call("add", (ColumnRef("i"), ColumnRef("i"))), data)


def test_a_constant_in_error_harms_no_empty_table() -> None:
    broken = Call("divide", (Literal(1), Literal(0)))
    assert evaluate_table(broken, pa.table({"i": pa.array([], pa.int64())})).type == pa.float64()
    with pytest.raises(DataError, match="division by zero"):
        evaluate_table(broken, pa.table({"i": [1]}))


def test_columns_are_found_whatever_their_case_and_chunks() -> None:
    column = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    assert evaluate_table(Call("negate", (ColumnRef("N"),)), pa.table({"n": column})).to_pylist() == [-1, -2, -3]
    assert evaluate_table(ColumnRef("N"), pa.table({"n": column})).to_pylist() == [1, 2, 3]
    with pytest.raises(DataError, match="the row has no column 'm'"):
        evaluate_table(ColumnRef("m"), pa.table({"n": column}))


@pytest.mark.parametrize("number", [1, 40])
def test_a_quotient_of_decimals_is_rounded_half_up_to_its_digits(number: int) -> None:
    data = pa.table({"n": pa.array([Decimal("2.00")] * number, pa.decimal128(4, 2))})
    found = evaluate_table(Call("divide", (ColumnRef("n"), Literal(3))), data)
    assert found.type == pa.decimal128(8, 6)
    assert found.to_pylist() == [Decimal("0.666667")] * number


def test_the_functions_with_kernels_are_comparisons_and_some_that_the_kernel_lacks() -> None:
    lacking = {name for name, function in FUNCTIONS.items() if function.runs != "kernel"}
    assert set(COMPARISONS) <= set(KERNELS) <= lacking | set(COMPARISONS)
