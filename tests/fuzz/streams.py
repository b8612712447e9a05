"""Random streams: views that come and go among batches of inserts and deletes, good ones and bad ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from tests.fuzz.known import is_avoided
from tests.fuzz.model import Model
from tests.fuzz.steps import Change, CreateView, DropView, Follow, Op, Reopen, Step, Unfollow, Verify
from tests.fuzz.values import ALL_POOLS, Row, scaled, value, wrong_value

if TYPE_CHECKING:
    from tests.fuzz.cases import AnyView, TableSpec

_FORMS = ("list", "list", "list", "dicts", "arrow")


class StreamMaker:
    """Makes the steps of a case, with a model at hand so that deletes find rows to delete."""

    def __init__(self, random: Random, tables: Sequence[TableSpec], views: Sequence[AnyView]) -> None:
        self.random = random
        self.tables = {table.name: table for table in tables}
        self.views = views
        self.model = Model(tables)
        used = {relation for view in views for relation in view.relations}
        self.skewed = any(dict(view.options).get("strategy") == "skew" for view in views)
        self.used = [name for name in self.tables if name in used] or list(self.tables)

    def steps(self) -> tuple[Step, ...]:
        steps: list[Step] = []
        waiting = [view.name for view in self.views]
        if self.random.random() < 0.5:
            steps.append(self._load())
        for _ in range(self.random.choice([5, 10, 16])):
            while waiting and self.random.random() < 0.6:
                steps.append(CreateView(waiting.pop(0)))
            steps.append(self._step())
        steps += [CreateView(name) for name in waiting]
        return tuple(steps) + ((self._change(),) if waiting else ())

    def _step(self) -> Step:
        chance = self.random.random()
        name = self.random.choice(self.views).name
        if chance < 0.72:
            return self._change()
        if chance < 0.80:
            return Reopen(self.random.random() < 0.5)
        if chance < 0.88:
            return Follow(name)
        if chance < 0.90:
            return Unfollow(name)
        if chance < 0.96:
            return Verify(name)
        return self._empty() if chance < 0.985 else DropView(name)

    def _load(self) -> Change:
        """Many rows at once, in every table."""
        ops = tuple(self._insert(name, self.random.choice([3, 8, 20, 40])) for name in self.tables)
        return self._kept(Change(ops))

    def _empty(self) -> Change:
        """Everything is deleted that may be."""
        ops = []
        for name, rows in self.model.contents.items():
            table = self.tables[name]
            if rows and not (table.append_only or table.static):
                listed = tuple(rows.elements())
                ops.append(Op("delete", name, listed, (-1,) * len(listed)))
        return self._kept(Change(tuple(ops))) if ops else self._change()

    def _change(self) -> Change:
        if self.random.random() < 0.55:
            return self._kept(Change((self._op(self.random.choice([1, 1, 1, 2, 5, 12, 30])),), batched=False))
        ops = [self._op(self.random.choice([1, 1, 3, 6])) for _ in range(self.random.choice([1, 2, 3, 4]))]
        if self.random.random() < 0.12:
            ops.insert(self.random.randrange(len(ops) + 1), self._bad())
        return self._kept(Change(tuple(ops)))

    def _kept(self, change: Change) -> Change:
        self.model.apply(change)
        return change

    def _op(self, size: int) -> Op:
        name = self.random.choice(self.used)
        table, present = self.tables[name], self.model.contents[name]
        loses = not table.append_only and not (table.static and present)
        if table.static and present and self.random.random() < 0.9:
            movable = [n for n in self.used if not self.tables[n].static]
            name = self.random.choice(movable or self.used)
            table, present = self.tables[name], self.model.contents[name]
            loses = not table.append_only and not table.static
        chance = self.random.random()
        if not loses or not present or chance < 0.5:
            return self._insert(name, size)
        if chance < 0.8:
            return self._delete(name, size, strict=True)
        if chance < 0.9:
            return self._delete(name, size, strict=False)
        return self._apply(name, size)

    def _row(self, name: str) -> Row:
        row = self._any_row(name)
        if self.skewed and self.random.random() < 0.4 and not self.tables[name].primary_key:
            first = self.tables[name].columns[0]
            return (scaled(ALL_POOLS[first.name][2][1], first.type), *row[1:])
        return row

    def _any_row(self, name: str) -> Row:
        table = self.tables[name]
        present = self.model.contents[name]
        if present and not table.primary_key and self.random.random() < 0.15:
            return self.random.choice(list(present))
        keyed = table.primary_key if self.random.random() < 0.95 else ()
        return tuple(value(self.random, c.name, nulls=c.name not in keyed) for c in table.columns)

    def _insert(self, name: str, size: int) -> Op:
        rows = [self._row(name) for _ in range(size)]
        table = self.tables[name]
        if table.primary_key and self.random.random() < 0.9:
            rows = self._fresh(table, rows)
        return Op("insert", name, tuple(rows), (1,) * len(rows), self.random.choice(_FORMS))

    def _fresh(self, table: TableSpec, rows: list[Row]) -> list[Row]:
        """The rows whose keys are new, each once."""
        places = [i for i, c in enumerate(table.columns) if c.name in table.primary_key]
        seen = {tuple(row[i] for i in places) for row in self.model.contents[table.name]}
        fresh = []
        for row in rows:
            key = tuple(row[i] for i in places)
            if key not in seen:
                fresh.append(row)
            seen.add(key)
        return fresh

    def _delete(self, name: str, size: int, *, strict: bool) -> Op:
        present = list(self.model.contents[name].elements())
        rows = self.random.sample(present, min(size, len(present)))
        if not strict or self.random.random() < 0.05:
            rows += [self._row(name) for _ in range(2)]
        return Op("delete" if strict else "discard", name, tuple(rows), (-1,) * len(rows), self.random.choice(_FORMS))

    def _apply(self, name: str, size: int) -> Op:
        left = Counter(self.model.contents[name])
        rows, weights = [], []
        for _ in range(size):
            held = [row for row, count in left.items() if count > 0]
            if held and self.random.random() < 0.5:
                row = self.random.choice(held)
                weight = -self.random.randint(1, left[row])
            else:
                row, weight = self._row(name), self.random.choice([1, 1, 2, 3, 0])
            left[row] += weight
            rows.append(row)
            weights.append(weight)
        return Op("apply", name, tuple(rows), tuple(weights), self.random.choice(_FORMS))

    def _bad(self) -> Op:
        """A change that is refused: a value of the wrong type, a missing column, or a row that is not there."""
        name = self.random.choice(self.used)
        table = self.tables[name]
        good = [self._row(name) for _ in range(2)]
        kind = self.random.choice(["type", "arity", "absent"])
        if kind == "type":
            place = self.random.randrange(len(table.columns))
            row = (*good[0][:place], wrong_value(self.random, table.columns[place].type), *good[0][place + 1 :])
            return Op("insert", name, (good[1], row), (1, 1))
        if kind == "arity":
            return Op("insert", name, (good[1], (*good[0], 1)), (1, 1))
        if table.append_only and is_avoided("append-only net"):
            return Op("insert", name, ((),), (1,))
        return Op("delete", name, (good[0],) * 50, (-1,) * 50)
