"""What is said about a block of pairs that meet in an inequality: the cost of a changed row of each side."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ivme.plan.assemble.update_costs import TableCost, worst
from ivme.plan.explain.explanation import Explanation
from ivme.plan.explain.union import explain_union
from ivme.plan.ir.exponent import bound
from ivme.query.model import Query
from ivme.query.names import CLOCK
from ivme.query.pairing import Pairing


def explain_pairing(shape: Query, pairing: Pairing) -> Explanation:
    """The explanation of a pairing whose rows are those of `shape`."""
    notes = _asof_notes(pairing) if pairing.first else tuple(_range_note(pairing, place) for place in (0, 1))
    costs = tuple(
        TableCost(relation, cost := bound(rows, logs=1), cost) for relation, rows in partners(pairing).items()
    )
    return replace(
        explain_union(shape),
        query_class="ASOF join" if pairing.first else "inequality join",
        strategy="order",
        reason="both sides are in ordered maps, by what is compared",
        update=worst(costs),
        costs=costs,
        preprocessing=bound(1, logs=1),
        space=bound(1),
        remarks=notes,
    )


def partners(pairing: Pairing) -> dict[str, Fraction]:
    """How many pairs change with one row of each relation, as an exponent of N: a row meets the clock's once."""
    found: dict[str, Fraction] = {}
    sides = (pairing.left, pairing.right)
    for place, side in enumerate(sides):
        is_one = place == 0 if pairing.first else adds_up(pairing, place) or sides[1 - place].relation == CLOCK
        found[side.relation] = max(found.get(side.relation, Fraction(0)), Fraction(0 if is_one else 1))
    return found


def adds_up(pairing: Pairing, place: int) -> bool:
    """Whether the partners of a changed row of a side are added up by the nodes of the other side's map."""
    other = (pairing.right, pairing.left)[place]
    return other.is_added_up and not (place == 0 and len(pairing.comparisons) > 1)


def _range_note(pairing: Pairing, place: int) -> str:
    mine, other = (pairing.left, pairing.right)[:: -1 if place else 1]
    if other.relation == CLOCK:
        found = "O(log N): the clock has one row"
    elif adds_up(pairing, place):
        found = f"O(log N): the nodes of the map of {other.relation} add up its partners"
    elif place == 0 and len(pairing.comparisons) > 1:
        found = (
            f"O(log N), and O(1) for each row of {other.relation} that one of the two comparisons holds for: the other "
            "one is a filter"
        )
    elif all(key is not None for key in mine.of_keys):
        found = (
            f"O(log N), and O(1) for each of its partners in {other.relation}; in place of another row, those between"
        )
    else:
        found = f"O(log N), and O(1) for each of its partners in {other.relation}"
    return f"{'a step of the clock' if mine.relation == CLOCK else f'a changed row of {mine.relation}'}: {found}"


def _asof_notes(pairing: Pairing) -> tuple[str, ...]:
    left, right = pairing.left.relation, pairing.right.relation
    return (
        f"a changed row of {left}: O(log N), to find its partner in {right}",
        f"a changed row of {right}: O(log N), and as much for each row of {left} between it and the next of {right}",
        "of partners that are equally near, the one that comes first in the order of its columns that are read counts",
    )
