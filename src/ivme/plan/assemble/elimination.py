"""The stages in which a delta is joined with other leaves: variables are summed away as soon as nothing needs them.

A change fixes the variables of its row, a request those of its inputs. What is left of the query is evaluated inside
out: each stage joins the leaves that lie within a few more variables, and sums away those that neither the result nor a
later leaf has. So the delta of a 6-cycle walks along a path, five sparse vectors one after the other, O(N), where one
join of all tables would visit every path, O(N²) (PLANS.md, section 3).

The stages are a path decomposition of the residual query that begins at the changed row. The best one is found by a
search over the sets of variables that are known: least greatest exponent, then fewest stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ivme.budget import spend
from ivme.plan.assemble.blueprint import Leaf
from ivme.plan.assemble.join_size import JoinSizes
from ivme.plan.assemble.leaves import Leaves
from ivme.structure.hypergraph import Edge

Stages = tuple[tuple[Leaf, ...], ...]

MOST_BLOCKS = 12
"""Up to how many groups of variables the best stages are sought; beyond that, the given ones are taken."""

_WIDE_STAGES = 7
"""Up to how many groups of variables a stage may bring any number of them; beyond that, two."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is known before the first stage: the row of an atom, the values of a request, or nothing."""

    known: frozenset[str] = frozenset()
    label: str | None = None


class Residuals:
    """What is left of a query's join when the variables of a change are fixed, and how it is evaluated."""

    def __init__(self, leaves: Leaves) -> None:
        self._sizes = JoinSizes(dict(leaves.sources), Fraction(1, 2), exponents=True)
        self._edges = {label: Edge(label, frozenset(source.schema)) for label, source in leaves.sources}
        for label, edge in self._edges.items():
            self._sizes.rules[edge] = leaves.dependencies.of(label)

    def eliminated(self, given: Stages, start: Start, kept: Iterable[str]) -> Stages:
        """Stages with a lower exponent than the given ones, if there are; else these.

        Where nothing is known at the start, the stages are those of the whole join, and the first begins with its
        widest leaf.
        """
        wanted = frozenset(kept)
        now = self.exponent(given, start, wanted)
        if now <= 1 or not given:
            return given
        leaves = tuple(leaf for stage in given for leaf in stage)
        if self.size(leaves, start.known | wanted, start) >= now:
            return given
        found = _Search(self, leaves, start, wanted).best(now)
        return found if found and self.exponent(found, start, wanted) < now else given

    def exponent(self, stages: Stages, start: Start, kept: frozenset[str]) -> Fraction:
        """The greatest exponent of given stages."""
        known = start.known
        joined: list[Leaf] = []
        worst = Fraction(0)
        for i, stage in enumerate(stages):
            known = known.union(*(leaf.schema for leaf in stage))
            joined += stage
            worst = max(worst, self.size(joined, known, start))
            known &= kept.union(*(leaf.schema for rest in stages[i + 1 :] for leaf in rest))
        return worst

    def size(self, joined: Iterable[Leaf], variables: frozenset[str], start: Start) -> Fraction:
        """How large the join of some leaves on some variables can be, for one tuple of the start."""
        labels = [*([start.label] if start.label else []), *(leaf.label for leaf in joined)]
        fixed = self._edges[start.label].variables if start.label else start.known
        return self._sizes.exponent(frozenset(map(self._edges.__getitem__, labels)), variables, fixed)


class _Search:
    """A search over sets of known variables, as bitmasks of blocks: variables of the same leaves, kept or not."""

    def __init__(self, residuals: Residuals, leaves: tuple[Leaf, ...], start: Start, kept: frozenset[str]) -> None:
        self._residuals = residuals
        self._leaves = leaves
        self._start = start
        self._kept = kept
        self._steps: dict[tuple[int, int], Fraction] = {}
        blocks: dict[tuple[tuple[int, ...], bool], list[str]] = {}
        for variable in dict.fromkeys(v for leaf in leaves for v in leaf.schema if v not in start.known):
            homes = tuple(i for i, leaf in enumerate(leaves) if variable in leaf.schema)
            blocks.setdefault((homes, variable in kept), []).append(variable)
        self._blocks = [frozenset(block) for block in blocks.values()]
        self._masks = [
            sum(1 << i for i, (homes, _) in enumerate(blocks) if position in homes) for position in range(len(leaves))
        ]

    def best(self, now: Fraction) -> Stages:
        """The best stages with an exponent below the given one; none if there are not, or too many variables.

        Exponents are tried from the least on: most walks are linear, and few sets of variables are within reach then.
        """
        if len(self._blocks) > MOST_BLOCKS:
            return ()
        for halves in range(2, int(2 * now) + 1):
            found = self._within(Fraction(halves, 2))
            if found:
                return found
        return ()

    def _within(self, limit: Fraction) -> Stages:
        """The fewest stages, none of them above the limit; among these the least greatest exponent."""
        whole = (1 << len(self._blocks)) - 1
        found: dict[int, tuple[Fraction, int, Stages]] = {0: (Fraction(0), 0, ())}
        for known in range(whole):
            worst, number, stages = found.get(known, (Fraction(0), -1, ()))
            for after in self._next(known, whole) if number >= 0 else ():
                step = self._step(known, after)
                reached = max(worst, step), number + 1
                if step <= limit and (after not in found or reached < found[after][:2]):
                    found[after] = *reached, (*stages, self._stage(known, after))
        return found[whole][2] if whole in found else ()

    def _next(self, known: int, whole: int) -> Iterator[int]:
        """The sets of variables that a stage may lead to: each new one is in a leaf that it joins."""
        missing = whole & ~known
        at_once = len(self._blocks) if len(self._blocks) <= _WIDE_STAGES else 2
        more = missing
        while more:
            spend(1)
            if more.bit_count() <= at_once or more == missing:
                within = [mask for mask in self._masks if not mask & ~(known | more)]
                if not more & ~sum(1 << i for i in range(len(self._blocks)) if any(m >> i & 1 for m in within)):
                    yield known | more
            more = (more - 1) & missing

    def _stage(self, known: int, after: int) -> tuple[Leaf, ...]:
        """The leaves that a stage joins; the first stage takes those that the change alone decides, too."""
        masks = zip(self._leaves, self._masks, strict=True)
        joined = [leaf for leaf, mask in masks if not mask & ~after and (mask & ~known or not mask | known)]
        return tuple(joined if self._start.known or known else sorted(joined, key=lambda leaf: -len(leaf.schema)))

    def _step(self, known: int, after: int) -> Fraction:
        """The exponent of the join that a stage makes."""
        if (known, after) not in self._steps:
            self._steps[known, after] = self._new_step(known, after)
        return self._steps[known, after]

    def _new_step(self, known: int, after: int) -> Fraction:
        masks = [*zip(self._leaves, self._masks, strict=True)]
        outside = [leaf for leaf, mask in masks if mask & ~known]
        before = self._variables(known) & self._kept.union(*(leaf.schema for leaf in outside))
        joined = [leaf for leaf, mask in masks if not mask & ~after]
        variables = before | self._variables(after & ~known)
        return self._residuals.size(joined, variables, self._start)

    def _variables(self, known: int) -> frozenset[str]:
        return frozenset().union(*(block for i, block in enumerate(self._blocks) if known >> i & 1))
