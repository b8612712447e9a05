"""The short table for README.md and the first page of the documentation: ratios only, a line for each workload.

The queries of TPC-H share a line, with the smallest and the largest ratio among them; so a loss is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from benchmarks.peers.race import Result
from benchmarks.peers.report import Report, markdown_table, shown

QUERY = re.compile(r"TPC-H (Q\d+)")
SHARE = re.compile(r", ([\d.]+%) changed")

Place = Callable[[Result], str]
"""The line or the column that a result belongs to."""


def short_table(report: Report, link: str) -> str:
    """How many times as fast ivme is: beside each kind of peer, and beside Spark for each share of changes."""
    spark = [result for result in report.results if result.peer.startswith("Spark")]
    shared = [result for result in spark if SHARE.search(result.title)]
    here = _fastest(result for result in report.results if result not in spark)
    parts = [
        "The other system's time from a change to a fresh answer, divided by ivme's: at 10 ivme is ten times as fast, "
        "below 1 it is slower. "
        "DuckDB recomputes; SQLite maintains counts and sums by triggers, and otherwise runs the query with indexes; "
        "PostgreSQL does the faster of REFRESH and the query with indexes. A dash means not measured. "
        f"Measured on {report.date}, {report.sizes} sizes, {report.machine}. [The report]({link}) has "
        "times, quartiles and versions."
    ]
    if here:
        queries = ", ".join(dict.fromkeys(q for result in here for q in QUERY.findall(result.title)))
        parts.append(_table("", here, lambda result: QUERY.sub(f"TPC-H {queries}", result.title), _system))
    if shared:
        head = "on Spark, beside recomputing the same SQL"
        parts.append(_table(head, shared, lambda result: SHARE.sub("", result.title), _share))
        parts.append(
            '"Through the stream" is a whole micro-batch of a pipeline: Spark reads the changes, and they are stored '
            "durably, exactly once. The other lines apply the same changes in the process of the driver, and read the "
            "answer."
        )
    parts += [
        f"The {result.title}: {shown(result.ratio)} times as fast as {result.peer} of the same SQL."
        for result in spark
        if result not in shared
    ]
    return "\n\n".join(parts)


def _table(head: str, results: Iterable[Result], line: Place, column: Place) -> str:
    found: dict[str, dict[str, list[float]]] = {}
    columns: dict[str, None] = {}
    for result in results:
        columns[column(result)] = None
        found.setdefault(line(result), {}).setdefault(column(result), []).append(result.ratio)
    rows = ([name, *(_ratios(ratios.get(each, ())) for each in columns)] for name, ratios in found.items())
    return markdown_table([head, *columns], rows)


def _ratios(ratios: Iterable[float]) -> str:
    """The smallest and the largest."""
    ordered = sorted(ratios)
    if not ordered:
        return "–"
    ends = dict.fromkeys(shown(ratio) for ratio in (ordered[0], ordered[-1]))
    return " to ".join(ends)


def _fastest(results: Iterable[Result]) -> list[Result]:
    """Of each system and workload the way that is fastest, so that the table fits a narrow page."""
    found: dict[tuple[str, str], Result] = {}
    for result in results:
        key = (result.title, result.system)
        if key not in found or result.ratio < found[key].ratio:
            found[key] = result
    return list(found.values())


def _system(result: Result) -> str:
    return result.system


def _share(result: Result) -> str:
    found = SHARE.search(result.title)
    assert found is not None
    return f"{found.group(1)} changed"
