"""What the blocks of a view cost together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivme.plan.explain.block_costs import Reached
from ivme.plan.explain.block_text import worst
from ivme.plan.explain.explanation import BlockExplanation, Explanation
from ivme.plan.ir.exponent import Bound


def explain_blocks(own: Explanation, blocks: Sequence[BlockExplanation], reached: Reached) -> Explanation:
    """The explanation of a view of several blocks: the bounds are those of all of them, with no lower bound.

    An update costs a block its own bound for each changed row that reaches it.
    """
    costs = reached.table_costs()
    return replace(
        own,
        preprocessing=_largest(reached.preprocessing),
        update=_largest([cost.update for cost in costs]),
        costs=costs,
        space=_largest(reached.space),
        lower_bound=None,
        remarks=own.remarks
        if own.strategy is None
        else tuple(each for each in own.remarks if "lower bound" not in each),
        blocks=tuple(blocks),
    )


def _largest(bounds: Sequence[Bound | None]) -> Bound | None:
    known = [each for each in bounds if each is not None]
    return worst(known) if known else None
