"""The stages in which a delta is joined with other leaves: variables are summed away as soon as nothing needs them.

A change fixes the variables of its row, a request those of its inputs. What is left of the query is evaluated inside
out: each stage joins the leaves that lie within a few more variables, and sums away those that neither the result nor a
later leaf has. So the delta of a 6-cycle walks along a path, five sparse vectors one after the other, O(N), where one
join of all tables would visit every path, O(N²).

The stages are a path decomposition of the residual query that begins at the changed row. The best one is found by a
search over the sets of variables that are known: least greatest exponent, then fewest stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from ivme.budget import spend
from ivme.plan.assemble.blueprint import Node, StoredView, referred
from ivme.plan.assemble.join_size import JoinSizes
from ivme.plan.assemble.leaves import Leaves
from ivme.structure.hypergraph import Edge

Stages = tuple[tuple[Node, ...], ...]

MOST_BLOCKS = 12
"""Up to how many groups of variables the best stages are sought; beyond that, the given ones are taken."""

_WIDE_STAGES = 7
"""Up to how many groups of variables a stage may bring any number of them; beyond that, two."""


@dataclass(frozen=True, slots=True)
class Start:
    """What is known before the first stage: the row of an atom, the values of a request, or nothing."""

    known: frozenset[str] = frozenset()
    label: str | None = None


def _labels(node: Node) -> tuple[str, ...]:
    """The atoms that bound the size of a node."""
    inner = referred(node)
    return inner.atoms if isinstance(inner, StoredView) else (inner.label,)


class Residuals:
    """What is left of a query's join when the variables of a change are fixed, and how it is evaluated."""

    def __init__(self, leaves: Leaves) -> None:
        self._sizes = JoinSizes(dict(leaves.sources), Fraction(1, 2), exponents=True)
        self._edges = {label: Edge(label, frozenset(source.schema)) for label, source in leaves.sources}
        for label, edge in self._edges.items():
            self._sizes.rules[edge] = leaves.dependencies.of(label)
        self.is_plain = not any(self._sizes.rules.values())
        """Whether there are no dependencies: then the size of a join follows from which variables its leaves have."""
        self._covers: dict[frozenset[frozenset[str]], Fraction] = {}

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

    def exponent(
        self,
        stages: Stages,
        start: Start,
        kept: frozenset[str],
        found: frozenset[str] = frozenset(),
        before: tuple[Node, ...] = (),
    ) -> Fraction:
        """The greatest exponent of given stages; those `before` them have `found` variables that are not fixed."""
        known = start.known | found
        joined = [*before]
        worst = Fraction(0)
        for i, stage in enumerate(stages):
            known = known.union(*(leaf.schema for leaf in stage))
            joined += stage
            worst = max(worst, self.size(joined, known, start))
            known &= kept.union(*(leaf.schema for rest in stages[i + 1 :] for leaf in rest))
        return worst

    def size(self, joined: Iterable[Node], variables: frozenset[str], start: Start) -> Fraction:
        """How large the join of some leaves on some variables can be, for one tuple of the start."""
        labels = [*([start.label] if start.label else []), *(label for node in joined for label in _labels(node))]
        fixed = self._edges[start.label].variables if start.label else start.known
        edges = frozenset(map(self._edges.__getitem__, labels))
        return (
            self._plain_size(edges, variables - fixed)
            if self.is_plain
            else self._sizes.exponent(edges, variables, fixed)
        )

    def _plain_size(self, edges: frozenset[Edge], variables: frozenset[str]) -> Fraction:
        """The size of a join without dependencies, which follows from what edges have of the variables: many joins of
        a search have that in common."""
        parts = {edge.variables & variables for edge in edges}
        key = frozenset(part for part in parts if not any(part < other for other in parts))
        if key not in self._covers:
            self._covers[key] = self._sizes.exponent(edges, variables)
        return self._covers[key]


class _Search:
    """A search over sets of known variables, as bitmasks of blocks: variables of the same leaves, kept or not."""

    def __init__(self, residuals: Residuals, leaves: tuple[Node, ...], start: Start, kept: frozenset[str]) -> None:
        self._residuals = residuals
        self._leaves = leaves
        self._is_plain = residuals.is_plain and all(len(_labels(leaf)) == 1 for leaf in leaves)
        self._start = start
        self._kept = kept
        self._steps: dict[tuple[int, int], Fraction] = {}
        self._sizes: dict[tuple[int, frozenset[int]], Fraction] = {}
        blocks: dict[tuple[tuple[int, ...], bool], list[str]] = {}
        for variable in dict.fromkeys(v for leaf in leaves for v in leaf.schema if v not in start.known):
            homes = tuple(i for i, leaf in enumerate(leaves) if variable in leaf.schema)
            blocks.setdefault((homes, variable in kept), []).append(variable)
        self._blocks = [frozenset(block) for block in blocks.values()]
        self._masks = [
            sum(1 << i for i, (homes, _) in enumerate(blocks) if position in homes) for position in range(len(leaves))
        ]
        self._kept_mask = sum(1 << i for i, (_, is_kept) in enumerate(blocks) if is_kept)
        own = {homes[0]: 1 << i for i, (homes, is_kept) in enumerate(blocks) if len(homes) == 1 and not is_kept}
        self._private = [own.get(position, 0) for position in range(len(leaves))]

    def best(self, now: Fraction) -> Stages:
        """The best stages with an exponent below the given one; none if there are not, or too many variables.

        Exponents are tried from the least on that the result allows: most walks are linear, and few sets of variables
        are within reach then.
        """
        if len(self._blocks) > MOST_BLOCKS:
            return ()
        least = self._residuals.size(self._leaves, self._start.known | self._kept, self._start)
        for halves in range(max(2, ceil(2 * least)), int(2 * now) + 1):
            found = self._within(Fraction(halves, 2))
            if found:
                return found
        return ()

    def _within(self, limit: Fraction) -> Stages:
        """The fewest stages, none of them above the limit; among these the least greatest exponent."""
        whole = (1 << len(self._blocks)) - 1
        found: dict[int, tuple[Fraction, int, Stages]] = {0: (Fraction(0), 0, ())}
        for known in range(whole):
            if known not in found:
                continue
            worst, number, stages = found[known]
            alone = self._alone(known, limit)
            for after in self._next(known, whole) if alone is None else (alone,):
                if after in found and found[after][1] <= number and found[after][0] <= worst:
                    continue
                step = self._step(known, after)
                reached = max(worst, step), number + 1
                if step <= limit and (after not in found or reached < found[after][:2]):
                    found[after] = *reached, (*stages, self._stage(known, after))
        return found[whole][2] if whole in found else ()

    def _alone(self, known: int, limit: Fraction) -> int | None:
        """Of many groups of variables, one that a stage may bring on its own before all others: a single leaf has it,
        it is summed away at once, and what is joined later is no larger for that."""
        if len(self._blocks) <= _WIDE_STAGES:
            return None
        for mask, private in zip(self._masks, self._private, strict=True):
            after = known | mask
            if private and mask & ~known == private and self._step(known, after) <= limit:
                return after
        return None

    def _next(self, known: int, whole: int) -> Iterator[int]:
        """The sets of variables that a stage may lead to: each new one is in a leaf that it joins."""
        missing = whole & ~known
        number, is_wide = missing.bit_count(), len(self._blocks) <= _WIDE_STAGES
        spend(2**number if is_wide else number * (number + 1) // 2)
        for more in _subsets(missing) if is_wide else _pairs(missing):
            after, covered = known | more, 0
            for mask in self._masks:
                if not mask & ~after:
                    covered |= mask
            if not more & ~covered:
                yield after

    def _stage(self, known: int, after: int) -> tuple[Node, ...]:
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
        needed = self._kept_mask
        for mask in self._masks:
            needed |= mask if mask & ~known else 0
        found = (known & needed) | (after & ~known)
        joined = [(leaf, mask) for leaf, mask in zip(self._leaves, self._masks, strict=True) if not mask & ~after]
        key = found, frozenset([mask & found for _, mask in joined])
        if not self._is_plain or key not in self._sizes:
            leaves = [leaf for leaf, _ in joined]
            self._sizes[key] = self._residuals.size(leaves, self._variables(found), self._start)
        return self._sizes[key]

    def _variables(self, known: int) -> frozenset[str]:
        return frozenset().union(*(block for i, block in enumerate(self._blocks) if known >> i & 1))


def _subsets(bits: int) -> Iterator[int]:
    """The sets of some bits, but for the empty one."""
    more = bits
    while more:
        yield more
        more = (more - 1) & bits


def _pairs(bits: int) -> Iterator[int]:
    """The sets of one or two bits, and of all."""
    single = [1 << i for i in range(bits.bit_length()) if bits >> i & 1]
    if len(single) > 2:
        yield bits
    for i, one in enumerate(single):
        yield one
        yield from (one | other for other in single[:i])
