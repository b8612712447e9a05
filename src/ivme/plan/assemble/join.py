"""Worst-case optimal joins as a list of extensions.

A delta is joined with several nodes one block of variables at a time (generic join). A block is a set of unknown
variables that occur in the same nodes; each node that knows the block takes part in the intersection, through a
projection of it if it also has other unknown variables. Then the whole join costs no more than the edge cover of
what it produces (source 003, sections 2.5 and 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass

from ivme.plan.assemble.blueprint import Node


@dataclass(frozen=True, slots=True)
class Extension:
    """One step: read `full` nodes entirely and `partial` ones by projection; `new` becomes known."""

    new: tuple[str, ...]
    full: tuple[Node, ...]
    partial: tuple[Node, ...]


def extensions(known: frozenset[str], nodes: tuple[Node, ...]) -> tuple[Extension, ...]:
    """The extensions that join a delta over `known` with all `nodes`: look-ups first, then block by block."""
    steps: list[Extension] = []
    pending = list(nodes)
    while pending:
        bound = tuple(node for node in pending if known.issuperset(node.schema))
        step = Extension((), bound, ()) if bound else _next_block(known, pending)
        steps.append(step)
        known |= frozenset(step.new)
        pending = [node for node in pending if node not in step.full]
    return tuple(steps)


def _next_block(known: frozenset[str], pending: list[Node]) -> Extension:
    """The block that needs the fewest projections; among those the one that most nodes narrow down."""
    homes: dict[str, dict[int, None]] = {}
    for i, node in enumerate(pending):
        for variable in node.schema:
            if variable not in known:
                homes.setdefault(variable, {})[i] = None
    blocks: dict[tuple[int, ...], list[str]] = {}
    for variable, members in homes.items():
        blocks.setdefault(tuple(members), []).append(variable)
    candidates = [_extension(known, tuple(block), [pending[i] for i in members]) for members, block in blocks.items()]
    return min(candidates, key=lambda step: (len(step.partial), -len(step.full)))


def _extension(known: frozenset[str], block: tuple[str, ...], members: list[Node]) -> Extension:
    after = known | frozenset(block)
    full = tuple(node for node in members if after.issuperset(node.schema))
    return Extension(block, full, tuple(node for node in members if node not in full))
