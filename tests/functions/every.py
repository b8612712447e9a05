"""The cases of every function, by the name that the table of functions has for it."""

from __future__ import annotations

from tests.functions.cases import Case
from tests.functions.casts import CASTS
from tests.functions.dates import DATES
from tests.functions.numbers import NUMBERS
from tests.functions.texts import TEXTS

CASES: dict[str, list[Case]] = {**DATES, **TEXTS, **NUMBERS, **CASTS}
