"""The table of scalar functions: what each takes, what it gives, its NULL rule, its meaning, and what runs it.

Every part of the system reads this table: the parser refuses what is not in it, `inference` types calls by it,
`expression.evaluate` is its meaning for one row, `engine.expression` compiles what the kernel has and remembers the
rest by code, and `docs/sql_functions.md` lists them, printed from it. A function is defined once, in the module
of its family.
"""

from __future__ import annotations

from ivme.query.functions.casts import CASTS
from ivme.query.functions.dates import DATES
from ivme.query.functions.definition import ANY_NUMBER, NUMBERS, Function
from ivme.query.functions.logic import LOGIC
from ivme.query.functions.numbers import NUMERIC
from ivme.query.functions.texts import TEXTS

__all__ = ["ANY_NUMBER", "ARITHMETIC", "COMPARISONS", "FUNCTIONS", "NUMBERS", "Function", "listed"]

FUNCTIONS: dict[str, Function] = {**LOGIC, **NUMERIC, **TEXTS, **DATES, **CASTS}
"""Every scalar function there is."""

ARITHMETIC = tuple(name for name, function in FUNCTIONS.items() if function.gives == "arithmetic")
COMPARISONS = tuple(name for name, function in FUNCTIONS.items() if function.fails == "texts")
"""Functions that compare their arguments, and fail only where a text that is not a date is compared with one."""

_NULLS = {"strict": "NULL", "seen": "seen", "lazy": "seen, argument by argument"}
_GIVES = {"arithmetic": "a number", "branches": "the common type", "first": "the type of a", "decimal": "decimal(p, s)"}
_RUNS = {
    "kernel": "in the kernel",
    "by code": "once for each distinct value",
    "by row": "once for each distinct row of a batch",
}


def listed() -> str:
    """The table as documentation shows it, in Markdown.

    >>> print(listed().splitlines()[2])
    | `a AND b` | bool | bool | seen, argument by argument | in the kernel |
    """
    lines = ["| written | of | gives | if an argument is NULL | computed |", "|---|---|---|---|---|"]
    for function in (function for function in FUNCTIONS.values() if function.sql):
        written = ", ".join(f"`{form}`" for form in _forms(function.sql))
        takes, gives = ", ".join(function.takes) or "any", _GIVES.get(function.gives, function.gives)
        lines.append(f"| {written} | {takes} | {gives} | {_NULLS[function.nulls]} | {_RUNS[function.runs]} |")
    return "\n".join(lines) + "\n"


def _forms(sql: str) -> list[str]:
    """The spellings of a function, which commas outside of parentheses part."""
    parts, depth = [""], 0
    for character in sql.replace("|", "\\|"):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
