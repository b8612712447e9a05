"""Words in double quotes that name a column.

To Spark `"city"` is a text, and to PostgreSQL, DuckDB and the standard a column. Where there is a column of that name,
such a text is refused, with both ways to write it: half of its readers would expect other rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from ivme.query.model import Table
from ivme.query.sql_text import SqlText


def refuse_quoted_columns(source: SqlText, statement: exp.Expr, tables: Iterable[Table]) -> None:
    """Refuses a text in double quotes that is called like a column of a table or query that the statement reads."""
    texts = [each for each in statement.find_all(exp.Literal) if each.is_string and _is_in_double_quotes(source, each)]
    if not texts:
        return
    known = set(_columns(statement, tables))
    for text in texts:
        if text.name.lower() in known:
            message = f'"{text.name}" is a text in Spark\'s SQL, and there is a column of that name'
            instead = f"write `{text.name}` for the column, or '{text.name}' for the text"
            raise source.unsupported(message, text, instead)


def _is_in_double_quotes(source: SqlText, text: exp.Literal) -> bool:
    start = text.meta.get("start")
    return start is not None and source.text[start : start + 1] == '"'


def _columns(statement: exp.Expr, tables: Iterable[Table]) -> Iterator[str]:
    """The lower-cased names of columns of tables that a statement names, and of the queries inside it."""
    read = {table.name.lower() for table in statement.find_all(exp.Table)}
    for table in tables:
        if table.name.lower() in read:
            yield from (name.lower() for name in table.column_names)
    for query in statement.find_all(exp.Select):
        if query is not statement:
            yield from (item.alias.lower() for item in query.expressions if isinstance(item, exp.Alias))
