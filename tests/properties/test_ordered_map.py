"""The ordered map on both backends, against sorted containers: ranks, windows, sums, commits and rollbacks."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sortedcontainers import SortedDict  # type: ignore[import-untyped]

from ivme import _kernel
from ivme.engine.codes.domains import Domains
from ivme.engine.codes.native_dictionary import native_domains
from ivme.engine.native_backend import native_columns
from ivme.engine.ordered import NO_LIMIT, OrderedColumn, OrderedMap, Ties, Window, place_keys
from ivme.engine.reference.backend import PureBackend
from ivme.query.types import parse_type
from tests.example_counts import examples

Row = tuple[Any, ...]

VALUES = {
    "int": st.integers(-3, 3) | st.sampled_from([-(2**63) + 2, 2**63 - 1]),
    "float": st.sampled_from([-1e300, -0.5, 0.0, 0.5, 3.0, float("inf")]),
    "string": st.sampled_from(["", "a", "aa", "b", "é", "prefix-of-8", "prefix-of-9", "\U0001f600", "z" * 300]),
    "bool": st.booleans(),
    "date": st.sampled_from([datetime.date(1, 1, 1), datetime.date(2024, 2, 29), datetime.date(9999, 12, 31)]),
    "timestamp": st.sampled_from([datetime.datetime(1969, 12, 31), datetime.datetime(2024, 2, 29, 1, 2, 3, 4)]),
    "decimal(38,2)": st.sampled_from([Decimal(n).scaleb(-2) for n in (-(10**30), -1, 0, 5, 10**18, 10**37)]),
    "binary": st.sampled_from([b"", b"\x00", b"\xff\x00"]),
}
SUMMED = ("int", "bool", "date")


class OrderedMaps(RuleBasedStateMachine):
    """Columns: a group of ints, two columns to order by, an int to sum."""

    make_domains: Any = None

    def make_map(self, groups: int) -> OrderedMap:
        raise NotImplementedError

    @initialize(
        types=st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=2),
        directions=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=2),
        keys=st.integers(1, 2),
        groups=st.integers(0, 1),
    )
    def start(self, types: list[str], directions: list[tuple[bool, bool]], keys: int, groups: int) -> None:
        domains = self.make_domains()
        self.types = ["int", *types, "int"]
        self.domains = [domains.domain(parse_type(name)) for name in self.types]
        given = [OrderedColumn(i + 1, self.domains[i + 1], *directions[i]) for i in range(keys)]
        self.order = place_keys(given, range(groups), self.domains)
        self.groups, self.ordered_by = groups, groups + keys
        self.map = self.make_map(groups)
        self.model: Any = SortedDict(cmp_to_key(self._compare))
        self.saved = dict(self.model)

    def _compare(self, a: Row, b: Row) -> int:
        for column in self.order:
            x, y = a[column.position], b[column.position]
            if x != y:
                if x is None or y is None:
                    return -1 if (x is None) == column.nulls_first else 1
                return -1 if (x < y) != column.descending else 1
        return 0

    def _rows(self, data: st.DataObject) -> list[tuple[Row, int]]:
        row: Any = st.tuples(*(st.none() | VALUES[name] for name in self.types))
        found: Counter[Row] = Counter()
        for _ in range(data.draw(st.integers(1, 12))):
            known = list(self.model)
            if len(known) > 0 and data.draw(st.booleans()):
                each = data.draw(st.sampled_from(known))
                found[each] = data.draw(st.integers(-self.model[each], 2))
            else:
                found[data.draw(row)] += data.draw(st.integers(1, 3))
        return list(found.items())

    def _codes(self, rows: Sequence[Row], positions: Sequence[int] | None = None) -> list[Any]:
        wanted = range(len(self.types)) if positions is None else positions
        return [np.array([self.domains[p].encode_value(row[p]) for row in rows], np.int64) for p in wanted]

    def _decoded(self, columns: list[Any]) -> list[Row]:
        return list(zip(*(d.values(c.tolist()) for d, c in zip(self.domains, columns, strict=True)), strict=True))

    def _window_of(self, group: Row, window: Window) -> Counter[Row]:
        """What is shown of a group, by listing its copies."""
        mine = [row for row, n in self.model.items() for _ in range(n) if row[: self.groups] == group]
        alike = [tuple(row[c.position] for c in self.order[: window.ordered_by]) for row in mine]
        if window.ties == Ties.VALUES:
            there = list(dict.fromkeys(alike))[: window.limit]
            return Counter(row for row, key in zip(mine, alike, strict=True) if key in there)
        end = window.offset + window.limit
        if window.ties == Ties.LIKE_LAST and 0 < window.limit and end < len(mine):
            while end < len(mine) and alike[end] == alike[window.offset + window.limit - 1]:
                end += 1
        return Counter(mine[window.offset : end])

    def _change(self, rows: list[tuple[Row, int]]) -> None:
        for row, weight in rows:
            now = self.model.get(row, 0) + weight
            if now:
                self.model[row] = now
            else:
                self.model.pop(row, None)

    @rule(data=st.data())
    def apply(self, data: st.DataObject) -> None:
        rows = self._rows(data)
        self.map.apply(self._codes([row for row, _ in rows]), np.array([weight for _, weight in rows], np.int64))
        self._change(rows)

    @rule(
        data=st.data(),
        offset=st.integers(0, 4),
        limit=st.integers(0, 5) | st.just(NO_LIMIT),
        ties=st.sampled_from(Ties),
    )
    def apply_shown(self, data: st.DataObject, offset: int, limit: int, ties: Ties) -> None:
        window = Window(0 if ties == Ties.VALUES else offset, limit, ties, self.ordered_by)
        rows = self._rows(data)
        groups = sorted({row[: self.groups] for row, _ in rows}, key=repr)
        before = [self._window_of(group, window) for group in groups]
        columns, weights = self.map.apply_shown(
            self._codes([row for row, _ in rows]), np.array([w for _, w in rows], np.int64), window.packed()
        )
        self._change(rows)
        moved: Counter[Row] = Counter()
        for row, weight in zip(self._decoded(columns), weights.tolist(), strict=True):
            moved[row] += weight
        expected: Counter[Row] = Counter()
        for group, old in zip(groups, before, strict=True):
            expected.update(self._window_of(group, window))
            expected.subtract(old)
        assert {r: n for r, n in expected.items() if n} == {r: n for r, n in moved.items() if n}

    @rule()
    def commit(self) -> None:
        self.map.commit()
        self.saved = dict(self.model)

    @rule()
    def roll_back(self) -> None:
        self.map.roll_back()
        self.model.clear()
        self.model.update(self.saved)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), after=st.booleans())
    def rank(self, data: st.DataObject, after: bool) -> None:
        row = data.draw(st.sampled_from(list(self.model)))
        width = data.draw(st.integers(0, len(self.order)))
        positions = [column.position for column in self.order[:width]]
        (found,) = self.map.ranks(self._codes([row], positions), 1, after).tolist()

        def is_before(other: Row) -> bool:
            for column in self.order[:width]:
                x, y = other[column.position], row[column.position]
                if x != y:
                    return (
                        self._compare(
                            tuple(x if p == column.position else None for p in range(4)),
                            tuple(y if p == column.position else None for p in range(4)),
                        )
                        < 0
                    )
            return after

        assert sum(n for each, n in self.model.items() if is_before(each)) == found

    @rule(offset=st.integers(0, 4), limit=st.integers(0, 5), ties=st.sampled_from(Ties))
    def shown(self, offset: int, limit: int, ties: Ties) -> None:
        window = Window(0 if ties == Ties.VALUES else offset, limit, ties, self.ordered_by)
        groups = sorted({row[: self.groups] for row in self.model}, key=repr)
        spans = self.map.shown(self._codes(groups, range(self.groups)), len(groups), window.packed())
        numbers, columns, copies = self.map.rows(*spans)
        found: list[Counter[Row]] = [Counter() for _ in groups]
        for number, row, n in zip(numbers.tolist(), self._decoded(columns), copies.tolist(), strict=True):
            found[number][row] += n
        assert [self._window_of(group, window) for group in groups] == found
        _, columns, copies = self.map.rows(*self.map.all_shown(window.packed()))
        everything: Counter[Row] = Counter()
        for row, n in zip(self._decoded(columns), copies.tolist(), strict=True):
            everything[row] += n
        assert sum(found, Counter()) == everything

    @rule(data=st.data())
    def totals(self, data: st.DataObject) -> None:
        copies = sum(self.model.values())
        rank = data.draw(st.integers(0, copies))
        (sums,), (known,) = self.map.totals(np.array([rank], np.int64))
        values = [row[3] for row, n in self.model.items() for _ in range(n)][:rank]
        there = [value for value in values if value is not None]
        low, high = sums.tolist()[0]
        assert (sum(there), len(there)) == ((high << 64) + (low % 2**64), known.tolist()[0])

    @invariant()
    def has_the_rows_in_their_order(self) -> None:
        if not hasattr(self, "map"):
            return
        copies = sum(self.model.values())
        assert copies == self.map.copies
        self.map.check()
        _, columns, counts = self.map.rows(np.zeros(1, np.int64), np.array([copies], np.int64))
        assert list(self.model.items()) == list(zip(self._decoded(columns), counts.tolist(), strict=True))


class NativeOrderedMaps(OrderedMaps):
    """Small nodes make high trees."""

    make_domains = staticmethod(native_domains)

    def make_map(self, groups: int) -> OrderedMap:
        return _kernel.OrderedMap(native_columns(self.order), groups, [3], 4)


class PureOrderedMaps(OrderedMaps):
    make_domains = Domains

    def make_map(self, groups: int) -> OrderedMap:
        return PureBackend().ordered_map(self.order, groups, [3])


TestNative = NativeOrderedMaps.TestCase
TestNative.settings = settings(max_examples=examples(120), stateful_step_count=30, deadline=None)
TestPure = PureOrderedMaps.TestCase
TestPure.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
del OrderedMaps
