"""What to write in place of functions that are not supported."""

from __future__ import annotations

SUPPORTED = "use the operators and functions that docs/sql_functions.md lists"

FOREIGN = {
    "ISNULL": "write COALESCE(a, b), or a IS NULL",
    "SESSION_WINDOW": "number the sessions by LAG and a running SUM, as docs/sql.md shows under Sessions",
    "TO_CHAR": "write DATE_FORMAT(ts, 'yyyy-MM-dd'), or say that the text is PostgreSQL's: dialect='postgres'",
    "STRFTIME": "write DATE_FORMAT(ts, 'yyyy-MM-dd'), or say that the text is DuckDB's: dialect='duckdb'",
}
"""Functions of other dialects, as users write them."""
