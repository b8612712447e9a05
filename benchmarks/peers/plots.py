"""Pictures of the ratios: a bar for each peer and workload, on a logarithmic axis with a line where nobody wins."""

from __future__ import annotations

import io
import re

from matplotlib import rc_context

from benchmarks.peers.race import Result
from benchmarks.peers.report import Report, shown
from ivme.bench.picture import figure_module

FAMILIES = {
    "join-count": "Two-table join count",
    "tpch": "TPC-H",
    "triangles": "Triangles",
    "hubs": "The row between two hubs",
    "access": "Access requests",
    "reach": "Reachability",
    "spark": "Spark",
}
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3")


def families(report: Report) -> dict[str, list[Result]]:
    """The results by the picture that shows them."""
    found: dict[str, list[Result]] = {}
    for result in report.results:
        name = next((name for name in FAMILIES if result.workload.startswith(name)), "others")
        found.setdefault(name, []).append(result)
    return found


def drawings(report: Report) -> dict[str, str]:
    """An SVG for each family of workloads."""
    return {name: drawn(FAMILIES.get(name, name), results) for name, results in families(report).items()}


def drawn(title: str, results: list[Result]) -> str:
    figure = figure_module().Figure(figsize=(9, 1.2 + 0.3 * len(results)), layout="constrained")
    axes = figure.subplots()
    peers = list(dict.fromkeys(result.peer for result in results))
    for place, result in enumerate(results):
        low, high = result.spread
        error = [[max(0, result.ratio - low)], [max(0, high - result.ratio)]]
        colour = COLOURS[peers.index(result.peer) % len(COLOURS)]
        axes.barh(place, result.ratio - 1, left=1, xerr=error, color=colour, ecolor="#444", capsize=2)
        axes.annotate(shown(result.ratio), (max(result.ratio, high), place), xytext=(4, -3), textcoords="offset points")
    axes.set_yticks(range(len(results)), [f"{result.title} · {result.peer}" for result in results], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.15)
    axes.set_xlabel("times as fast as the peer; left of 1 ivme loses")
    figure.suptitle(title)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", written.getvalue(), flags=re.DOTALL)
