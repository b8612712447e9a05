"""What the payloads of a query's maps carry for its aggregates."""

from __future__ import annotations

from ivme.query.model import RING_AGGREGATES, Query


def payload_slots(query: Query) -> tuple[tuple[str, str], ...]:
    """What payloads carry beside the count: for each argument of a ring aggregate how many of its values are not
    NULL, and their sum if it is asked for."""
    slots: dict[tuple[str, str], None] = {}
    for aggregate in query.aggregates:
        if aggregate.function in RING_AGGREGATES and aggregate.variable is not None:
            slots.setdefault(("count", aggregate.variable))
            if aggregate.function != "count":
                exact = aggregate.function == "exact_sum"
                slots.setdefault(("exact_sum" if exact else "sum", aggregate.variable))
    return tuple(slots)
