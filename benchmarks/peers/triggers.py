"""Classical maintenance in SQLite: triggers written for a view, as somebody would by hand.

For a query with aggregates over joined tables, the change of its groups by one row is the query with that row in
place of a table. Where a table occurs several times, the terms for all sets of occurrences are added up: after an
insert the table already has the row, so that sets of even size count negatively; after a delete all count alike.
Updates take as long as the row has partners, and reads no longer than the groups are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify import qualify

from benchmarks.peers.workload import Workload

RESULT, SUPPORT, WHOLE = "kept", "support", "whole"
"""The table of groups, its column with the number of derivations, and the key of a query without groups."""


def kept_query(workload: Workload) -> str:
    """Reads what the triggers keep."""
    names = [each.alias_or_name for each in _qualified(workload).selects]
    return workload.kept or f"SELECT {', '.join(names)} FROM {RESULT}"


def trigger_statements(workload: Workload) -> list[str]:
    """The table of groups with what the loaded tables give, and two triggers for each table."""
    query = _qualified(workload).select(exp.alias_(exp.Count(this=exp.Star()), SUPPORT))
    if not query.args.get("group"):
        query = query.select(exp.alias_(exp.Literal.number(0), WHOLE))
    keys = [each.alias_or_name for each in query.selects if not each.find(exp.AggFunc)]
    made = [
        f"CREATE TABLE {RESULT} AS {query.sql('sqlite')}",
        f"CREATE UNIQUE INDEX {RESULT}_key ON {RESULT} ({', '.join(keys)})",
        f"CREATE INDEX {RESULT}_dead ON {RESULT} ({SUPPORT}) WHERE {SUPPORT} = 0",
    ]
    if workload.kept:
        *_, filtered = (each.alias_or_name for each in query.selects if each.alias_or_name not in (*keys, SUPPORT))
        made.append(f"CREATE INDEX {RESULT}_filtered ON {RESULT} ({filtered})")
    for table in workload.tables:
        for event, row in (("INSERT", "NEW"), ("DELETE", "OLD")):
            steps = "; ".join(_steps(query, table.name, row, keys))
            if steps:
                made.append(f"CREATE TRIGGER {table.name}_{event} AFTER {event} ON {table.name} BEGIN {steps}; END")
    return made


def _qualified(workload: Workload) -> exp.Select:
    """The query with every column qualified, and its joins as commas with conditions in WHERE."""
    schema: dict[str, object] = {table.name: dict.fromkeys(table.columns, "BIGINT") for table in workload.tables}
    query = qualify(sqlglot.parse_one(workload.triggers), schema=schema, quote_identifiers=False)
    assert isinstance(query, exp.Select)
    conditions = [join.args["on"] for join in query.args.get("joins") or [] if join.args.get("on")]
    for join in query.args.get("joins") or []:
        join.set("on", None)
        join.set("kind", None)
    return query.where(*conditions) if conditions else query


def _steps(query: exp.Select, table: str, row: str, keys: list[str]) -> Iterator[str]:
    """What a trigger does for each set of occurrences of its table, and then with groups that are gone.

    sqlglot writes unquoted names in lower case.
    """
    aliases = [each.alias_or_name for each in query.find_all(exp.Table) if each.name == table.lower()]
    added = ", ".join(
        f"{name} = {name} + excluded.{name}"
        for name in (each.alias_or_name for each in query.selects)
        if name not in keys
    )
    for size in range(1, len(aliases) + 1):
        sign = 1 if row == "NEW" and size % 2 else -1
        for replaced in combinations(aliases, size):
            delta = _delta(query, replaced, row, sign)
            yield f"INSERT INTO {RESULT} {delta} ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added}"
    if aliases and WHOLE not in keys:
        yield f"DELETE FROM {RESULT} WHERE {SUPPORT} = 0"


def _delta(query: exp.Select, replaced: Sequence[str], row: str, sign: int) -> str:
    """The query with the row in place of some occurrences, its aggregates with a sign."""
    changed = query.copy()
    for column in list(changed.find_all(exp.Column)):
        if column.table in replaced:
            column.set("table", exp.to_identifier(row))
    chosen = []
    for each in changed.selects:
        value = each.unalias().sql("sqlite")
        chosen.append(f"COALESCE({sign} * ({value}), 0)" if each.find(exp.AggFunc) else value)
    tables = [each.sql("sqlite") for each in changed.find_all(exp.Table) if each.alias_or_name not in replaced]
    source = f" FROM {', '.join(tables)}" if tables else ""
    where, group = changed.args.get("where"), changed.args.get("group")
    condition = where.sql("sqlite") if where else "WHERE TRUE"
    return f"SELECT {', '.join(chosen)}{source} {condition} {group.sql('sqlite') if group else ''}"
