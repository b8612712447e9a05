"""What to write in place of functions that are not supported."""

from __future__ import annotations

SUPPORTED = "use the operators and functions that docs/sql_functions.md lists"

FOREIGN = {
    "ISNULL": "write COALESCE(a, b), or a IS NULL",
    "IFF": "write IF(condition, a, b), or CASE",
    "SAFE_DIVIDE": "write a / NULLIF(b, 0)",
    "AGE": "write DATEDIFF(end, start) for days, or TIMESTAMPDIFF(MONTH, start, end)",
    "SESSION_WINDOW": "number the sessions by LAG and a running SUM, as docs/sql.md shows under Sessions",
    "TO_CHAR": "write DATE_FORMAT(ts, 'yyyy-MM-dd'), or say that the text is PostgreSQL's: dialect='postgres'",
    "STRFTIME": "write DATE_FORMAT(ts, 'yyyy-MM-dd'), or say that the text is DuckDB's: dialect='duckdb'",
}
"""Functions of other dialects, as users write them."""
