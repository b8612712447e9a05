"""A good access-top order where the space of all orders is too large to search.

An order follows from a ranking of the variables: on top of each connected set goes the one of highest rank. The
rankings of some rules of thumb are tried, and the best of them is improved by moving one variable at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from ivme.budget import BudgetSpentError, spend, within
from ivme.plan.order.space import OrderSpace
from ivme.plan.order.variable_order import VariableOrder
from ivme.plan.order.widths import Widths
from ivme.structure.width import bits_of

EFFORT = 60_000
"""How much the improvement may look at, in the units of `OrderSpace.spent` and in placed variables: about half a
second."""

_SHARE = 0.1
"""What the improvement may take of what is left of the budget for planning."""

_Price = tuple[Fraction | int, ...]


def good_order(
    space: OrderSpace, seed: VariableOrder | None, floor: Widths, *, is_best: bool = True
) -> tuple[dict[int, int | None], Widths]:
    """The parent of each block (None for the root) in a good access-top order of a component, and its widths.

    `seed` is an access-top order, if one is known, which has the least widths if it `is_best`; `floor` bounds the
    widths of all orders from below. Where the best start is the seed's or reaches the floor, there is nothing to
    improve.
    """
    starts = [
        _eliminated(space, lambda bit, left: space.measure.covers.number(_bag(space, bit, left))),
        _eliminated(space, lambda bit, left: _bag(space, bit, left).bit_count()),
        sorted(space.tiers, key=lambda bit: (space.tiers[bit], -len(space.below(bit)), bit)),
    ]
    if seed is not None:
        walked = [node.variable for node in seed.walk() if node.variable in space.blocks]
        starts.append(sorted((1 << space.names.index(name) for name in walked), key=space.tiers.__getitem__))
    price, ranking = min((_price(space, ranking), ranking) for ranking in starts)
    if seed is None or not is_best:
        price, ranking = _improved(space, price, ranking, floor)
    return _forest(space, ranking), Widths(Fraction(price[0]), Fraction(price[1]))


def _improved(space: OrderSpace, price: _Price, ranking: list[int], floor: Widths) -> tuple[_Price, list[int]]:
    """Move one variable at a time while it helps and effort is left."""
    found = [(price, ranking)]
    try:
        with within(_SHARE):
            for better in _better(space, price, ranking, floor):
                found[0] = better
    except BudgetSpentError:
        pass
    return found[0]


def _better(space: OrderSpace, price: _Price, ranking: list[int], floor: Widths) -> Iterator[tuple[_Price, list[int]]]:
    """Rankings, each better than the one before, until the floor is reached or the effort is spent."""
    limit, tried = space.spent + EFFORT, 0
    improved = True
    while improved and price[:2] > (floor.dynamic, floor.static):
        improved = False
        for changed in _moves(space, ranking):
            cheaper = _price(space, changed)
            tried += len(ranking)
            if cheaper < price:
                price, ranking, improved = cheaper, changed, True
                yield price, ranking
                break
            if space.spent + tried > limit:
                return


def _bag(space: OrderSpace, bit: int, left: int) -> int:
    """The bag of a variable that is eliminated next, below all that is left."""
    gone = space.everything & ~left
    inside = space.part(bit, gone | bit)
    return space.neighbours(inside) | bit


def _eliminated(space: OrderSpace, badness: Callable[[int, int], Fraction | int]) -> list[int]:
    """A ranking made from below: of the highest tier left, the variable whose bag is least bad goes lowest."""
    left, ranking = space.everything, []
    while left:
        bits = bits_of(left)
        highest = max(space.tiers[bit] for bit in bits)
        lowest = min((bit for bit in bits if space.tiers[bit] == highest), key=lambda bit: (badness(bit, left), bit))
        ranking.append(lowest)
        left &= ~lowest
    return ranking[::-1]


def _moves(space: OrderSpace, ranking: list[int]) -> Iterator[list[int]]:
    """The rankings with one variable moved within its tier, short moves first."""
    for distance in range(1, len(ranking)):
        for start in range(len(ranking)):
            for target in (start - distance, start + distance):
                if 0 <= target < len(ranking) and space.tiers[ranking[start]] == space.tiers[ranking[target]]:
                    changed = [*ranking]
                    changed.insert(target, changed.pop(start))
                    yield changed


def _forest(space: OrderSpace, ranking: list[int]) -> dict[int, int | None]:
    parents: dict[int, int | None] = {}

    def place(inside: int, above: int | None) -> None:
        root = next(bit for bit in ranking if bit & inside)
        parents[root] = above
        for part in space.parts(inside & ~root):
            place(part, root)

    place(space.everything, None)
    return parents


def _price(space: OrderSpace, ranking: list[int]) -> _Price:
    """The widths, the work and the size of a ranking's order."""
    spend(5 * len(ranking))
    dynamic = static = Fraction(0)
    work = size = 0

    def place(inside: int) -> set[int]:
        nonlocal dynamic, static, work, size
        root = next(bit for bit in ranking if bit & inside)
        step = space.step(inside, root)
        fixed = set(step.indicators).union(*(place(part) for part in space.parts(inside & ~root)))
        dynamic = max(dynamic, step.dynamic, step.view.dynamic(step.bag, fixed))
        static = max(static, step.static)
        work, size = work + step.work, size + step.size
        return fixed

    place(space.everything)
    return dynamic, static, work, size
