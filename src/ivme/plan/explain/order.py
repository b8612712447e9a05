"""What is said about a view whose rows are ordered or limited."""

from __future__ import annotations

from dataclasses import replace

from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir.exponent import bound
from ivme.query.order import Order


def explain_order(name: str, order: Order, rows: Explanation, *, is_block: bool = False) -> Explanation:
    """The explanation of a view that shows `rows` in an order; one that `is_block` is read by other blocks."""
    if order.ranges is not None:
        return _explain_range(name, order, rows)
    is_mapped = not is_ordered_when_read(order, rows, is_block=is_block)
    strategy = "order" if is_block else rows.strategy
    notes = (*rows.remarks, *_costs(order, rows, is_mapped=is_mapped), *_ties(order))
    made = replace(rows, query=replace(rows.query, name=name), strategy=strategy, remarks=notes)
    if not is_mapped:
        return replace(made, reason=f"{rows.reason}; ordered when it is read", delay=bound(0, logs=1))
    reason = f"{rows.reason}; its rows are in an ordered map"
    update = bound(1) if order.changes_many else bound(0, logs=1)
    return replace(made, reason=reason, update=update, costs=(), delay=bound(0))


def is_ordered_when_read(order: Order, rows: Explanation, *, is_block: bool = False) -> bool:
    """Whether a view that shows `rows` maintains no order: its reader pays for it, and an update nothing."""
    is_maintained = not rows.query.input and (is_block or rows.strategy != "recompute")
    return order.ranges is None and not (is_maintained and (order.is_kept or not order.is_whole))


def _explain_range(name: str, order: Order, rows: Explanation) -> Explanation:
    """The explanation of a view whose parameters are the ends of a range."""
    ranges = order.ranges
    assert ranges is not None
    ends = ranges.spans[0].parameters if ranges.spans else []
    given = ", ".join(f":{parameter}" for parameter in (*dict(ranges.equal), *ends))
    found = "O(log N) to find the ends of a request, and O(1) for each row between them"
    if ranges.is_grouped:
        found = "O(log N) to find the ends of a request, and O(1) for each value and group between them"
    elif ranges.is_summed:
        found = (
            "O(log N) to add up a request, by the sums in its nodes; of decimals, O(1) for each value between the ends"
        )
    elif ranges.totals:
        found = "O(log N) to find the ends of a request, and O(1) for each value between them"
    if ranges.items:
        return _explain_row_request(name, order, rows, given)
    if not ranges.spans:
        found = f"O(k + log N) to read the k rows of a request, which are not sorted: {order.text}"
    notes = [f"{given}: an ordered map has all rows by what these are compared with: O(log N) an update, {found}"]
    if len(ranges.spans) > 1:
        filters = ", ".join(f":{name}" for span in ranges.spans[1:] for name in span.parameters)
        notes.append(f"{filters}: a filter on the rows between the ends, which are read")
    notes += [f"{order.text}: the rows of a request are sorted when it is made"] if order.text and ranges.spans else []
    notes += [] if ranges.spans else _ties(order)
    return replace(
        rows,
        query=replace(rows.query, name=name),
        reason=f"{rows.reason}; its rows are in an ordered map",
        update=bound(0, logs=1),
        costs=(),
        delay=bound(0, logs=1),
        remarks=(*rows.remarks, *notes),
    )


def _explain_row_request(name: str, order: Order, rows: Explanation, given: str) -> Explanation:
    """The explanation of a view of window functions whose parameters name the rows."""
    calls = ", ".join(dict.fromkeys(call.text for call in order.windows))
    notes = (
        f"{given}: an ordered map has all rows by what these are compared with, and another one by their windows: "
        "O(log N) an update, and no value of a window is stored",
        f"{calls}: O(log N) for each row of a request, by its position and by the sums in the nodes; sums of floats "
        "and of long decimals are computed from the rows before it, and others from the rows of a frame",
        "rows that ORDER BY does not tell apart come in the order of all their columns",
    )
    reason = f"{rows.reason}; its rows are in two ordered maps"
    made = replace(rows, query=replace(rows.query, name=name), reason=reason, remarks=(*rows.remarks, *notes))
    return replace(made, update=bound(0, logs=1), costs=(), delay=bound(0, logs=1))


def _window_costs(order: Order, rows: Explanation) -> list[str]:
    """What each call costs: by how far a changed row reaches, and by what its value is computed from."""
    made = f"an ordered map has all rows by their windows: O(log N) for each row of {rows.query.name} that changes"
    found = [made]
    for call in order.windows:
        before, after = call.reach
        if call.frame is not None and call.frame.is_of_values:
            rows_changed = "the rows whose frame has a changed one; with a key of floats, its whole partition"
        elif before is None:
            rows_changed = "the whole partition of a changed row is recomputed"
        elif after is None:
            rows_changed = "all rows after a changed one in its partition may change, at O(1) each"
            if call.context(summed=True)[0] is None:
                rows_changed += "; its partition is read from its first row on"
            else:
                rows_changed += ", so a row at its end costs O(log N)"
        else:
            rows_changed = f"{before + after + 1} rows around a changed one, at O(1) each"
        found.append(f"{call.text}: {rows_changed}")
    return list(dict.fromkeys(found))


def _costs(order: Order, rows: Explanation, *, is_mapped: bool) -> list[str]:
    if order.windows:
        return _window_costs(order, rows)
    if is_mapped and order.rank:
        behind = "all rows after it in its group" if order.changes_many else "those after it that are shown, k at most"
        return [
            f"{order.text}: an ordered map has all rows: O(log N) for each row of {rows.query.name} that changes, and "
            f"O(1) for each row whose rank changes: {behind}"
        ]
    if is_mapped:
        shown = "the rows that are shown" if not order.groups else "the rows that are shown of a group"
        return [
            f"{order.text}: an ordered map has all rows: O(log N) an update for each row of {rows.query.name} that "
            f"changes, O(k + log N) to read {shown}, which are k",
            "subscribers get the rows that enter and leave, found at the edges of what is shown",
        ]
    if rows.query.input:
        return [f"{order.text}: the rows of a request are sorted when it is made"]
    found = [f"{order.text}: all rows are stored, and sorted when the view is read"]
    if order.is_whole and not is_mapped:
        found.append(
            'with favour="reads" an ordered map has them: O(log N) an update, O(k + log N) for a page of k rows'
        )
    if not order.is_whole:
        found.append("while it has subscribers, an ordered map has all rows: O(log N) for each changed row")
    return found


def _ties(order: Order) -> list[str]:
    if order.ties == "none" or order.is_whole:
        return ["rows that ORDER BY does not tell apart come in the order of all their columns"]
    if order.ties == "last":
        return ["rows that ORDER BY does not tell apart from the last one are shown, too"]
    return ["the limit counts the values that rows are ordered by"]
