"""View trees as a self-contained SVG picture, at most `WIDEST` pixels wide as far as names allow it.

The layout is the plainest that never overlaps: a tree is as wide as its children side by side, or as its own label,
and a parent stands over the middle of what is below it. Trees that do not fit beside each other go below each other,
and one that is too wide by itself has its boxes below each other, too, indented by their depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from xml.sax.saxutils import escape

from ivme.plan.explain.draw import Box

CHARACTER, HEIGHT, ROW, GAP, MARGIN, HEAD = 8.0, 30.0, 68.0, 22.0, 24.0, 58.0
"""Sizes in pixels: a character of the font, a box, a row of boxes, between boxes, around it all, the title's part."""

STYLE = (
    "text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;fill:#10243e}"
    ".title{font-size:14px;font-weight:bold}.small{font-size:12px;fill:#4a5563}"
    ".edge{stroke:#8a94a3;stroke-width:1.3}"
    ".stored{fill:#e8f1fb;stroke:#1f5fa8;stroke-width:1.4}"
    ".leaf{fill:#eef5ea;stroke:#4d8a3a;stroke-width:1.4}"
    ".passed{fill:#ffffff;stroke:#8a94a3;stroke-width:1.2;stroke-dasharray:5 4}"
)
_LEGEND = (("stored", "stored view"), ("leaf", "stored table"), ("passed", "passed through"))
_SIGNS = (
    ("→", "x→H: the rows of a table whose x is heavy, with many rows; x→L: those whose x is light"),
    ("H_", "H_x: the heavy values of x"),
    ("∃", "∃R(x): whether R has rows with x, however many"),
    ("V_", "V_x, V_1: the join of what is below it"),
    ("V'_", "V'_x: what is below it, summed over x"),
    ("#", "R#1, R#2: a table that is read twice, or steps of the view; #x: a computed column"),
)
"""What a sign in a label means."""

WIDEST = 1000.0
LINE, INDENT, STEP = 20.0, 30.0, 40.0
"""Further sizes: a line of text; of trees whose boxes are below each other the indentation and a box with its gap."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A box with the middle of its place, its upper edge, and what is below it."""

    box: Box
    x: float
    top: float
    children: tuple[_Placed, ...]
    is_listed: bool = False

    def walk(self) -> Iterator[_Placed]:
        yield self
        for child in self.children:
            yield from child.walk()


def svg(boxes: Sequence[Box], title: str) -> str:
    """A picture of the trees, under a title."""
    heading = wrap(title, int((WIDEST - 2 * MARGIN) / CHARACTER)) or [""]
    placed = _placed(boxes, HEAD + (len(heading) - 1) * LINE)
    nodes = [node for tree in placed for node in tree.walk()]
    signs = [meaning for sign, meaning in _SIGNS if any(sign in node.box.label for node in nodes)]
    right = max((node.x + _own(node.box) / 2 for node in nodes), default=0.0)
    texts = [*(_text_width(line) for line in heading), *(0.9 * _text_width(line) for line in signs), 3 * 160.0]
    width = max(right, MARGIN + max(texts)) + MARGIN
    bottom = max((node.top for node in nodes), default=HEAD) + HEIGHT + 34
    height = bottom + len(signs) * LINE + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{xml_text(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        *(_line("title", 32 + number * LINE, line) for number, line in enumerate(heading)),
        *(line for node in nodes for line in _edges(node)),
        *(line for node in nodes for line in _drawn(node)),
        *_legend(bottom),
        *(_line("small", bottom + number * LINE, line) for number, line in enumerate(signs, 1)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _line(kind: str, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{MARGIN:.0f}" y="{y:.0f}">{xml_text(text)}</text>'


def _placed(boxes: Sequence[Box], top: float) -> list[_Placed]:
    """The trees side by side, as many as fit, and then below each other."""
    found: list[_Placed] = []
    left = MARGIN
    for box in boxes:
        is_wide = _span(box) > WIDEST - 2 * MARGIN
        if found and (is_wide or left + _span(box) > WIDEST - MARGIN or found[-1].is_listed):
            left, top = MARGIN, max(node.top for tree in found for node in tree.walk()) + ROW
        found.append(_list(box, 0, top) if is_wide else _place(box, left, top))
        left += _span(box) + GAP
    return found


def _list(box: Box, depth: int, top: float) -> _Placed:
    """A tree with its boxes below each other."""
    children: list[_Placed] = []
    last = top
    for child in box.children:
        children.append(_list(child, depth + 1, last + STEP))
        last = max(node.top for node in children[-1].walk())
    return _Placed(box, MARGIN + depth * INDENT + _own(box) / 2, top, tuple(children), is_listed=True)


def _text_width(text: str) -> float:
    return len(text) * CHARACTER


def _own(box: Box) -> float:
    return _text_width(box.label) + 20


def _below(box: Box) -> float:
    return sum(_span(child) for child in box.children) + GAP * max(0, len(box.children) - 1)


def _span(box: Box) -> float:
    return max(_own(box), _below(box))


def _place(box: Box, left: float, top: float) -> _Placed:
    start = left + (_span(box) - _below(box)) / 2
    children: list[_Placed] = []
    for child in box.children:
        children.append(_place(child, start, top + ROW))
        start += _span(child) + GAP
    return _Placed(box, left + _span(box) / 2, top, tuple(children))


def _edges(node: _Placed) -> Iterator[str]:
    for child in node.children:
        if node.is_listed:
            x, y = node.x - _own(node.box) / 2 + INDENT / 2, child.top + HEIGHT / 2
            corner = f"M{x:.1f} {node.top + HEIGHT:.1f}V{y:.1f}H{child.x - _own(child.box) / 2:.1f}"
            yield f'<path class="edge" fill="none" d="{corner}"/>'
        else:
            yield (
                f'<line class="edge" x1="{node.x:.1f}" y1="{node.top + HEIGHT:.1f}" '
                f'x2="{child.x:.1f}" y2="{child.top:.1f}"/>'
            )


def _drawn(node: _Placed) -> Iterator[str]:
    box, top, width = node.box, node.top, _own(node.box)
    kind = "passed" if box.stored is False else "leaf" if box.kind in ("atom", "indicator", "leaf") else "stored"
    yield (
        f'<rect class="{kind}" x="{node.x - width / 2:.1f}" y="{top:.1f}" '
        f'width="{width:.1f}" height="{HEIGHT:.0f}" rx="6"/>'
    )
    yield f'<text x="{node.x:.1f}" y="{top + 20:.1f}" text-anchor="middle">{xml_text(box.label)}</text>'


def _legend(y: float) -> Iterator[str]:
    for position, (kind, meaning) in enumerate(_LEGEND):
        x = MARGIN + position * 160
        yield f'<rect class="{kind}" x="{x:.0f}" y="{y - 12:.0f}" width="26" height="15" rx="4"/>'
        yield f'<text class="small" x="{x + 34:.0f}" y="{y:.0f}">{meaning}</text>'


def xml_text(text: str) -> str:
    """Text for XML: characters that it cannot hold are shown as U+FFFD."""
    allowed = (
        c
        if c in "\t\n" or (ord(c) >= 32 and not 0xD800 <= ord(c) <= 0xDFFF and ord(c) < 0xFFFE) or ord(c) > 0xFFFF
        else "\ufffd"
        for c in text
    )
    return escape("".join(allowed))
