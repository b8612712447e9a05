"""The rows of a request as a join of pieces, so that they come one by one.

All rows of `Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)` for an A may be N^2, and the tuples (B, C) and (C, D) that they
are made of 2N. A request finds these *pieces*, and its rows are read off them, each after a constant number of steps.
That is so for every query that is free-connex once its inputs are fixed (Bagan, Durand and Grandjean, CSL 2007).

Atoms that hang together through bound variables have some outputs, their *frontier*. If frontiers are acyclic, the
largest ones are the pieces, in a join tree; every other frontier lies within one, and its atoms are joined there. What
is cyclic becomes one piece. A piece begins with the distinct tuples of its parent that it may match, or with the inputs
alone where that is cheaper. Tuples without a match in a piece below are dropped before rows are read, from the last
piece to the first, so that no loop over the pieces is in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import itemgetter

from ivme.budget import spend
from ivme.plan.assemble.blueprint import Node, PieceRule
from ivme.plan.assemble.elimination import Residuals, Stages, Start
from ivme.structure.hypergraph import connected_edges, reduce_edges


@dataclass(frozen=True, slots=True)
class _Bag:
    """The outputs of a piece, and the nodes that are joined in it."""

    variables: frozenset[str]
    nodes: tuple[Node, ...]


class _Pieces:
    """Pieces one after the other, with the nodes that bound the number of tuples of each."""

    def __init__(self, residuals: Residuals, inputs: frozenset[str]) -> None:
        self.found: list[PieceRule] = []
        self._residuals = residuals
        self._inputs = inputs
        self._joined: list[tuple[Node, ...]] = []

    def below(self, bag: _Bag, parent: int) -> PieceRule:
        """The piece of a bag. Only tuples of its parent can match, so it begins with these unless the inputs alone are
        cheaper; the first begins with the inputs."""
        schema = tuple(dict.fromkeys(v for node in bag.nodes for v in node.schema if v in bag.variables))
        ways = (True, False) if parent >= 0 else (False,)
        drafts = [PieceRule(schema, (bag.nodes,), parent, follows) for follows in ways]
        return min((replace(each, stages=self._stages(each)) for each in drafts), key=self.exponent)

    def add(self, piece: PieceRule) -> None:
        self._joined.append((*self._before(piece), *(node for stage in piece.stages for node in stage)))
        self.found.append(piece)

    def exponent(self, piece: PieceRule) -> Fraction:
        """What it takes to find the next piece."""
        kept, start = self._inputs.union(piece.schema), Start(self._inputs)
        return self._residuals.exponent(piece.stages, start, kept, self._shared(piece), self._before(piece))

    def _shared(self, piece: PieceRule) -> frozenset[str]:
        return frozenset(self.found[piece.parent].schema).intersection(piece.schema) if piece.follows else frozenset()

    def _before(self, piece: PieceRule) -> tuple[Node, ...]:
        return self._joined[piece.parent] if piece.follows else ()

    def _stages(self, piece: PieceRule) -> Stages:
        known = self._inputs | self._shared(piece)
        return stages_from(self._residuals, piece.stages[0], known, self._inputs.union(piece.schema))


def pieces_of(
    residuals: Residuals, nodes: tuple[Node, ...], inputs: frozenset[str], outputs: frozenset[str]
) -> tuple[PieceRule, ...]:
    """The pieces of the rows of a request, parents before children: a single one if the rows do not fall apart."""
    spend(10 * len(nodes))
    pieces = _Pieces(residuals, inputs)
    for bag, parent in _tree(_bags(nodes, inputs, outputs), inputs):
        pieces.add(pieces.below(bag, parent))
    return tuple(pieces.found)


def exponent_of(residuals: Residuals, pieces: Iterable[PieceRule], inputs: frozenset[str]) -> Fraction:
    """What it takes to find all pieces of a request."""
    counted = _Pieces(residuals, inputs)
    worst = Fraction(0)
    for piece in pieces:
        worst = max(worst, counted.exponent(piece))
        counted.add(piece)
    return worst


def stages_from(residuals: Residuals, nodes: tuple[Node, ...], known: frozenset[str], kept: Iterable[str]) -> Stages:
    """One stage for each part that shares nothing but what is known, those without outputs first; or better ones."""
    groups = connected_edges(frozenset(node.schema) - known for node in nodes)
    wanted = frozenset(kept)
    parts = [tuple(nodes[i] for i in group) for group in groups]
    parts.sort(key=lambda part: any(wanted.intersection(node.schema) - known for node in part))
    return residuals.eliminated(tuple(parts), Start(known), wanted)


def _bags(nodes: tuple[Node, ...], inputs: frozenset[str], outputs: frozenset[str]) -> list[_Bag]:
    """The outputs of each piece, none of them within another's, with the nodes whose frontiers are there."""
    schemas = [frozenset(node.schema) for node in nodes]
    groups = connected_edges(schema - outputs - inputs for schema in schemas)
    frontiers = [outputs & frozenset().union(*(schemas[i] for i in group)) for group in groups]
    wide = _acyclic([each for each in dict.fromkeys(frontiers) if not any(each < other for other in frontiers)])
    homes = [next(place for place, bag in enumerate(wide) if frontier <= bag) for frontier in frontiers]
    members: list[list[int]] = [[] for _ in wide]
    for group, home in zip(groups, homes, strict=True):
        members[home] += group
    return [_Bag(bag, tuple(nodes[i] for i in sorted(mine))) for bag, mine in zip(wide, members, strict=True)]


def _acyclic(frontiers: list[frozenset[str]]) -> list[frozenset[str]]:
    """Frontiers without a cycle: those in which one is left are a single one."""
    bits = {name: 1 << place for place, name in enumerate(sorted(frozenset().union(*frontiers)))}
    _, cyclic = reduce_edges([sum(map(bits.__getitem__, frontier)) for frontier in frontiers])
    if not cyclic:
        return frontiers
    core = frozenset().union(*(frontiers[place] for place in cyclic))
    return [core, *(frontier for frontier in frontiers if not frontier <= core)]


def _tree(bags: list[_Bag], inputs: frozenset[str]) -> Iterator[tuple[_Bag, int]]:
    """A join tree of the bags from the one with most inputs down, each with the number of its parent, -1 for the first.

    It is a spanning tree in which neighbours have as many variables in common as possible: if there is a join tree, all
    such trees are (Bernstein and Goodman, 1981).
    """
    left = sorted(bags, key=lambda bag: -sum(not inputs.isdisjoint(node.schema) for node in bag.nodes))
    done = [left.pop(0)]
    yield done[0], -1
    while left:
        pairs = [(len(above.variables & bag.variables), above, bag) for above in done for bag in left]
        _, above, bag = max(pairs, key=itemgetter(0))
        left.remove(bag)
        done.append(bag)
        yield bag, done.index(above)
