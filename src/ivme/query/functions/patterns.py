"""LIKE and ILIKE, and the functions of regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ivme.query.functions.definition import INTEGERS, TEXT, Function
from ivme.query.sql_like import ESCAPE, like
from ivme.query.sql_regex import regular_expression, replacement
from ivme.query.sql_values import text


def _ilike(value: Any, pattern: Any, escape: Any = ESCAPE) -> bool:
    """LIKE of both in small letters, as Spark does it."""
    return like(text(value).lower(), text(pattern).lower(), escape)


def _rlike(value: Any, pattern: Any) -> bool:
    return regular_expression(text(pattern)).search(text(value)) is not None


def _regexp_extract(value: Any, pattern: Any, group: int = 1) -> str:
    """What a group matched in the first match; an empty text if there is none."""
    expression = regular_expression(text(pattern))
    if not 0 <= group <= expression.groups:
        raise ValueError(f"the pattern {pattern!r} has {expression.groups} groups, not {group}")
    found = expression.search(text(value))
    return "" if found is None else found.group(group) or ""


def _regexp_replace(value: Any, pattern: Any, new: Any) -> str:
    expression = regular_expression(text(pattern))
    return expression.sub(replacement(text(new), expression.groups), text(value))


def _regexp_count(value: Any, pattern: Any) -> int:
    return sum(1 for _ in regular_expression(text(pattern)).finditer(text(value)))


def _regexp_substr(value: Any, pattern: Any) -> str | None:
    found = regular_expression(text(pattern)).search(text(value))
    return None if found is None else found.group()


def _check_replacement(pattern: str, new: str) -> None:
    replacement(new, regular_expression(pattern).groups)


def _check_group(pattern: str, group: int = 1) -> None:
    _regexp_extract("", pattern, group)


def _check_like(pattern: str, escape: str = ESCAPE) -> None:
    like("", pattern, escape)


def _pattern(
    count: tuple[int, int],
    apply: Callable[..., Any],
    sql: str,
    gives: str,
    check: Callable[..., Any] = regular_expression,
    others: tuple[tuple[str, ...], ...] = (TEXT,),
) -> Function:
    checked = tuple(range(1, count[1]))
    return Function(
        *count, apply, sql, gives, TEXT, others, runs="by code", fails="constants", check=check, checked=checked
    )


PATTERNS: dict[str, Function] = {
    "like": _pattern((2, 3), like, "a LIKE b, a LIKE b ESCAPE c", "bool", _check_like),
    "ilike": _pattern((2, 3), _ilike, "a ILIKE b, a ILIKE b ESCAPE c", "bool", _check_like),
    "rlike": _pattern((2, 2), _rlike, "a RLIKE pattern, REGEXP_LIKE(a, pattern)", "bool"),
    "regexp_extract": _pattern(
        *((2, 3), _regexp_extract, "REGEXP_EXTRACT(a, pattern), REGEXP_EXTRACT(a, pattern, group)", "string"),
        *(_check_group, (TEXT, INTEGERS)),
    ),
    "regexp_replace": _pattern(
        (3, 3), _regexp_replace, "REGEXP_REPLACE(a, pattern, new)", "string", _check_replacement
    ),
    "regexp_count": _pattern((2, 2), _regexp_count, "REGEXP_COUNT(a, pattern)", "int"),
    "regexp_substr": _pattern((2, 2), _regexp_substr, "REGEXP_SUBSTR(a, pattern)", "string"),
}
