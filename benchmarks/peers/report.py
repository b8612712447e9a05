"""What a run found, and how it is written down: JSON, Markdown, HTML, and the short table of README and docs."""

from __future__ import annotations

import html
import importlib.metadata
import json
import os
import platform
import re
import sqlite3
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.peers.race import Result

PACKAGES = ("ivme", "duckdb", "pyspark", "numpy", "pyarrow")
BEGIN, END = "<!-- peers: written by `make bench-peers-record` -->", "<!-- end of peers -->"


@dataclass(frozen=True, slots=True)
class Report:
    """A run: when, where, with what, what was found, and who was missing and why."""

    date: str
    machine: str
    versions: dict[str, str]
    sizes: str
    results: tuple[Result, ...]
    missing: tuple[tuple[str, str], ...]


def machine() -> str:
    """The processor, its cores and memory, the system, and how busy it was."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        found = re.search(r"model name\s*: (.*)", info.read_text("utf-8"))
        model = found.group(1) if found else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[0]
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}, load {load:.1f} at the start"


def versions() -> dict[str, str]:
    """What takes part in this process; the other peers add theirs."""
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return found | ({"commit": done.stdout.strip()} if done.returncode == 0 else {})


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def to_json(report: Report) -> str:
    return json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> Report:
    given = json.loads(text)
    results = [
        Result(**{**each, "theirs": tuple(each["theirs"]), "ours": tuple(each["ours"])}) for each in given["results"]
    ]
    return Report(**{**given, "results": tuple(results), "missing": tuple(map(tuple, given["missing"]))})


def combined(reports: Sequence[Report]) -> Report:
    """The workloads of several runs, each from the last run that has it; the date says which peers are of which run."""
    last = {result.workload: report for report in reports for result in report.results}
    results = [result for name, report in last.items() for result in report.results if result.workload == name]
    dates: dict[str, set[str]] = {}
    for result in results:
        dates.setdefault(last[result.workload].date, set()).add(result.system)
    runs: dict[tuple[str, ...], list[str]] = {}
    for date, systems in dates.items():
        runs.setdefault(tuple(sorted(systems)), []).append(date)
    said = [f"{' and '.join(sorted(there))} (beside {', '.join(systems)})" for systems, there in runs.items()]
    versions = {name: version for report in reports for name, version in report.versions.items()}
    date = ", ".join(said) if len(dates) > 1 else reports[-1].date
    return replace(reports[-1], date=date, versions=versions, results=tuple(results))


def shown(ratio: float) -> str:
    """A ratio with two or three digits that mean something."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:,.1f} {unit}"
    return f"{seconds * 1e6:,.0f} µs"


def cells(result: Result) -> tuple[str, ...]:
    """A row of the long table."""
    low, high = result.spread
    return (
        result.title,
        f"{result.rows:,}",
        result.peer,
        duration(statistics.median(result.theirs)),
        duration(statistics.median(result.ours)),
        f"{shown(result.ratio)} ({shown(low)}–{shown(high)})",
        str(len(result.theirs)),
    )


HEADS = ("workload", "rows", "peer", "peer, median", "ivme, median", "times as fast (quartiles)", "samples")


def markdown_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def how(report: Report) -> list[str]:
    """The paragraphs above the figures."""
    named = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return [
        f"Measured on {report.date}, {report.sizes} sizes: {report.machine}. {named}.",
        "Each figure is the time from a change to a fresh answer: the changes are applied in one transaction, then the "
        "whole answer (or all look-ups) is read. Figures are medians. A ratio is the peer's median divided by that of "
        "ivme, both measured in turns in the same run; the quartiles of the ratios follow in parentheses. Above 1 ivme "
        "is faster, below 1 the peer is. All answers were compared and found equal before the measurement. Nothing is "
        "synced to disk. DuckDB, PostgreSQL and Spark use all cores; ivme, SQLite and Pathway use one. Pathway returns "
        "the changes of an answer, and its user stores the answer; where an answer has many rows, ivme is measured "
        "beside it in the same way, by view.changes().",
        "In the triangle count over two nodes of high degree, each round inserts or deletes the one edge that connects "
        "them, so that one change affects as many triangles as the two nodes have neighbours. Look-ups by key read a "
        "view with a parameter (WHERE a = :a) for ten values.",
    ]


def markdown(report: Report, plots: Iterable[str]) -> str:
    """The whole report."""
    parts = ["# Measured against others", *how(report)]
    parts += [f"![{Path(plot).stem}]({plot})" for plot in plots]
    parts.append(markdown_table(HEADS, map(cells, report.results)))
    parts += ["## Not measured", missing_text(report)]
    return "\n\n".join(parts) + "\n"


def missing_text(report: Report) -> str:
    return "\n".join(f"- {peer}: {reason}." for peer, reason in report.missing) or "Nothing."


def html_page(report: Report, drawings: Iterable[str]) -> str:
    """The same as one page that needs nothing else; the drawings are SVG."""
    escape = html.escape
    paragraphs = "".join(f"<p>{escape(text)}</p>" for text in how(report))
    heads = "".join(f"<th>{escape(head)}</th>" for head in HEADS)
    rows = "".join(
        f"<tr class={'won' if each.ratio >= 1 else 'lost'}>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells(each))
        + "</tr>"
        for each in report.results
    )
    missing = (
        "".join(f"<li>{escape(peer)}: {escape(reason)}.</li>" for peer, reason in report.missing) or "<li>Nothing.</li>"
    )
    style = (
        "body{font:15px sans-serif;max-width:75em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
        "td,th{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:right}td:first-child,td:nth-child(3),"
        "th:first-child,th:nth-child(3){text-align:left}.lost{background:#fff1e8}svg{max-width:100%;height:auto}"
    )
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>ivme beside others</title><style>{style}</style>"
        f"<h1>Measured against others</h1>{paragraphs}{''.join(drawings)}<table><tr>{heads}</tr>{rows}</table>"
        f"<h2>Not measured</h2><ul>{missing}</ul></html>\n"
    )


def replaced(page: str, table: str) -> str:
    """The page with the table between its two marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"
