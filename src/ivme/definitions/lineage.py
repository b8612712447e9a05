"""Tables and the views that read them: by name, and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ivme.plan.explain.svg import CHARACTER, HEIGHT, MARGIN, STEP, STYLE, xml_text
from ivme.query.names import OWN_TABLES

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions

_BETWEEN = 70.0
"""The pixels between two columns of the picture."""


def reads(definitions: Definitions, name: str) -> list[str]:
    """The tables and views that a view reads; what its own blocks and closures read, in their place."""
    found, state = list[str](), definitions.catalog.views.get(name)
    for relation in definitions.views[name].relations if state is None else state.relations:
        is_own = relation not in definitions.views and relation in definitions.catalog.views
        found += reads(definitions, relation) if is_own else [relation]
    return [each for each in dict.fromkeys(found) if each not in OWN_TABLES]


def lineage_svg(title: str, tables: Sequence[str], views: Mapping[str, Sequence[str]]) -> str:
    """A picture of tables at the left and of views right of all that they read; views come behind what they read."""
    columns = _columns(tables, views)
    widths = [max(len(name) for name in column) * CHARACTER + 20 for column in columns]
    lefts = [MARGIN + sum(widths[:number]) + number * _BETWEEN for number in range(len(columns))]
    places = {
        name: (left, 2 * MARGIN + row * STEP, width)
        for left, width, column in zip(lefts, widths, columns, strict=True)
        for row, name in enumerate(column)
    }
    texts = MARGIN + len(title) * CHARACTER
    width = max([texts, *(left + wide for left, _, wide in places.values())]) + MARGIN
    height = 2 * MARGIN + max(map(len, columns), default=0) * STEP + MARGIN / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{xml_text(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        f'<text class="title" x="{MARGIN:.0f}" y="{MARGIN + 8:.0f}">{xml_text(title)}</text>',
        *(line for view, read in views.items() for line in _lines(places, view, read)),
        *(line for name in places for line in _box(places, name, "stored" if name in views else "leaf")),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _columns(tables: Sequence[str], views: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names by the longest way from a table; a view over nothing stands beside the tables."""
    level = dict.fromkeys(tables, 0)
    for view, read in views.items():
        level[view] = max((level.get(each, 0) + 1 for each in read), default=0)
    return [
        [name for name, at in level.items() if at == number] for number in range(max(level.values(), default=-1) + 1)
    ]


_Places = Mapping[str, tuple[float, float, float]]


def _lines(places: _Places, view: str, read: Sequence[str]) -> Iterator[str]:
    x, y, _ = places[view]
    for left, top, width in (places[each] for each in read if each in places):
        yield (
            f'<line class="edge" x1="{left + width:.0f}" y1="{top + HEIGHT / 2:.0f}" '
            f'x2="{x:.0f}" y2="{y + HEIGHT / 2:.0f}"/>'
        )


def _box(places: _Places, name: str, kind: str) -> Iterator[str]:
    left, top, width = places[name]
    yield f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{HEIGHT:.0f}" rx="6"/>'
    yield f'<text x="{left + width / 2:.0f}" y="{top + 20:.0f}" text-anchor="middle">{xml_text(name)}</text>'
