"""Graphs as streams of edges: real ones where they are on disk, otherwise made with as few hubs and as many leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]

FILES = {"wiki-vote": "wiki-vote.txt", "ego-facebook": "ego-facebook.tsv", "college-msg": "college-msg.txt"}


@dataclass(frozen=True, slots=True)
class Stream:
    """Changes of one table of edges, in order; each counts once, and a batch is a slice of them."""

    edges: Rows
    weights: Rows

    def batches(self, size: int) -> list[tuple[Rows, Rows]]:
        cuts = range(0, len(self.edges), size)
        return [(self.edges[i : i + size], self.weights[i : i + size]) for i in cuts]


def graph(name: str, folder: Path) -> tuple[Rows, str]:
    """The edges of a graph in the order of its file, and where they are from."""
    path = folder / FILES[name]
    if path.is_file():
        return np.loadtxt(path, dtype=np.int64, usecols=(0, 1)), "real"
    return power_law(100_000, 10_000, seed=len(name)), "made: the file is not there"


def power_law(edges: int, nodes: int, seed: int = 1) -> Rows:
    """Distinct directed edges whose ends have degrees of a power law, hubs first by number."""
    rng = np.random.default_rng(seed)
    drawn = (nodes * rng.random((2 * edges, 2)) ** 3).astype(np.int64)
    return _shuffled(np.unique(drawn[drawn[:, 0] != drawn[:, 1]], axis=0), edges, rng)


def uniform(edges: int, nodes: int, seed: int = 1) -> Rows:
    """Distinct directed edges between nodes that are all alike."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, nodes, (2 * edges, 2))
    return _shuffled(np.unique(drawn[drawn[:, 0] != drawn[:, 1]], axis=0), edges, rng)


def _shuffled(edges: Rows, count: int, rng: np.random.Generator) -> Rows:
    return np.ascontiguousarray(edges[rng.permutation(len(edges))[:count]])


def in_and_out(edges: Rows, seed: int = 1) -> Stream:
    """All edges come, then go in random order."""
    gone = edges[np.random.default_rng(seed).permutation(len(edges))]
    ones = np.ones(len(edges), dtype=np.int64)
    return Stream(np.concatenate([edges, gone]), np.concatenate([ones, -ones]))


def window(edges: Rows, width: int, step: int) -> Stream:
    """Edges come in steps; those that came `width` edges ago go."""
    parts: list[tuple[Rows, int]] = []
    for start in range(0, len(edges), step):
        parts.append((edges[start : start + step], 1))
        if start >= width:
            parts.append((edges[start - width : start - width + step], -1))
    weights = [np.full(len(rows), sign, dtype=np.int64) for rows, sign in parts]
    return Stream(np.concatenate([rows for rows, _ in parts]), np.concatenate(weights))
