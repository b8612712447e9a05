"""The values of window functions over rows in their order, by column, as codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from ivme.algebra.exact import ExactSum
from ivme.engine.codes.dictionary import NULL_CODE, Codes
from ivme.engine.codes.domain import Domain
from ivme.engine.float_sums import Floats, frame_sums
from ivme.engine.window_frames import Bounds, Part
from ivme.query.aggregates import AGGREGATES
from ivme.query.sql_values import DECIMALS
from ivme.query.windows import WindowCall

_EXACT = 2**61
_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True)
class Computed:
    """A call, the domains of its column and of its values, and where values are, for messages."""

    call: WindowCall
    given: Domain | None
    shown: Domain
    where: str

    def of(self, part: Part) -> Codes:
        """The values for the rows of a part, as codes."""
        compute = _BY_NAME.get(self.call.function, _aggregated)
        return compute(self, part) if len(part) else np.empty(0, np.int64)

    def column(self, part: Part) -> Codes:
        assert isinstance(self.call.column, int), "it is of a column"
        return part.columns[self.call.column]

    def frame(self, part: Part) -> Bounds:
        assert self.call.frame is not None
        return part.frame(self.call.frame)


# Ranks


def _row_number(_: Computed, part: Part) -> Codes:
    """Of a part whose rows are copies."""
    return _copies_before(part) + 1


def _copies_before(part: Part) -> Codes:
    """How many copies of its partition are before each row."""
    before: Codes = part.copies_before[:-1] - part.copies_before[part.partitions[0]] + part.before[part.numbers]
    return before


def _rank(_: Computed, part: Part) -> Codes:
    return _copies_before(part)[part.peers[0]] + 1


def _dense_rank(_: Computed, part: Part) -> Codes:
    found: Codes = part.groups - part.groups[part.partitions[0]] + 1
    return found


def _size(part: Part) -> Codes:
    start, stop = part.partitions
    return part.copies_before[stop] - part.copies_before[start]


def _percent_rank(computed: Computed, part: Part) -> Codes:
    others = _size(part) - 1
    shares = np.where(others > 0, (_rank(computed, part) - 1) / np.maximum(others, 1), 0.0)
    return _coded_floats(computed, shares)


def _cume_dist(computed: Computed, part: Part) -> Codes:
    passed = part.copies_before[part.peers[1]] - part.copies_before[part.partitions[0]]
    return _coded_floats(computed, passed / _size(part))


def _ntile(computed: Computed, part: Part) -> Codes:
    """The first buckets have one row more than the others, if they cannot be equal."""
    place, size, buckets = _copies_before(part), _size(part), computed.call.number
    small, large = size // buckets, size % buckets
    in_large = large * (small + 1)
    found: Codes = np.where(place < in_large, place // (small + 1), large + (place - in_large) // np.maximum(small, 1))
    return found + 1


def _coded_floats(computed: Computed, values: Any) -> Codes:
    import pyarrow as pa

    return computed.shown.encode(pa.array(values))


# Values of other rows


def _taken(values: Codes, places: Codes, is_there: Any) -> Codes:
    """The values at some places, NULL where there is none."""
    return np.where(is_there, values[np.where(is_there, places, 0)], NULL_CODE)


def _shifted(computed: Computed, part: Part) -> tuple[Codes, Any]:
    """For each row the place that LAG or LEAD reads, and whether it is in the partition."""
    start, stop = part.partitions
    values, number = computed.column(part), computed.call.number
    step = -number if computed.call.function.startswith("lag") else number
    if not computed.call.ignores_nulls:
        places = np.arange(len(part)) + step
        return places, (places >= start) & (places < stop)
    known = np.flatnonzero(values != NULL_CODE)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(values != NULL_CODE)])
    place = np.arange(len(part))
    wanted = before[:-1] - number if step < 0 else before[place + 1] + number - 1
    is_known = (wanted >= 0) & (wanted < len(known))
    places = known[np.where(is_known, wanted, 0)] if len(known) else place
    is_there = is_known & (places >= start) & (places < stop)
    return (places, is_there) if number else (place, np.ones(len(part), bool))


def _shift(computed: Computed, part: Part) -> Codes:
    return _taken(computed.column(part), *_shifted(computed, part))


def _shift_there(computed: Computed, part: Part) -> Codes:
    found: Codes = _shifted(computed, part)[1].astype(np.int64)
    return found


def _first_value(computed: Computed, part: Part) -> Codes:
    first, last = computed.frame(part)
    values = computed.column(part)
    if computed.call.ignores_nulls:
        known = np.append(np.flatnonzero(values != NULL_CODE), len(values))
        first = known[np.searchsorted(known, first)]
    return _taken(values, first, first < last)


def _last_value(computed: Computed, part: Part) -> Codes:
    first, last = computed.frame(part)
    values = computed.column(part)
    if computed.call.ignores_nulls:
        known = np.insert(np.flatnonzero(values != NULL_CODE), 0, -1)
        last = known[np.searchsorted(known, last) - 1] + 1
    return _taken(values, last - 1, first < last)


def _nth_value(computed: Computed, part: Part) -> Codes:
    first, last = computed.frame(part)
    place = first + computed.call.number - 1
    return _taken(computed.column(part), place, place < last)


# Aggregates


def _count(computed: Computed, part: Part) -> Codes:
    first, last = computed.frame(part)
    column = computed.call.column
    if column is None:
        found: Codes = part.copies_before[last] - part.copies_before[first]
        return found + _carried(computed, part, part.before)
    known = np.where(computed.column(part) == NULL_CODE, 0, part.copies)
    return _between(known, first, last) + _carried(computed, part, None)


def _carried(computed: Computed, part: Part, rows: Codes | None) -> Codes:
    """For each row how many values, or `rows`, are before the part and in its frame."""
    if computed.call.frame is None or computed.call.frame.start is not None:
        return np.zeros(len(part), np.int64)
    if rows is None:
        assert isinstance(computed.call.column, int)
        found = part.carried.get(computed.call.column)
        rows = np.zeros(len(part.before), np.int64) if found is None else found[1]
    return rows[part.numbers]


def _between(values: Codes, first: Codes, last: Codes) -> Codes:
    sums = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values)])
    found: Codes = sums[last] - sums[first]
    return found


def _aggregated(computed: Computed, part: Part) -> Codes:
    """SUM, AVG and those of squares, from sums up to the ends of each frame."""
    counts = _count(computed, part)
    assert computed.given is not None
    function = AGGREGATES[computed.call.function]
    first, last = computed.frame(part)
    floats = _float_sums(computed, part, first, last)
    if floats is not None:
        shown = floats if computed.call.function == "sum" else floats / np.maximum(counts, 1)
        return np.where(counts > 0, _coded_floats(computed, shown), NULL_CODE)
    sums = [_sums(computed, part, first, last, is_square=slot == "square") for slot in function.slots[1:]]
    quick = _quick(computed, counts, sums)
    if quick is not None:
        return quick
    given, type_, finish = computed.given.type, computed.shown.type, function.finish
    assert finish is not None
    remembered: dict[Any, int] = {}
    codes = np.full(len(part), NULL_CODE)
    for place, (count, *totals) in enumerate(zip(counts.tolist(), *map(_listed, sums), strict=True)):
        if count:
            key = (count, *totals)
            if key not in remembered:
                value = finish(count, totals, given, type_, computed.where)
                remembered[key] = computed.shown.code_computed(value)
            codes[place] = remembered[key]
    return codes


def _float_sums(computed: Computed, part: Part, first: Codes, last: Codes) -> Floats | None:
    """The sums that SUM and AVG of floats need, rounded; None of others."""
    if computed.given is None or computed.given.type.kind != "float" or computed.call.function not in ("sum", "avg"):
        return None
    values = computed.given.decode(computed.column(part)).fill_null(0.0).to_numpy()
    before = [each if isinstance(each, ExactSum) else ExactSum() for each in _before(computed, part)]
    return frame_sums(values, part.copies, first, last, before, part.numbers)


def _before(computed: Computed, part: Part) -> list[Any]:
    """The sums of what is before each partition of a part, in a frame that begins there: 0 or none for nothing."""
    carried = part.carried.get(computed.call.column)  # type: ignore[arg-type]
    has_start = computed.call.frame is not None and computed.call.frame.start is not None
    return [] if carried is None or has_start else list(carried[0])


def _listed(sums: Any) -> Any:
    return sums.tolist() if isinstance(sums, np.ndarray) else sums


def _quick(computed: Computed, counts: Codes, sums: Sequence[Any]) -> Codes | None:
    """SUM and AVG of small whole numbers, whose codes are the numbers; None for others."""
    if len(sums) != 1 or not isinstance(sums[0], np.ndarray) or not (sums[0] < _EXACT).all():
        return None
    if computed.call.function == "sum":
        return np.where(counts > 0, sums[0], NULL_CODE)
    is_int = computed.given is not None and computed.given.type.kind == "int"
    if computed.call.function != "avg" or not is_int or not (abs(sums[0]) < _EXACT_FLOAT).all():
        return None
    codes = _coded_floats(computed, sums[0] / np.maximum(counts, 1))
    return np.where(counts > 0, codes, NULL_CODE)


def _sums(computed: Computed, part: Part, first: Codes, last: Codes, *, is_square: bool) -> Any:
    """The sum of each frame: an array where all fit 64 bits, else a list of Python's numbers or of exact sums."""
    assert computed.given is not None
    codes, before = computed.column(part), _before(computed, part) or [0]
    known = codes != NULL_CODE
    if computed.given.orders_by_code and computed.given.type.kind != "float":
        values = np.where(known, codes, 0)
        most = (int(abs(values).max()) or 1) ** (2 if is_square else 1)
        if most * int(part.copies.sum()) + max(map(abs, before)) < _EXACT:
            found = _between((values * values if is_square else values) * part.copies, first, last)
            return found if before == [0] else found + np.array(before, np.int64)[part.numbers]
    numbers = _exact_numbers(computed, codes, known, is_square=is_square)
    sums = list(accumulate((n * c for n, c in zip(numbers, part.copies.tolist(), strict=True)), initial=0))
    added = [before[number] if len(before) > 1 or before[0] else 0 for number in part.numbers.tolist()]
    ends = zip(first.tolist(), last.tolist(), added, strict=True)
    return [_difference(sums[high], sums[low]) + more for low, high, more in ends]


def _difference(one: Any, other: Any) -> Any:
    return one + -1 * other if isinstance(other, ExactSum) else one - other if isinstance(one, int) else one


def _exact_numbers(computed: Computed, codes: Codes, known: Any, *, is_square: bool) -> list[Any]:
    """Values as numbers that are added without rounding; nothing for NULL."""
    assert computed.given is not None
    values = computed.given.values(codes.tolist())
    if computed.given.type.kind == "float":
        lift = ExactSum.of_square if is_square else ExactSum.of
        return [lift(value) if there else ExactSum() for value, there in zip(values, known.tolist(), strict=True)]
    scale = computed.given.type.scale
    whole = [
        0 if value is None else int(value) if scale is None else int(value.scaleb(scale, DECIMALS)) for value in values
    ]
    return [each * each for each in whole] if is_square else whole


def _extreme(computed: Computed, part: Part) -> Codes:
    """MIN and MAX, by a table of those of 2^k rows from each on: O(n log n)."""
    first, last = computed.frame(part)
    codes, is_min = computed.column(part), computed.call.function == "min"
    places = _in_order(computed, codes)
    places = np.where(codes == NULL_CODE, len(codes), places) if is_min else np.where(codes == NULL_CODE, -1, places)
    pick = np.minimum if is_min else np.maximum
    levels = [places]
    while 2 ** len(levels) <= len(codes):
        half = 2 ** (len(levels) - 1)
        levels.append(pick(levels[-1][:-half], levels[-1][half:]))
    length = last - first
    level = np.frexp(np.maximum(length, 1))[1] - 1
    best = np.full(len(codes), len(codes) if is_min else -1)
    for number, table in enumerate(levels):
        mine = np.flatnonzero((level == number) & (length > 0))
        best[mine] = pick(table[first[mine]], table[last[mine] - 2**number])
    values = np.empty(len(codes), np.int64)
    values[_in_order(computed, codes)] = codes
    is_there = (best >= 0) & (best < len(codes)) & (length > 0)
    return _taken(values, best, is_there)


def _in_order(computed: Computed, codes: Codes) -> Codes:
    """For each value its place among all, in the order of values; equal ones have one place."""
    assert computed.given is not None
    distinct, inverse = np.unique(codes, return_inverse=True)
    if computed.given.orders_by_code:
        return inverse.reshape(-1).astype(np.int64)
    keys = [computed.given.sort_key(code) for code in distinct.tolist()]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    found: Codes = places[inverse.reshape(-1)]
    return found


_BY_NAME: dict[str, Callable[[Computed, Part], Codes]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shift,
    "lead": _shift,
    "lag_there": _shift_there,
    "lead_there": _shift_there,
    "first_value": _first_value,
    "last_value": _last_value,
    "nth_value": _nth_value,
    "count": _count,
    "min": _extreme,
    "max": _extreme,
}
