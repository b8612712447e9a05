"""Worst-case optimal joins as a list of extensions.

A delta is joined with several nodes one block of variables at a time (generic join). A block is a set of unknown
variables that occur in the same nodes; each node that knows the block takes part in the intersection, through a
projection of it if it also has other unknown variables. Then the whole join costs no more than the edge cover of
what it produces (source 003, sections 2.5 and 4.4). A block that a node determines by a key comes first: it is looked
up, so that a row goes from key to key before it meets anything of which there are many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ivme.plan.assemble.blueprint import Node

Determined = Callable[[Node, frozenset[str]], frozenset[str]]
"""The variables of a node that follow from those that are known."""


@dataclass(frozen=True, slots=True)
class Extension:
    """One step: read `full` nodes entirely and `partial` ones by projection; `new` becomes known."""

    new: tuple[str, ...]
    full: tuple[Node, ...]
    partial: tuple[Node, ...]


def _nothing(_: Node, __: frozenset[str]) -> frozenset[str]:
    return frozenset()


def extensions(
    known: frozenset[str], nodes: tuple[Node, ...], determined: Determined = _nothing
) -> tuple[Extension, ...]:
    """The extensions that join a delta over `known` with all `nodes`: look-ups first, then block by block."""
    steps: list[Extension] = []
    pending = list(nodes)
    while pending:
        bound = tuple(node for node in pending if known.issuperset(node.schema))
        step = Extension((), bound, ()) if bound else _next_block(known, pending, determined)
        steps.append(step)
        known |= frozenset(step.new)
        pending = [node for node in pending if node not in step.full]
    return tuple(steps)


def _next_block(known: frozenset[str], pending: list[Node], determined: Determined) -> Extension:
    """A block that is determined, or the one that needs the fewest projections; among those the one that most nodes
    narrow down."""
    homes: dict[str, dict[int, None]] = {}
    for i, node in enumerate(pending):
        for variable in node.schema:
            if variable not in known:
                homes.setdefault(variable, {})[i] = None
    blocks: dict[tuple[int, ...], list[str]] = {}
    for variable, members in homes.items():
        blocks.setdefault(tuple(members), []).append(variable)
    candidates = [_extension(known, tuple(block), [pending[i] for i in members]) for members, block in blocks.items()]
    follows = [determined(node, known) for node in pending]

    def is_open(step: Extension) -> bool:
        return not any(found.issuperset(step.new) for found in follows)

    return min(candidates, key=lambda step: (is_open(step), len(step.partial), -len(step.full)))


def _extension(known: frozenset[str], block: tuple[str, ...], members: list[Node]) -> Extension:
    after = known | frozenset(block)
    full = tuple(node for node in members if after.issuperset(node.schema))
    return Extension(block, full, tuple(node for node in members if node not in full))
