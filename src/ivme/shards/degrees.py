"""Degree statistics: how many rows an atom has, how many values its variables have, and which of them are heavy.

Each shard counts its own rows of a table, which are a random part of them, and the counts of the same value add up.
Values are known by their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ivme.query.model import Atom, Table
from ivme.shards.hypercube import Occurrence, choose_patterns, expected_load
from ivme.shards.merge import WEIGHT
from ivme.shards.routing import Routing, kept_rows, variable_hashes
from ivme.shards.sharding import row_identities

_MOST_LISTED = 512
"""A shard lists this many values of a variable: all of them if it has no more, and else the most frequent."""

_MOST_HEAVY = 256

_TELLING = 1000
"""From so many rows on, the number of a variable's values says something about those to come."""


def local_degrees(atom: Atom, table: Table, rows: pa.Table) -> dict[str, Any]:
    """The statistics of one atom in one shard; sorting its rows is what it costs."""
    _, plain = kept_rows(atom, rows.drop_columns([WEIGHT]))
    parts = [hashes for _, hashes in variable_hashes(atom, table, plain, frozenset(atom.variables))]
    variables = {}
    for variable in atom.variables:
        found = np.concatenate([np.empty(0, np.uint64), *(part[variable] for part in parts if variable in part)])
        values, counts = np.unique(found, return_counts=True)
        most = np.argsort(-counts, kind="stable")[:_MOST_LISTED]
        listed = [[int(value), int(count)] for value, count in zip(values[most], counts[most], strict=True)]
        variables[variable] = {"distinct": len(values), "most": listed}
    return {"rows": plain.num_rows, "variables": variables}


def merged_degrees(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The statistics of one atom over all shards."""
    variables: dict[str, Any] = {}
    for variable in {v for part in parts for v in part["variables"]}:
        found = [part["variables"][variable] for part in parts]
        counts: dict[int, int] = {}
        for value, count in (pair for each in found for pair in each["most"]):
            counts[value] = counts.get(value, 0) + count
        distinct = max(len(counts), max(each["distinct"] for each in found))
        variables[variable] = {"distinct": distinct, "counts": counts}
    return {"rows": sum(part["rows"] for part in parts), "variables": variables}


def choose_routing(
    atoms: Sequence[Atom], degrees: Sequence[Mapping[str, Any]], allowed: Sequence[str], shards: int
) -> Routing:
    """The routing for atoms with these statistics.

    A value is heavy if an atom has so many rows with it that the shard they are hashed to would be more than half as
    full again as the others: more than half of a shard's part of them.
    """
    heavy: dict[str, dict[int, None]] = {}
    most: dict[str, int] = {}
    for atom, found in zip(atoms, degrees, strict=True):
        for variable in atom.variables:
            stats = found["variables"].get(variable, {"distinct": 0, "counts": {}})
            if found["rows"] >= _TELLING:
                most[variable] = max(most.get(variable, 0), stats["distinct"])
            limit = max(found["rows"] / (2 * shards), 1)
            listed = sorted(stats["counts"].items(), key=lambda item: -item[1])
            chosen = [value for value, count in listed if count > limit][:_MOST_HEAVY] if shards > 1 else []
            if chosen and variable in allowed:
                heavy.setdefault(variable, {}).update(dict.fromkeys(chosen))
    occurrences = _occurrences(atoms, degrees, heavy)
    patterns = choose_patterns(occurrences, allowed, shards, most)
    used = {variable for pattern in patterns for variable in pattern.heavy}
    return Routing(shards, tuple((v, tuple(h)) for v, h in heavy.items() if v in used), patterns)


def _occurrences(
    atoms: Sequence[Atom], degrees: Sequence[Mapping[str, Any]], heavy: Mapping[str, Iterable[int]]
) -> list[Occurrence]:
    named = zip(atoms, degrees, row_identities(atoms), strict=True)
    return [_occurrence(atom, found, heavy, identity) for atom, found, identity in named]


def _occurrence(atom: Atom, found: Mapping[str, Any], heavy: Mapping[str, Iterable[int]], identity: str) -> Occurrence:
    rows = max(found["rows"], 1)
    fractions = {}
    for variable in atom.variables:
        if variable in heavy:
            counts = found["variables"].get(variable, {"counts": {}})["counts"]
            fractions[variable] = min(1.0, sum(counts.get(value, 0) for value in heavy[variable]) / rows)
    return Occurrence(frozenset((*atom.variables, identity)), rows, fractions)


def routing_load(atoms: Sequence[Atom], degrees: Sequence[Mapping[str, Any]], routing: Routing) -> float:
    """How many rows the fullest shard is expected to have, if one value counts at most once for its heaviest."""
    heavy = dict(routing.heavy)
    occurrences = _occurrences(atoms, degrees, heavy)
    total = 0.0
    for pattern in routing.patterns:
        sizes = [(o.variables, _pattern_rows(o, heavy, pattern.heavy)) for o in occurrences]
        total += expected_load(sizes, dict(pattern.shares))
    return total + _unsplit(atoms, degrees, routing)


def _pattern_rows(atom: Occurrence, heavy: Iterable[str], chosen: frozenset[str]) -> float:
    rows = float(atom.rows)
    for variable in heavy:
        if variable in atom.variables:
            fraction = atom.heavy.get(variable, 0.0)
            rows *= fraction if variable in chosen else 1 - fraction
    return rows


def _unsplit(atoms: Sequence[Atom], degrees: Sequence[Mapping[str, Any]], routing: Routing) -> float:
    """The rows of the most frequent value that a routing hashes though it should be split."""
    heavy, worst = dict(routing.heavy), 0.0
    shares = {v: share for pattern in routing.patterns for v, share in pattern.shares}
    for atom, found in zip(atoms, degrees, strict=True):
        for variable in (v for v in atom.variables if v in shares):
            counts = found["variables"].get(variable, {"counts": {}})["counts"]
            light = [count for value, count in counts.items() if value not in heavy.get(variable, ())]
            worst = max(worst, max(light, default=0) * (1 - 1 / shares[variable]))
    return worst
