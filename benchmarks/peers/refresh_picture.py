"""The picture on the first page: how long a refresh takes on Spark, recomputed and kept fresh, as bars in seconds.

Of the workloads that Spark recomputes it shows the one with the most rows, over its whole path through the stream.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.peers.race import Result
from benchmarks.peers.report import Report
from benchmarks.peers.report import shown as ratio_text
from benchmarks.peers.summary import SHARE

STREAM = ", through the stream"
WIDTH, LEFT, BAR, GROUP = 820, 140, 22, 76
STYLE = """text { font: 14px sans-serif; fill: #24292f } .quiet { fill: #57606a; font-size: 12px }
.card { fill: #ffffff } .theirs { fill: #d0865b } .ours { fill: #2f6f9f }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9198a1 } .card { fill: #161b22 }
  .theirs { fill: #d9976f } .ours { fill: #6aa9d8 }
}"""


def refresh_picture(report: Report) -> str:
    """An SVG, or nothing where Spark was not measured."""
    found = [each for each in report.results if STREAM in each.title and SHARE.search(each.title)]
    if not found:
        return ""
    most = max(each.rows for each in found)
    shown = [each for each in found if each.rows == most]
    title = SHARE.sub("", shown[0].title).removesuffix(STREAM)
    head = f"Seconds until the answer is fresh again: {title}"
    height = 74 + GROUP * len(shown)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
            f"<title>{head}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="card" width="{WIDTH}" height="{height}" rx="6"/>',
            f'<text x="20" y="30" style="font-weight: 600">{head}</text>',
            f'<text class="quiet" x="20" y="50">{report.machine.split(", load")[0]}; ivme from the change in the '
            "stream to the committed answer, Spark recomputing the same SQL</text>",
            *_groups(shown),
            "</svg>",
        ]
    )


def _groups(results: Sequence[Result]) -> list[str]:
    longest = max(statistics.median(each.theirs) for each in results)
    scale = (WIDTH - LEFT - 240) / longest
    lines: list[str] = []
    for number, each in enumerate(results):
        share = SHARE.search(each.title)
        assert share is not None
        top = 70 + GROUP * number
        lines.append(f'<text x="20" y="{top + BAR + 5}">{share.group(1)} changed</text>')
        pairs = (("theirs", "Spark", each.theirs), ("ours", "ivme", each.ours))
        for place, (kind, name, seconds) in enumerate(pairs):
            median, y = statistics.median(seconds), top + place * (BAR + 4)
            width = max(2.0, median * scale)
            times = "" if kind == "theirs" else f", {ratio_text(each.ratio)} times as fast"
            lines.append(f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>')
            lines.append(f'<text x="{LEFT + width + 8:.1f}" y="{y + 16}">{name} {median:.2g} s{times}</text>')
    return lines
