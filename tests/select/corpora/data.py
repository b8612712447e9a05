"""Small random rows for the tables of a corpus: values repeat, keys meet, one value in ten is NULL."""

from __future__ import annotations

import datetime
from collections import Counter
from decimal import Decimal
from random import Random
from typing import Any

from tests.select.corpora.model import PublicSql

Row = tuple[Any, ...]
_DAY = datetime.datetime(2024, 1, 1)


def schema(columns: dict[str, str]) -> dict[str, str]:
    """The types of the columns, without the values that strings take."""
    return {name: "string" if type_.startswith("string") else type_ for name, type_ in columns.items()}


def row(random: Random, columns: dict[str, str]) -> Row:
    return tuple(_value(random, type_) for type_ in columns.values())


def _value(random: Random, type_: str) -> Any:
    if random.random() < 0.1:
        return None
    kind, *words = type_.split()
    moment = _DAY + datetime.timedelta(days=random.randrange(0, 200, 9), hours=random.randrange(24))
    match kind:
        case "string":
            return random.choice(words)
        case "int":
            return random.randrange(-1, 8)
        case "bool":
            return random.random() < 0.5
        case "date":
            return moment.date()
        case "timestamp":
            return moment
    scale = int(words[0].rstrip(")"))
    return Decimal(random.choice([0, 5, 10, 25, 50, 100])).scaleb(-scale)


class Changes:
    """A stream of batches over the tables of a corpus: for each table the rows that go and those that come."""

    def __init__(self, corpus: PublicSql, names: list[str], seed: int) -> None:
        self.random = Random(seed)
        self.columns = {name: corpus.tables[name] for name in names}
        self.contents: dict[str, Counter[Row]] = {name: Counter() for name in names}

    def batches(self) -> Any:
        """Loads, changes, empties and refills; each is (deleted, inserted), applied to `contents` already."""
        for size, share in ((25, 0.0), (1, 0.0), (4, 0.2), (4, 0.5), (0, 1.0), (12, 0.0), (3, 0.3)):
            deleted = {name: self._some(name, share) for name in self.columns}
            inserted = {name: self._new(name, size) for name in self.columns}
            for name in self.columns:
                self.contents[name] = self.contents[name] - Counter(deleted[name]) + Counter(inserted[name])
            yield deleted, inserted

    def _new(self, name: str, size: int) -> list[Row]:
        """Some tables get many rows, others few, so that keys are missing on either side."""
        return [row(self.random, self.columns[name]) for _ in range(self.random.randint((size + 3) // 4, size))]

    def _some(self, name: str, share: float) -> list[Row]:
        present = list(self.contents[name].elements())
        return self.random.sample(present, round(len(present) * share))
