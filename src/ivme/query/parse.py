"""From the text of a view to its query, in whichever of the two notations it is written."""

from __future__ import annotations

import re
from dataclasses import replace

from ivme.errors import QueryError
from ivme.query.model import Query, Table
from ivme.query.names import check_text
from ivme.query.read_select import ReadSelect
from ivme.query.rule import is_join, parse_rule

_SQL = re.compile(
    r"(?>\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*+(?:\(|(?:SELECT|WITH)\b"
    r"|(?:FROM|VALUES|TABLE|CREATE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER|EXPLAIN)\s+\w)",
    re.IGNORECASE | re.DOTALL,
)
"""How SQL starts, after comments, each read in one way only. A rule starts with a name and a parenthesis."""


def parse(text: str | ReadSelect | Query, tables: tuple[Table, ...], *, is_stored: bool = False) -> Query:
    """The query that a text says, in whichever of the two notations; a `Query` is taken as it is.

    A stored one was read before, and is not refused for its length or its characters.

    >>> str(parse("-- flights by airline\\nSELECT f.no FROM flights f WHERE f.airline = :airline", ()))
    'Q(no | airline) = flights(no, airline)'
    """
    if isinstance(text, Query):
        return text.with_tables(tables)
    if not isinstance(text, str):
        raise QueryError(f"a query must be SQL, a rule or a Query; it is a {type(text).__name__}")
    if not is_stored:
        check_text(text)
    if is_sql(text):
        from ivme.query.sql import parse_sql

        return parse_sql(text, tables)
    return parse_rule(text, tables)


def is_sql(text: str) -> bool:
    """Whether a text is meant as SQL: it starts with SELECT, WITH, ( or another statement's first word."""
    return _SQL.match(text) is not None


def is_one_join(text: str | ReadSelect | Query, tables: tuple[Table, ...]) -> bool:
    """Whether a text is a rule that is one join of its atoms, or a query already; all else may be several blocks."""
    if isinstance(text, str):
        return not is_sql(text) and is_join(text, tables)
    return not isinstance(text, ReadSelect)


def as_asked(query: Query, semantics: object) -> Query:
    """The query under the requested semantics: as a set, each row comes once. Groups with aggregates do so anyway."""
    return replace(query, distinct=True) if semantics == "set" and not query.aggregates else query
