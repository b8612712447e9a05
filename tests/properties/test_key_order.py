"""Tables whose rows come in the order of their keys, for a while: searched up to there, and hashed behind it.

The kernel's own check is that the index has each row, that the first rows are in order, and nothing else.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ivme._kernel import BrokenCheck
from ivme.database import Database
from ivme.errors import DataError
from tests.example_counts import examples
from tests.unit.kernel.test_heap import Table

Key = tuple[int, int]
FAR = st.sampled_from([1, 1, 1, 2, 7, 1_000, 2**40])
"""How far the next key is from the last one: mostly as numbered rows are, and now and then a gap."""


class KeyOrder(RuleBasedStateMachine):
    """A heap of (a, b, value) with the key (a, b), beside a dictionary."""

    @initialize(b_first=st.booleans(), count=st.sampled_from([0, 30, 2_000]))
    def begin(self, b_first: bool, count: int) -> None:
        self.table = Table(3, [1, 0] if b_first else [0, 1])
        self.there: dict[Key, int] = {}
        self.last = (0, 0)
        self.come_in_order(count, 1)

    def ascending(self, count: int, far: int) -> list[Key]:
        keys = []
        for _ in range(count):
            a, b = self.last
            self.last = (a, b + 1) if b < 2 else (a + far, 0)
            keys.append(self.last)
        return keys

    def change(self, gone: list[Key], come: dict[Key, int]) -> None:
        changes = [((*key, self.there[key]), -1) for key in gone]
        self.table.change(changes + [((*key, value), 1) for key, value in come.items()])
        for key in gone:
            del self.there[key]
        self.there |= come

    def come_in_order(self, count: int, far: int) -> None:
        self.change([], {key: hash(key) % 9 for key in self.ascending(count, far)})

    @rule(count=st.sampled_from([1, 2, 40, 1_500]), far=FAR)
    def come(self, count: int, far: int) -> None:
        self.come_in_order(count, far)

    @rule(count=st.sampled_from([1, 40]), data=st.data())
    def come_in_any_order(self, count: int, data: Any) -> None:
        keys = self.ascending(count, 3)
        data.draw(st.randoms(use_true_random=False)).shuffle(keys)
        self.change([], dict.fromkeys(keys, 5))

    def some(self, data: Any, count: int) -> list[Key]:
        chance = random.Random(data.draw(st.integers(0, 2**20)))
        return chance.sample(sorted(self.there), min(count, len(self.there)))

    @rule(count=st.sampled_from([1, 3, 70, 1_400]), data=st.data())
    def go(self, count: int, data: Any) -> None:
        self.change(self.some(data, count), {})

    @rule(count=st.sampled_from([1, 50]), fresh=st.booleans(), data=st.data())
    def are_replaced(self, count: int, fresh: bool, data: Any) -> None:
        gone = self.some(data, count)
        self.change(gone, dict.fromkeys(self.ascending(count, 1) if fresh else gone, 8))

    @rule(data=st.data())
    def come_back(self, data: Any) -> None:
        """A transaction that is taken back: rows went, and others came."""
        self.table.kernel.begin()
        gone, fresh = self.some(data, 60), [*self.ascending(50, 2), (-1, 0)]
        before, last = dict(self.there), self.last
        self.change(gone, dict.fromkeys(fresh, 3))
        self.change([], dict.fromkeys(gone[:10], 4))
        self.table.kernel.roll_back()
        self.there, self.last = before, last

    @rule(at=st.integers(0, 60), twice=st.booleans(), data=st.data())
    def are_refused(self, at: int, twice: bool, data: Any) -> None:
        """A key that is there, or a new one twice, among new ones; nothing of them stays."""
        last = self.last
        keys = self.ascending(60, 1)
        known = [keys[at // 2]] if twice else self.some(data, 1)
        if not known:
            self.last = last
            return
        keys[at:at] = known
        with pytest.raises(BrokenCheck, match="unique"):
            self.table.change([((*key, 1), 1) for key in keys])
        self.last = last

    @invariant()
    def holds_what_it_should(self) -> None:
        if not hasattr(self, "table"):
            return
        self.table.kernel.verify()
        assert Counter((*key, value) for key, value in self.there.items()) == self.table.rows()
        for key in ((-2, 0), (0, 5), (self.last[0] + 1, 0)):
            assert 0 == self.table.kernel.heap_weight(self.table.heap, [*key, 1])


TestKeyOrder = KeyOrder.TestCase
TestKeyOrder.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("threads", [1, 2])
def test_keys_of_strings_are_found_after_their_codes_were_given_again(threads: int) -> None:
    """Codes of new strings come in order, until some are taken back and given to others."""
    with Database(threads=threads) as db:
        db.create_table("t", {"k": "string", "n": "int"}, primary_key=["k"])
        view = db.create_view("v", "SELECT n, COUNT(*) AS c FROM t GROUP BY n")
        there: dict[str, int] = {}
        for turn in range(6):
            rows = {f"{turn}/{i}": i % 3 for i in range(3_000)}
            db.insert("t", list(rows.items()))
            there |= rows
            gone = [key for key in there if int(key.split("/")[1]) % 3] if turn % 2 else list(rows)[:1_000]
            db.delete_keys("t", [(key,) for key in gone])
            for key in gone:
                del there[key]
            db.upsert("t", [(key, 7) for key in list(there)[::50]])
            there |= dict.fromkeys(list(there)[::50], 7)
            with pytest.raises(DataError):
                db.insert("t", [("new", 1), (next(iter(there)), 1)])
            assert there == dict(db.table("t"))
            assert Counter(there.values()) == dict(view)
            view.verify()
