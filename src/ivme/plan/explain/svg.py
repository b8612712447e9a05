"""View trees as a self-contained SVG picture.

The layout is the plainest that never overlaps: a tree is as wide as its children side by side, or as its own label,
and a parent stands over the middle of what is below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from ivme.plan.explain.draw import Box

CHARACTER, HEIGHT, ROW, GAP, MARGIN, HEAD = 8.0, 30.0, 68.0, 22.0, 24.0, 58.0
"""Sizes in pixels: a character of the font, a box, a row of boxes, between boxes, around it all, the title's part."""

_STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;fill:#10243e}"
    ".title{font-size:14px;font-weight:bold}.small{font-size:12px;fill:#4a5563}"
    ".edge{stroke:#8a94a3;stroke-width:1.3}"
    ".stored{fill:#e8f1fb;stroke:#1f5fa8;stroke-width:1.4}"
    ".leaf{fill:#eef5ea;stroke:#4d8a3a;stroke-width:1.4}"
    ".passed{fill:#ffffff;stroke:#8a94a3;stroke-width:1.2;stroke-dasharray:5 4}"
)
_LEGEND = (("stored", "stored view"), ("leaf", "stored table"), ("passed", "passed through"))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A box with the middle of its place and what is below it."""

    box: Box
    x: float
    depth: int
    children: tuple[_Placed, ...]

    def walk(self) -> Iterator[_Placed]:
        yield self
        for child in self.children:
            yield from child.walk()


def svg(boxes: Sequence[Box], title: str) -> str:
    """A picture of the trees, side by side, under a title."""
    placed: list[_Placed] = []
    right = MARGIN
    for box in boxes:
        placed.append(_place(box, right, 0))
        right += _span(box) + GAP
    nodes = [node for tree in placed for node in tree.walk()]
    deepest = max((node.depth for node in nodes), default=0)
    legend = 3 * 160.0
    width = max(right - GAP, MARGIN + _text_width(title), MARGIN + legend) + MARGIN
    height = HEAD + deepest * ROW + HEIGHT + MARGIN + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="title" x="{MARGIN:.0f}" y="32">{_text(title)}</text>',
        *(line for node in nodes for line in _edges(node)),
        *(line for node in nodes for line in _drawn(node)),
        *_legend(height - 18),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _text_width(text: str) -> float:
    return len(text) * CHARACTER


def _own(box: Box) -> float:
    return _text_width(box.label) + 20


def _below(box: Box) -> float:
    return sum(_span(child) for child in box.children) + GAP * max(0, len(box.children) - 1)


def _span(box: Box) -> float:
    return max(_own(box), _below(box))


def _place(box: Box, left: float, depth: int) -> _Placed:
    start = left + (_span(box) - _below(box)) / 2
    children: list[_Placed] = []
    for child in box.children:
        children.append(_place(child, start, depth + 1))
        start += _span(child) + GAP
    return _Placed(box, left + _span(box) / 2, depth, tuple(children))


def _top(depth: int) -> float:
    return HEAD + depth * ROW


def _edges(node: _Placed) -> Iterator[str]:
    for child in node.children:
        yield (
            f'<line class="edge" x1="{node.x:.1f}" y1="{_top(node.depth) + HEIGHT:.1f}" '
            f'x2="{child.x:.1f}" y2="{_top(child.depth):.1f}"/>'
        )


def _drawn(node: _Placed) -> Iterator[str]:
    box, top, width = node.box, _top(node.depth), _own(node.box)
    kind = "passed" if box.stored is False else "leaf" if box.kind in ("atom", "indicator", "leaf") else "stored"
    yield (
        f'<rect class="{kind}" x="{node.x - width / 2:.1f}" y="{top:.1f}" '
        f'width="{width:.1f}" height="{HEIGHT:.0f}" rx="6"/>'
    )
    yield f'<text x="{node.x:.1f}" y="{top + 20:.1f}" text-anchor="middle">{_text(box.label)}</text>'


def _legend(y: float) -> Iterator[str]:
    for position, (kind, meaning) in enumerate(_LEGEND):
        x = MARGIN + position * 160
        yield f'<rect class="{kind}" x="{x:.0f}" y="{y - 12:.0f}" width="26" height="15" rx="4"/>'
        yield f'<text class="small" x="{x + 34:.0f}" y="{y:.0f}">{meaning}</text>'


def _text(text: str) -> str:
    """Text for XML: characters that it cannot hold are shown as U+FFFD."""
    allowed = (
        c
        if c in "\t\n" or (ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF and ord(c) < 0xFFFE) or ord(c) > 0xFFFF
        else "\ufffd"
        for c in text
    )
    return escape("".join(allowed))
