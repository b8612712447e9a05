"""What is said about a view whose rows are ordered, or limited, when they are read."""

from __future__ import annotations

from dataclasses import replace

from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir.exponent import bound
from ivme.query.order import Order


def explain_order(name: str, order: Order, rows: Explanation, *, is_followed: bool = False) -> Explanation:
    """The explanation of a view that keeps `rows` and shows them in an order; a block is always followed."""
    notes = [
        f"{order.text}: all rows are kept, and sorted when the view is read",
        "rows that ORDER BY does not tell apart come in the order of all their columns",
    ]
    if not order.is_whole:
        notes.append("where the view is followed, the rows that it shows are found anew in each batch that changes it")
    if is_followed:
        rows = replace(rows, strategy="order", update=bound(1, logs=1))
    return replace(
        rows,
        query=replace(rows.query, name=name),
        reason=f"{rows.reason}; ordered when it is read",
        delay=bound(0, logs=1),
        notes=(*rows.notes, *notes),
    )
