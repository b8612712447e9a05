"""The measured curve as a table and as a picture: what an update costs against what a row costs, one dot for each ε."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ivme.bench.tradeoff import Point
from ivme.errors import IvmeError
from ivme.extras import require

FORMATS = ("png", "svg")


def figure_module() -> Any:
    """Matplotlib's figures; no display is needed for them."""
    require("matplotlib", "--out")
    from matplotlib import figure

    return figure


def show(points: Sequence[Point], rows: int) -> None:
    """Prints a line for each ε."""
    table = Table(title=f"{rows:,} rows", title_justify="left")
    for column in ("ε", "operations an update", "µs", "operations a row read", "µs", "entries"):
        table.add_column(column, justify="right", no_wrap=True)
    for point in points:
        numbers = (point.update_operations, 1e6 * point.update_seconds, point.row_operations, 1e6 * point.row_seconds)
        table.add_row(str(point.epsilon), *(f"{number:,.1f}" for number in numbers), f"{point.entries:,}")
    Console().print(table)


def draw(points: Sequence[Point], title: str, folder: Path) -> list[Path]:
    """Writes tradeoff.png and tradeoff.svg."""
    figure = figure_module().Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.plot([p.update_operations for p in points], [p.row_operations for p in points], marker="o")
    for where, names in _labels(points).items():
        axes.annotate(f"ε = {', '.join(names)}", where, xytext=(6, 6), textcoords="offset points")
    axes.set_xscale(_scale([p.update_operations for p in points]))
    axes.set_yscale(_scale([p.row_operations for p in points]))
    axes.margins(0.15)
    axes.set(xlabel="operations an update", ylabel="operations a row read", title=title)
    axes.grid(alpha=0.3)
    paths = [folder / f"tradeoff.{form}" for form in FORMATS]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            figure.savefig(path)
    except OSError as error:
        raise IvmeError(f"{folder} cannot be written: {error}") from error
    return paths


def _labels(points: Sequence[Point]) -> dict[tuple[float, float], list[str]]:
    """The ε at each dot: several where they cost the same."""
    found: dict[tuple[float, float], list[str]] = {}
    for point in points:
        found.setdefault((point.update_operations, point.row_operations), []).append(str(point.epsilon))
    return found


def _scale(values: Sequence[float]) -> str:
    """Logarithmic where the values differ tenfold; labels are scarce on such an axis otherwise."""
    return "log" if 0 < 10 * min(values) < max(values) else "linear"
