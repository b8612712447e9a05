"""The refresh times of the demonstration as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ivme.extras import require
from ivme.spark.pipeline.events import Applied

if TYPE_CHECKING:
    from ivme.demo.flights import Refreshed


def plot_refresh(path: Path, batches: Sequence[Applied], refreshed: Sequence[Refreshed]) -> None:
    """One point for each batch, and a line for each view that Spark recomputes; time is logarithmic."""
    require("matplotlib", "the picture")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    numbers = [batch.number for batch in batches]
    axes.plot(numbers, [b.seconds for b in batches], "o-", color="#1b6ca8", label="ivme: file to sinks, all views")
    axes.plot(numbers, [b.engine_seconds for b in batches], "o-", color="#6bb7e6", label="ivme: durable commit alone")
    for each, style in zip(refreshed, ("--", ":", "-."), strict=False):
        axes.axhline(each.spark, color="#c0392b", linestyle=style, label=f"Spark recomputes {each.view}")
    axes.set_yscale("log")
    axes.set_xticks(numbers[:: max(1, len(numbers) // 10)])
    axes.set_xlabel("batch of 1,000 changes")
    axes.set_ylabel("seconds to be fresh again")
    axes.set_title("A flight network of 200,000 routes")
    axes.grid(True, which="both", alpha=0.2)
    figure.legend(fontsize="small", loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
