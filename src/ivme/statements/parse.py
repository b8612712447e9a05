"""A text to statements, in Spark's dialect. What only reads a text lives here; nothing looks at a database.

Statements are separated by semicolons. All of a text are read before the first is run. Every error points at its place
in the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ivme.query.functions import Function
from ivme.query.names import check_text
from ivme.query.sql_strictness import refuse_gaps, refuse_odd_names
from ivme.query.sql_text import SqlText, tokenize
from ivme.statements.dialect import StatementDialect, parse_tokens
from ivme.statements.model import AdvanceClock, Describe, Explain, Show, Statement, Transaction
from ivme.statements.parse_change import (
    gap_tokens,
    read_copy,
    read_delete,
    read_insert,
    read_truncate,
    read_update,
)
from ivme.statements.parse_definition import read_alter, read_create, read_drop, select_of
from ivme.statements.parse_merge import merge_tokens, read_merge

_WORDS = (
    *("SELECT", "CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "COPY", "BEGIN"),
    *("COMMIT", "ROLLBACK", "SHOW", "DESCRIBE", "EXPLAIN", "ADVANCE"),
)
_UNNEEDED = {
    "REFRESH": "leave it out: views are always up to date",
    "ANALYZE": "leave it out: plans need no statistics; EXPLAIN ANALYZE SELECT ... counts what a query costs",
    "VACUUM": "leave it out: deleted rows leave nothing behind",
    "USE": "leave it out: there is one namespace, without schemas",
    "SET": "leave it out: there are no settings; options are given to ivme.Database(...) and create_view(...)",
    "REPLACE": "write INSERT OR REPLACE INTO table ...",
    "GRANT": "leave it out: tokens of the server say who may read and write what; docs/serving.md shows them",
    "CALL": "leave it out: there are no procedures; change tables from Python, in one db.batch()",
}
"""Statements of other systems that ivme does not need, or has in another form, and what to do instead."""

_BEGINNINGS = f"begin it with {', '.join(_WORDS[:-1])} or {_WORDS[-1]}"


_READERS: dict[str, Callable[[SqlText, exp.Expr], Statement]] = {
    "ALTER": read_alter,
    "COPY": read_copy,
    "DELETE": read_delete,
    "DROP": read_drop,
    "INSERT": read_insert,
    "MERGE": read_merge,
    "TRUNCATE": read_truncate,
    "UPDATE": read_update,
}


def parse_statements(text: str, functions: Mapping[str, Function] = MappingProxyType({})) -> tuple[Statement, ...]:
    """The statements of a text, in order.

    >>> [type(each).__name__ for each in parse_statements("CREATE TABLE t (a INT); SELECT a FROM t")]
    ['CreateTable', 'Select']
    """
    check_text(text)
    tokens = tokenize(text, StatementDialect)
    whole = SqlText(text, tokens, parsed=text, functions=functions)
    return tuple(_statement(replace(whole, tokens=part)) for part in _parts(tokens))


def _parts(tokens: tuple[Token, ...]) -> list[tuple[Token, ...]]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1].append(token)
    return [tuple(part) for part in parts if part]


def _statement(source: SqlText) -> Statement:
    first = source.tokens[0].text.upper()
    if first in ("SELECT", "WITH", "(", "FROM", "VALUES"):
        return select_of(source, source.tokens[0])
    if first == "CREATE":
        return read_create(source)
    if first in ("BEGIN", "START", "COMMIT", "ROLLBACK"):
        return _transaction(source)
    if first == "SHOW":
        return _show(source)
    if first in ("DESCRIBE", "DESC"):
        return _describe(source)
    if first == "EXPLAIN":
        return _explain(source)
    if first == "ADVANCE":
        return _advance(source)
    if first not in _READERS or source.tokens[0].token_type == TokenType.STRING:
        message = f"a statement cannot begin with {source.tokens[0].text!r}"
        near = get_close_matches(first, _WORDS, n=1)
        instead = _UNNEEDED.get(first) or (f"did you mean {near[0]}?" if near else _BEGINNINGS)
        raise source.unsupported(message, source.tokens[0].start, instead)
    instead = f"see docs/statements.md for the form of {first}"
    node = parse_tokens(source, source.tokens, instead)
    tokens = merge_tokens(source.tokens) if first in ("MERGE", "DELETE") else source.tokens
    refuse_gaps(replace(source, tokens=gap_tokens(tokens)), [node])
    refuse_odd_names(source, [node])
    return _READERS[first](source, node)


def _words(source: SqlText) -> list[str]:
    return [token.text.upper() for token in source.tokens]


_TRANSACTIONS = {
    "BEGIN": "BEGIN",
    "BEGIN TRANSACTION": "BEGIN",
    "BEGIN WORK": "BEGIN",
    "START TRANSACTION": "BEGIN",
    "COMMIT": "COMMIT",
    "COMMIT TRANSACTION": "COMMIT",
    "COMMIT WORK": "COMMIT",
    "ROLLBACK": "ROLLBACK",
    "ROLLBACK TRANSACTION": "ROLLBACK",
    "ROLLBACK WORK": "ROLLBACK",
}


def _transaction(source: SqlText) -> Transaction:
    act = _TRANSACTIONS.get(" ".join(_words(source)))
    match act:
        case "BEGIN" | "COMMIT" | "ROLLBACK":
            return Transaction(source, act)
    raise source.unsupported("this is not supported here", source.tokens[-1].start, "write BEGIN, COMMIT or ROLLBACK")


def _show(source: SqlText) -> Show:
    match _words(source):
        case ["SHOW", "TABLES"]:
            return Show(source, "TABLES")
        case ["SHOW", "VIEWS"]:
            return Show(source, "VIEWS")
        case ["SHOW", "CLOCK"]:
            return Show(source, "CLOCK")
    place = source.tokens[min(1, len(source.tokens) - 1)].start
    instead = "write SHOW TABLES, SHOW VIEWS (with their SQL) or SHOW CLOCK; DESCRIBE name shows the columns of one"
    raise source.unsupported("only tables, views and the clock can be shown", place, instead)


def _advance(source: SqlText) -> AdvanceClock:
    instead = "write ADVANCE CLOCK TO TIMESTAMP '2024-05-01 12:00:00', or :now"
    if _words(source)[:3] != ["ADVANCE", "CLOCK", "TO"] or len(source.tokens) < 4:
        raise source.unsupported("only the clock can be advanced", source.tokens[0].start, instead)
    return AdvanceClock(source, parse_tokens(source, source.tokens[3:], instead))


def _describe(source: SqlText) -> Describe:
    instead = "write DESCRIBE and the name of a table or view"
    node = parse_tokens(source, source.tokens, instead)
    if not isinstance(node, exp.Describe) or not isinstance(node.this, exp.Table) or node.args.get("style"):
        raise source.unsupported("only a table or view can be described", source.tokens[0].start, instead)
    refuse_odd_names(source, [node])
    return Describe(source, node.this)


def _explain(source: SqlText) -> Explain:
    options, place = _explain_options(source)
    second = source.tokens[min(place, len(source.tokens) - 1)]
    if second.text.upper() not in ("SELECT", "WITH", "(") or place >= len(source.tokens):
        raise source.unsupported("only a SELECT can be explained", second.start, _EXPLAIN)
    return Explain(source, select_of(source, second), "ANALYZE" in options, "WHY" in options)


_EXPLAIN = (
    "write EXPLAIN [ANALYZE] SELECT ..., or EXPLAIN (why, analyze) SELECT ...; an existing view is explained by "
    "db.view(name).explain()"
)


def _explain_options(source: SqlText) -> tuple[set[str], int]:
    """The options behind EXPLAIN, and the place of the token behind them."""
    words = _words(source)
    if words[1:2] == ["ANALYZE"]:
        return {"ANALYZE"}, 2
    if words[1:2] != ["("] or words[2:3] in (["SELECT"], ["WITH"], ["("], ["FROM"]):
        return set(), 1
    end = words.index(")") if ")" in words else len(words)
    for number, (word, token) in enumerate(zip(words[2:end], source.tokens[2:end], strict=True)):
        if word not in (("ANALYZE", "WHY") if number % 2 == 0 else (",",)):
            raise source.unsupported(f"{token.text} is not an option of EXPLAIN", token.start, _EXPLAIN)
    return set(words[2:end]), end + 1
