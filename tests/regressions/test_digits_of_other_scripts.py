"""A CAST reads the digits 0 to 9, as Spark's does; Python's own conversions read those of all scripts."""

from __future__ import annotations

import pytest

from ivme.query.sql_values import to_decimal, to_float, to_int


@pytest.mark.parametrize("text", ["٣", "१२", "３"])
def test_digits_of_other_scripts_are_not_numbers(text: str) -> None:
    for read in (to_int, to_float, lambda value: to_decimal(value, 9, 2)):
        with pytest.raises(ValueError, match="is not a"):
            read(text)
