"""Texts of other systems in Spark's words: parts of them, LIKE, regular expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from ivme.query.dialect_aggregates import Rule, called
from ivme.query.dialect_asked import Asked
from ivme.query.dialect_functions import KNOWN, POSTGRES, TRINO, means_the_same
from ivme.query.dialect_written import written

_BACKSLASH = POSTGRES | {"redshift", "bigquery", "mysql", "clickhouse", "singlestore", "doris", "starrocks", "exasol"}
"""Systems of which a backslash escapes in LIKE, as in Spark."""

_ONE = POSTGRES | {"duckdb"}
"""Systems whose REGEXP_REPLACE replaces the first match unless it has the flag g."""

_BACKWARDS = frozenset({"duckdb", "sqlite"})
"""Systems whose SUBSTRING counts back from its start if the length is negative."""

_ONLY_ALL = frozenset({"bigquery", "redshift", "snowflake"}) | TRINO


def _is_number(node: exp.Expr | None, least: int) -> bool:
    return isinstance(node, exp.Literal) and node.is_int and int(node.this) >= least


def _substring(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """SUBSTRING, where a start before the text is counted from its end in Spark."""
    start, length = node.args.get("start"), node.args.get("length")
    is_after = start is None or _is_number(start, 1)
    if is_after and not _counts_back(asked, start, length):
        return None
    if is_after and length is not None:
        raise asked.refusal(
            f"{asked.sql(node)} has another meaning in {asked.dialect} than in Spark if {asked.sql(length)} is below 0",
            "write it with a constant length from 0 on",
        )
    assert start is not None, "a text from its beginning, without a length, is taken as it is"
    if length is None and asked.dialect == "duckdb":
        return None
    if length is None and asked.dialect in POSTGRES and not start.is_string:
        first = exp.LT(this=exp.Paren(this=start), expression=exp.Literal.number(1))
        return called("SUBSTRING", node.this, called("IF", first, exp.Literal.number(1), start.copy()))
    if not isinstance(start, exp.Literal | exp.Neg) and asked.kind(start) != "other":
        part = asked.sql(start)
        raise asked.refusal(
            f"{asked.sql(node)} has another meaning in {asked.dialect} than in Spark if {part} is below 1",
            "write it with a constant from 1 on, or without dialect=",
        )
    raise asked.refusal(
        f"{asked.sql(node)} has another meaning in {asked.dialect} than in Spark", "start at a constant from 1 on"
    )


def _counts_back(asked: Asked, start: exp.Expr | None, length: exp.Expr | None) -> bool:
    """Whether the length may be negative, which the other system reads differently from Spark."""
    if length is None or start is None or _is_number(length, 0):
        return False
    is_first = isinstance(start, exp.Literal) and start.this == "1"  # in front of which there is nothing
    is_counted = isinstance(length, exp.Length | exp.StrPosition)
    return isinstance(length, exp.Neg) or (asked.dialect in _BACKWARDS and not is_first and not is_counted)


def _end(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """LEFT and RIGHT, which are empty in Spark for a negative number."""
    if _is_number(node.expression, 0):
        return None
    message = (
        f"{asked.sql(node)} leaves out that many in {asked.dialect} if the number is negative, and is empty in Spark"
    )
    raise asked.refusal(message, "write it with a constant from 0 on, or SUBSTRING(x, 1, n)")


def _split_part(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    mark, part = node.args.get("delimiter"), node.args.get("part_index")
    is_said = _is_number(part, 1) and isinstance(mark, exp.Literal) and bool(mark.this)
    if is_said and asked.dialect in POSTGRES | {"redshift", "duckdb", "snowflake"}:
        return None
    raise asked.refusal(
        f"{asked.sql(node)} may have another meaning in {asked.dialect} than in Spark",
        "write it with a constant mark, and a constant part from 1 on",
    )


def _pad(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    fill = node.args.get("fill_pattern")
    is_said = fill is None or (isinstance(fill, exp.Literal) and bool(fill.this))
    if asked.dialect not in KNOWN | {"mysql"} or not is_said or not _is_number(node.expression, 0):
        raise asked.unknown(node)
    return None


def _position(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    further = [name for name in ("position", "occurrence") if node.args.get(name) is not None]
    if asked.dialect not in KNOWN | {"mysql", "sqlite"} or further:
        raise asked.unknown(node)
    return None


def _length(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if asked.dialect not in KNOWN | {"mysql", "sqlite"} or (node.args.get("binary") and asked.dialect != "snowflake"):
        raise asked.unknown(node)
    return None


def _joined(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if asked.dialect in ("oracle", "exasol"):
        raise asked.refusal(
            f"|| takes NULL for an empty text in {asked.dialect}, and is NULL in Spark", "write CONCAT_WS"
        )
    for each in (node.this, node.expression):
        written(asked, node, each)
    return None


def _together(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """CONCAT and CONCAT_WS, which write a bool by one letter in PostgreSQL."""
    if not means_the_same(type(node).__name__, asked.dialect):
        raise asked.unknown(node)
    for each in node.expressions:
        if asked.dialect in POSTGRES and asked.is_bool(each):
            message = f"{asked.sql(node)} writes a bool as t or f in {asked.dialect}, and Spark as true or false"
            raise asked.refusal(message, "write CASE WHEN x THEN 't' ELSE 'f' END")
        written(asked, node, each)
    return None


def _like(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """LIKE, in which a backslash escapes in Spark unless ESCAPE says what does."""
    pattern = node.expression
    if asked.dialect == "sqlite" and isinstance(node, exp.Like):
        raise asked.refusal(f"{asked.sql(node)} ignores case in sqlite", "write ILIKE without dialect=")
    is_bracketed = asked.dialect in ("tsql", "fabric") and not (pattern.is_string and "[" not in pattern.this)
    if is_bracketed or isinstance(pattern, exp.Any | exp.All):
        raise asked.unknown(node)
    if asked.dialect in _BACKSLASH or isinstance(node.parent, exp.Escape):
        return None
    if not pattern.is_string:
        message = f"a backslash in a pattern of LIKE is one in {asked.dialect}, and escapes in Spark"
        raise asked.refusal(message, f"add ESCAPE '!' to {asked.sql(node)}")
    node.set("expression", exp.Literal.string(pattern.this.replace("\\", "\\\\")))
    return None


def _matches(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    if node.args.get("full_match") or node.args.get("flag") is not None:
        raise asked.unknown(node)
    if asked.dialect not in KNOWN:
        raise asked.unknown(node)
    return None


def _regexp_replace(asked: Asked, node: exp.Expr) -> exp.Expr | None:
    """REGEXP_REPLACE of all matches; a group is `\\1` there, and `$1` in Spark."""
    new, flags = node.args.get("replacement"), node.args.get("modifiers")
    if asked.dialect in _ONE and not (flags is not None and flags.this == "g"):
        message = f"{asked.sql(node)} replaces the first match in {asked.dialect}, and Spark all of them"
        if flags is not None:
            message = f"the flags of {asked.sql(node)} have no translation"
        raise asked.refusal(message, "add the flag 'g' to replace all")
    further = [name for name in ("position", "occurrence") if node.args.get(name) is not None]
    text = "" if new is None else new.this if new.is_string else None
    if asked.dialect not in _ONE | _ONLY_ALL or further or text is None:
        raise asked.unknown(node)
    if asked.dialect in _ONE:
        text = text.replace("$", "\\$")
        text = re.sub(r"\\([1-9])", r"$\1", text)
    if re.search(r"\\[^$]|\\$", text) or (asked.dialect not in _ONE and "$" in text):
        raise asked.unknown(node)
    return called("REGEXP_REPLACE", node.this, node.expression, text)


def _hex(_: Asked, node: exp.Expr) -> exp.Expr | None:
    """TO_HEX, whose letters are small in PostgreSQL."""
    return called("LOWER", called("HEX", node.this))


TEXTS: Mapping[str, Mapping[str, Rule] | Rule] = {
    "Substring": _substring,
    "Left": _end,
    "Right": _end,
    "SplitPart": _split_part,
    "Pad": _pad,
    "StrPosition": _position,
    "Length": _length,
    "DPipe": _joined,
    "Concat": _together,
    "ConcatWs": _together,
    "Like": _like,
    "ILike": _like,
    "RegexpLike": _matches,
    "RegexpReplace": _regexp_replace,
    "Hex": dict.fromkeys(POSTGRES, _hex),
}
