"""What views of each class cost: the explanations of the gallery, and a table of them (`ivme demo gallery`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

import ivme
from ivme.gallery import GALLERY
from ivme.plan.explain.as_text import lower_bound_lines, summary_lines
from ivme.plan.explain.draw import text_tree

if TYPE_CHECKING:
    from rich.console import Console


def show_gallery(console: Console) -> None:
    """Prints an explanation of each view, and a table of all."""
    summary = Table(title="what the gallery shows", title_justify="left")
    for column in ("view", "class", "update", "delay", "lower bound"):
        summary.add_column(column, no_wrap=column in ("class", "delay"))
    for exhibit in GALLERY:
        found = ivme.explain(exhibit.query, exhibit.tables or None, **exhibit.options)
        _show(exhibit.title, exhibit.query, found)
        least = "-" if found.lower_bound is None else f"N^{found.lower_bound.exponent}"
        title = exhibit.title.split(" (")[0]
        cells = (found.query_class, found.update, found.delay)
        summary.add_row(title, *(str(cell) for cell in cells), least)
    console.print(summary)
    print('Now your own: ivme explain "Q(A, C) = R(A, B), S(B, C)", or ivme explain --help')


def _show(title: str, text: str, found: ivme.Explanation) -> None:
    """One exhibit: its title, text, guarantee, lower bound, and first view tree."""
    print(f"{title}\n{'─' * len(title)}")
    for lines in (text.split("\n"), summary_lines(found), lower_bound_lines(found), text_tree(found.drawing()[0])):
        print(*(f"  {line}" for line in lines), sep="\n", end="\n\n" if lines else "")
