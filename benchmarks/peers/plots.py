"""Pictures of the ratios: a line for each workload, a mark for each peer, and a shade where ivme loses."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from matplotlib import rc_context

from benchmarks.peers.race import Result
from benchmarks.peers.refresh_picture import refresh_picture
from benchmarks.peers.report import Report
from benchmarks.peers.summary import SHARE
from ivme.bench.picture import figure_module

FAMILIES = {
    "joins": ("Joins with aggregates", ("join-count", "tpch")),
    "graphs": ("Graphs and look-ups by key", ("triangles", "hubs", "access", "reach")),
    "spark": ("On Spark", ("spark",)),
}
COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3")
MARKS = "osD^vPX"


def families(report: Report) -> dict[str, list[Result]]:
    """The results by the picture that shows them."""
    found: dict[str, list[Result]] = {}
    for result in report.results:
        name = next((name for name, (_, keys) in FAMILIES.items() if result.workload.startswith(keys)), "others")
        found.setdefault(name, []).append(result)
    return found


def drawings(report: Report) -> dict[str, str]:
    """An SVG for each family of workloads, and that of the first page where Spark was measured."""
    made = {name: drawn(FAMILIES.get(name, (name,))[0], results) for name, results in families(report).items()}
    first = refresh_picture(report)
    return made | ({"refresh": first} if first else {})


def drawn(title: str, results: Sequence[Result]) -> str:
    lines = list(dict.fromkeys(_line(result) for result in results))
    series = list(dict.fromkeys(_series(result) for result in results))
    figure = figure_module().Figure(figsize=(9, 1.6 + 0.34 * len(lines)), layout="constrained")
    axes = figure.subplots()
    for number, name in enumerate(series):
        mine = [result for result in results if _series(result) == name]
        ratios = [result.ratio for result in mine]
        spreads = [result.spread for result in mine]
        errors = [
            [max(0.0, ratio - low) for ratio, (low, _) in zip(ratios, spreads, strict=True)],
            [max(0.0, high - ratio) for ratio, (_, high) in zip(ratios, spreads, strict=True)],
        ]
        style = {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], "linestyle": "none"}
        places = [lines.index(_line(result)) for result in mine]
        axes.errorbar(ratios, places, xerr=errors, label=name, elinewidth=1, markersize=6, **style)
    axes.set_yticks(range(len(lines)), lines, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(0.3, *axes.get_xlim()), None)
    axes.axvspan(axes.get_xlim()[0], 1, color="#f3d9cc", zorder=0, label="ivme loses")
    axes.axvline(1, color="black", linewidth=1)
    axes.grid(color="#e4e4e4")
    axes.set_axisbelow(True)
    axes.set_xlabel("times as fast as the other, with the quartiles")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, title=title)
    written = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    return re.sub(r"^.*?(?=<svg)", "", written.getvalue(), flags=re.DOTALL)


def _line(result: Result) -> str:
    return SHARE.sub("", result.title)


def _series(result: Result) -> str:
    """What has a mark of its own: a peer; where Spark recomputes, the share of changes."""
    share = SHARE.search(result.title)
    return result.peer if share is None else f"{result.peer}, {share.group(1)} changed"
