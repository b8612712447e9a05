"""INTERVALs: lengths of time, which are added to dates and timestamps and are not values themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ivme.query.expression import Call, Expression, Literal
from ivme.query.functions.dates import MICROSECONDS, MONTHS
from ivme.query.sql_text import SqlText

_INSTEAD = "write a constant, as in INTERVAL '90' DAY; for a number of days in a column, DATE_ADD(date, days)"
_UNITS = {
    **{unit: unit for unit in (*MONTHS, *MICROSECONDS)},
    **{f"{unit}S": unit for unit in (*MONTHS, *MICROSECONDS)},
}
_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
_CLOCK = re.compile(r"([+-]?)(?:(\d+) +)?(\d+)(?::(\d+))?(?::(\d+(?:\.\d{1,6})?))?", re.ASCII)
_NAMED = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds, which are added in this order. `is_time` says whether it counts parts of a day,
    so that a date with it becomes a timestamp."""

    months: int = 0
    days: int = 0
    micros: int = 0
    is_time: bool = False

    def __add__(self, other: Interval) -> Interval:
        is_time = self.is_time or other.is_time
        return Interval(self.months + other.months, self.days + other.days, self.micros + other.micros, is_time)

    def __neg__(self) -> Interval:
        return Interval(-self.months, -self.days, -self.micros, self.is_time)

    def after(self, start: Expression, kind: str) -> Expression:
        """The moment that is so much later than one of a kind, "date" or "timestamp"."""
        if kind == "date" and not self.is_time:
            start = Call("add_months", (start, Literal(self.months))) if self.months else start
            if self.days < 0:
                return Call("date_sub", (start, Literal(-self.days)))
            return start if self.months and not self.days else Call("date_add", (start, Literal(self.days)))
        start = start if kind == "timestamp" else Call("cast_timestamp", (start,))
        unit = next(
            name for name in ("HOUR", "MINUTE", "SECOND", "MICROSECOND") if not self.micros % MICROSECONDS[name]
        )
        parts = (("MONTH", self.months), ("DAY", self.days), (unit, self.micros // MICROSECONDS[unit]))
        for name, count in parts:
            start = Call("timestampadd", (Literal(name), Literal(count), start)) if count else start
        return start


def is_interval(node: exp.Expr) -> bool:
    """Whether a node is an INTERVAL, or a sum of them."""
    if isinstance(node, exp.Paren | exp.Neg):
        return is_interval(node.this)
    if isinstance(node, exp.Add | exp.Sub):
        return is_interval(node.this) and is_interval(node.expression)
    return isinstance(node, exp.Interval)


def read_interval(source: SqlText, node: exp.Expr) -> Interval:
    """The length of time that a node stands for."""
    if isinstance(node, exp.Paren):
        return read_interval(source, node.this)
    if isinstance(node, exp.Neg):
        return -read_interval(source, node.this)
    if isinstance(node, exp.Add | exp.Sub):
        left, right = read_interval(source, node.this), read_interval(source, node.expression)
        return left + (right if isinstance(node, exp.Add) else -right)
    try:
        if not isinstance(node.this, exp.Literal):
            raise ValueError("an INTERVAL of a value that is not a constant")
        _check_texts(source)
        return _read(str(node.this.this).strip(), node.args.get("unit"))
    except ValueError as error:
        raise source.unsupported(f"{error} is not supported", node, _INSTEAD) from None


def _check_texts(source: SqlText) -> None:
    """That texts with units are read whole: sqlglot takes out the first number with its unit, and drops the rest."""
    for keyword, constant in pairwise(source.tokens):
        is_text = keyword.token_type == TokenType.INTERVAL and constant.token_type == TokenType.STRING
        if is_text and any(map(str.isalpha, constant.text)):
            _named(constant.text)


def _read(text: str, unit: exp.Expr | None) -> Interval:
    if unit is None:
        return _named(text)
    if not isinstance(unit, exp.IntervalSpan):
        return counted(text, unit.name)
    span = unit.this.name.upper(), unit.expression.name.upper()
    if span == ("YEAR", "MONTH"):
        found = re.fullmatch(r"([+-]?)(\d+)-(\d+)", text, re.ASCII)
        if found is None:
            raise ValueError(f"the INTERVAL {text!r} YEAR TO MONTH")
        months = int(found[2]) * 12 + int(found[3])
        return Interval(-months if found[1] == "-" else months)
    return _clock(text, span)


def _named(text: str) -> Interval:
    """Numbers with their units, as in '1 month 2 days'."""
    found, end = Interval(), 0
    for match in _NAMED.finditer(text):
        if match.start() != end:
            break
        found, end = found + counted(match[1].replace(" ", ""), match[2]), match.end()
    if end == 0 or end < len(text):
        raise ValueError(f"the INTERVAL {text!r}")
    return found


def counted(text: str, unit: str) -> Interval:
    """So many of a unit; only seconds have fractions.

    >>> counted("90", "DAYS"), counted("1.5", "second")
    (Interval(months=0, days=90, micros=0, is_time=False), Interval(months=0, days=0, micros=1500000, is_time=True))
    """
    name = _UNITS.get(unit.upper())
    pattern = r"[+-]?\d+(\.\d{1,6})?" if name == "SECOND" else r"[+-]?\d+"
    if name is None or re.fullmatch(pattern, text, re.ASCII) is None or len(text) > 18:
        raise ValueError(f"the INTERVAL {text} {unit.upper()}")
    if name in MONTHS:
        return Interval(int(text) * MONTHS[name])
    if name in ("WEEK", "DAY"):
        return Interval(days=int(text) * (7 if name == "WEEK" else 1))
    return Interval(micros=int(Decimal(text) * MICROSECONDS[name]), is_time=True)


def _clock(text: str, span: tuple[str, str]) -> Interval:
    """A time as in '1 02:03:04.5' DAY TO SECOND, from the first of the fields to the last."""
    if span[0] not in _FIELDS or span[1] not in _FIELDS:
        raise ValueError(f"the INTERVAL {text!r} {span[0]} TO {span[1]}")
    names = _FIELDS[_FIELDS.index(span[0]) : _FIELDS.index(span[1]) + 1]
    match = _CLOCK.fullmatch(text)
    numbers = [] if match is None else [part for part in match.groups()[1:] if part is not None]
    if match is None or len(numbers) != len(names) or (names[0] == "DAY") != (match[2] is not None):
        raise ValueError(f"the INTERVAL {text!r} {span[0]} TO {span[1]}")
    found = Interval(is_time=True)
    for number, name in zip(numbers, names, strict=True):
        found += counted(number, name)
    return -found if match[1] == "-" else found
