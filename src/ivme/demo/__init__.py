"""Demonstrations: a view over a million orders, and a network of flights on local Spark (`ivme demo flights`)."""

from __future__ import annotations

from pathlib import Path

from ivme.errors import IvmeError


def show_demo(what: str, folder: Path) -> None:
    """Runs a demo by its name; what it leaves is in the folder."""
    from rich.console import Console

    if what == "first":
        from ivme.demo.first_look import show_first_look

        show_first_look(Console())
    elif what == "gallery":
        from ivme.demo.gallery import show_gallery

        show_gallery(Console())
    elif what == "flights":
        from ivme.demo.flights import show_flights

        show_flights(folder, Console())
    else:
        raise IvmeError(f"there is no demo {what}; there are first, gallery and flights")
