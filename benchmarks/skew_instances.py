"""Databases that hurt plans over heavy and light parts, of a chosen size, and the rows to toggle in them.

- *Stars*: one variable has many values, the others one each. A change of a row between the hubs at the centre meets
  N partners in a plan without parts.
- *Packings*: each variable has N^y values, for every maximal y of small denominator that sums up to at most 1 in each
  relation (see `hard_instances`). Among them are stars, and the dense database of the OuMv problem.
- *Brinks*: stars that stay just light, so that the most partners that a light value may have are met.
- *Hubs*: as many values as can be heavy are, by partners that lead nowhere, and the rows among them are toggled.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ivme.query.model import Query

Rows = NDArray[np.int64]

STRIDE = 10**9
"""Values of different blocks never meet."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a database that joins with no other: rows by relation, and those of them that are worth toggling."""

    name: str
    rows: dict[str, Rows]
    toggled: dict[str, Rows]


def relations_of(query: Query) -> dict[str, tuple[str, ...]]:
    """The variables of each relation; the queries measured here name each relation once."""
    return {atom.relation: tuple(atom.variables) for atom in query.atoms}


def stars(query: Query, size: int) -> list[Block]:
    """For each variable the block in which it alone has many values."""
    return _blocks(query, [{variable: Fraction(1)} for variable in query.variables], size)


def packings(query: Query, size: int, denominators: tuple[int, ...]) -> list[Block]:
    """A block for each maximal packing."""
    return _blocks(query, maximal_packings(query, denominators), size)


def maximal_packings(query: Query, denominators: tuple[int, ...]) -> list[dict[str, Fraction]]:
    """The packings that no other of the same denominator exceeds everywhere."""
    found: dict[tuple[Fraction, ...], None] = {}
    variables, edges = query.variables, list(relations_of(query).values())
    for denominator in denominators:
        feasible = [
            numerators
            for numerators in product(range(denominator + 1), repeat=len(variables))
            if all(sum(numerators[variables.index(v)] for v in edge) <= denominator for edge in edges)
        ]
        for each in feasible:
            grown = (tuple(n + (i == j) for j, n in enumerate(each)) for i in range(len(each)))
            if not any(larger in set(feasible) for larger in grown):
                found[tuple(Fraction(n, denominator) for n in each)] = None
    return [dict(zip(variables, weights, strict=True)) for weights in found]


def hubs(query: Query, size: int, epsilon: Fraction) -> list[Block]:
    """One block with as many heavy values for each join variable as fit, and all rows among them."""
    relations = relations_of(query)
    joined = [v for v in query.variables if sum(v in schema for schema in relations.values()) > 1]
    degree = 2 * int((2 * size + 1) ** float(epsilon)) + 1
    widest = max(len(schema) for schema in relations.values())
    count = int(min(size / (2 * len(joined) * degree), (size / (2 * len(relations))) ** (1 / widest)))
    among = {name: _grid([max(count, 1)] * len(schema), 0) for name, schema in relations.items()}
    rows = {name: [part] for name, part in among.items()}
    fresh = STRIDE // 2
    for variable in joined:
        name, schema = next((n, s) for n, s in relations.items() if variable in s and len(s) > 1)
        spokes = np.arange(fresh, fresh + len(schema) * count * degree).reshape(-1, len(schema))
        spokes[:, schema.index(variable)] = np.repeat(np.arange(count), degree)
        rows[name].append(spokes)
        fresh += spokes.size
    return [Block("hubs", {name: np.concatenate(parts) for name, parts in rows.items()}, among)]


def brinks(query: Query, size: int, epsilon: Fraction, denominators: tuple[int, ...]) -> list[Block]:
    """The packings with a long variable, cut to what a light value may have; then rows that bring N up to `size`."""
    degree = int(0.9 * (2 * size + 1) ** float(epsilon))
    relations = relations_of(query)
    long = [each for each in maximal_packings(query, denominators) if 1 in each.values()]
    blocks = []
    for number, weight in enumerate(long):
        domain = {v: max(1, round(degree ** float(weight[v]))) for v in query.variables}
        rows = {n: _grid([domain[v] for v in schema], number * STRIDE) for n, schema in relations.items()}
        blocks.append(Block("just light " + _named(weight), rows, rows))
    missing = size - sum(len(rows) for block in blocks for rows in block.rows.values())
    if missing > 0:
        name, schema = max(relations.items(), key=lambda each: len(each[1]))
        rest = -1 - np.arange(missing * len(schema)).reshape(-1, len(schema))
        empty = {n: np.zeros((0, len(s)), dtype=np.int64) for n, s in relations.items()}
        blocks.append(Block("padding", {**empty, name: rest}, {}))
    return blocks


def contexts(query: Query, size: int, epsilon: Fraction) -> dict[str, Rows]:
    """Rows that have as many derivations as heavy values allow: each free value meets all heavy bound ones."""
    relations = relations_of(query)
    bound = [v for v in query.variables if v not in query.free]
    degree = int(1.2 * (2 * size + 1) ** float(epsilon)) + 1
    heavy = max(1, int(size / (8 * degree)))
    each = size // (2 * len(relations))
    count = max(1, each // heavy if bound else int(each**0.5))
    found = {}
    rng = np.random.default_rng(3)
    for name, schema in relations.items():
        rows = _grid([heavy if v in bound else min(count, each) for v in schema], 0)
        found[name] = rows[rng.permutation(len(rows))[:each]] if not set(schema) & set(bound) else rows
    for variable in bound:
        name, schema = next((n, s) for n, s in relations.items() if variable in s)
        spokes = STRIDE * (1 + bound.index(variable)) + np.arange(2 * heavy * degree).reshape(-1, 2)
        spokes[:, schema.index(variable)] = np.repeat(np.arange(heavy), degree)
        found[name] = np.concatenate([found[name], spokes])
    return found


def _named(weight: dict[str, Fraction]) -> str:
    return " ".join(f"{variable}:{number}" for variable, number in weight.items() if number)


def _blocks(query: Query, weights: list[dict[str, Fraction]], size: int) -> list[Block]:
    relations = relations_of(query)
    each = size / (len(weights) * len(relations))
    blocks = []
    for number, weight in enumerate(weights):
        domain = {v: max(1, round(each ** float(weight.get(v, 0)))) for v in query.variables}
        rows = {n: _grid([domain[v] for v in schema], number * STRIDE) for n, schema in relations.items()}
        blocks.append(Block(_named(weight), rows, rows))
    return blocks


def _grid(sizes: list[int], offset: int) -> Rows:
    """All combinations of values, one row each."""
    axes = np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1) + offset
