"""Every way of reading a view, against the rows that must be there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ivme.view import View
from tests.fuzz import oracle
from tests.fuzz.cases import TableSpec
from tests.fuzz.engines import Engine
from tests.fuzz.known import is_avoided
from tests.fuzz.oracle import arrow_type, comparable
from tests.fuzz.values import POOLS, Row, canonical
from tests.fuzz.views import ViewSpec

PATHS = (
    "items",
    "iterate",
    "to_arrow",
    "count",
    "multiplicity",
    "contains",
    "scalar",
    "weighted",
    "contents",
    "schema",
)
"""The ways of reading; each step takes `items` and two others in turn."""


class Readings:
    """Reads one engine after one step."""

    def __init__(self, engine: Engine, covered: Counter[str], number: int) -> None:
        self.engine = engine
        self.covered = covered
        self.number = number

    def check_table(self, table: TableSpec, expected: Counter[Row]) -> None:
        rows, counts = self.engine.contents(table.name)
        found: Counter[Any] = Counter()
        for row, count in zip(rows.to_pylist(), counts.tolist(), strict=True):
            found[tuple(map(canonical, row.values()))] += count
        wanted: Counter[Any] = Counter()
        for row, count in expected.items():
            wanted[tuple(map(canonical, row))] += count
        self._compare(f"table {table.name}", wanted, found)

    def check_view(self, view: ViewSpec, joined: Sequence[Row]) -> None:
        made = self.engine.view(view.name)
        chosen = {"items", PATHS[self.number % len(PATHS)], PATHS[(self.number * 3 + 1) % len(PATHS)]}
        for inputs in requests(view, joined, self.number):
            expected = oracle.answer(view, joined, inputs)
            for path in PATHS:
                if path in chosen:
                    self._read(path, made, view, inputs, expected)
            missing = any(inputs[each.name] is None for each in view.parameters) or not +expected
            if view.parameters:
                self.covered[f"request:{'nothing there' if missing else 'rows there'}"] += 1
        if view.parameters and self.number % 3 == 0:
            self._many(made, view, joined)

    def check_feed(self, view: ViewSpec, joined: Sequence[Row]) -> None:
        """Changes summed up are the view."""
        if view.name not in self.engine.feeds:
            return
        feed, total = self.engine.feeds[view.name]
        for change in feed:
            for row, weight in comparable(view, change, inputs=True).items():
                total[row] = total.get(row, 0) + weight
            self.covered["read:changes"] += 1
        expected = comparable(view, oracle.whole(view, joined), inputs=True)
        self._compare(f"the changes of {view.name} summed up", expected, {row: n for row, n in total.items() if n})

    def _read(self, path: str, made: View, view: ViewSpec, inputs: Mapping[str, Any], expected: Counter[Row]) -> None:
        self.covered[f"read:{path}"] += 1
        if path == "schema":
            types = [arrow_type(item.type) for item in view.items]
            self._compare(f"the types of {view.name}", list(map(_kind, types)), list(map(_kind, made.schema.types)))
            return
        if path == "count":
            self._compare(f"{view.name}.count({_shown(inputs)})", sum(expected.values()), made.count(**inputs))
            return
        if path == "scalar":
            if len(view.items) == 1 and sum(expected.values()) == 1:
                row = (made.scalar(**inputs),)
                self._compare(
                    f"{view.name}.scalar({_shown(inputs)})", comparable(view, expected), comparable(view, {row: 1})
                )
            return
        if path in ("multiplicity", "contains"):
            self._members(path, made, view, inputs, expected)
            return
        found = _rows(path, made, view, inputs, self.engine)
        if found is None:
            return
        self._compare(f"{view.name}: {path}({_shown(inputs)})", comparable(view, expected), comparable(view, found))

    def _members(
        self, path: str, made: View, view: ViewSpec, inputs: Mapping[str, Any], expected: Counter[Row]
    ) -> None:
        """Whether single rows are there: some that are, and some that are not."""
        if any(item.rounded for item in view.items):
            return
        rows = list(expected)[:3]
        others = [tuple(None for _ in row) for row in rows[:1]]
        others += [tuple(row[::-1]) for row in rows[:1] if len({type(value) for value in row}) == 1]
        for row in [*rows, *others]:
            if any(isinstance(value, float) and value != value for value in row):
                continue
            if path == "multiplicity":
                self._compare(f"{view.name}.multiplicity({row})", expected[row], made.multiplicity(row, **inputs))
            elif not view.parameters:
                self._compare(f"{row} in {view.name}", expected[row] > 0, row in made)

    def _many(self, made: View, view: ViewSpec, joined: Sequence[Row]) -> None:
        """Several requests at once."""
        asked = [inputs for inputs in requests(view, joined, self.number) if None not in inputs.values()]
        unique = {tuple(map(canonical, inputs.values())): inputs for inputs in asked}
        names = [each.name for each in view.parameters]
        columns = {name: [inputs[name] for inputs in unique.values()] for name in names}
        if not unique:
            return
        found: Counter[Row] = Counter(tuple(row.values()) for row in _listed(made.request_many(**columns)))
        expected: Counter[Row] = Counter()
        for inputs in unique.values():
            for row, count in oracle.answer(view, joined, inputs).items():
                expected[(*(inputs[name] for name in names), *row)] += count
        self.covered["read:request_many"] += 1
        self._compare(
            f"{view.name}.request_many({columns})",
            comparable(view, expected, inputs=True),
            comparable(view, found, inputs=True),
        )

    def _compare(self, what: str, expected: Any, found: Any) -> None:
        if expected != found:
            from tests.fuzz.running import Difference

            kind = what.split("(")[0].partition(" ")[0] if what.startswith("table") else "rows"
            raise Difference(
                kind, f"{self.engine.name}, {what}:\n  expected {_short(expected)}\n  found    {_short(found)}"
            )


def requests(view: ViewSpec, joined: Sequence[Row], number: int) -> list[dict[str, Any]]:
    """Values for the parameters: some that are there, and one that is not."""
    if not view.parameters:
        return [{}]
    there = list(dict.fromkeys(row[: len(view.parameters)] for row in joined))
    chosen = [there[(number * 7 + step) % len(there)] for step in range(min(3, len(there)))] if there else []
    names = [each.name for each in view.parameters]
    found = [dict(zip(names, values, strict=True)) for values in chosen]
    absent = {each.name: _absent(view, each.name) for each in view.parameters}
    mixed = [{**found[0], names[-1]: absent[names[-1]]}] if found else []
    return [*found, absent, *mixed]


def _absent(view: ViewSpec, name: str) -> Any:
    """A value of the parameter's type that is in no pool, or at least in few."""
    kind = next(each.expression.type for each in view.parameters if each.name == name).kind
    if kind in ("int", "float"):
        return 77 if kind == "int" else 77.5
    return None if kind in ("bool", "decimal", "binary") else {"string": "nowhere"}.get(kind, _pool(kind))


def _pool(kind: str) -> Any:
    return next(values[-1] for type_, _, values in POOLS.values() if type_ == kind)


def _rows(path: str, made: View, view: ViewSpec, inputs: Mapping[str, Any], engine: Engine) -> Counter[Row] | None:
    found: Counter[Row] = Counter()
    if path == "items":
        for row, count in made.items(**inputs):
            hidden = view.group is not None and is_avoided("hidden groups")
            if row in found and not hidden and not _has_nan(row):
                return Counter({("twice", row): 1})
            found[row] += count
        return found
    if path == "iterate":
        return Counter(made(**inputs))
    if path == "to_arrow":
        return Counter(tuple(row.values()) for row in _listed(made.to_arrow(**inputs)))
    if path == "weighted":
        for batch, counts in engine.weighted(made, inputs):
            for named, count in zip(_listed(batch), counts.tolist(), strict=True):
                found[tuple(named.values())] += count
        return found
    if view.parameters:
        return None
    rows, counts = engine.contents(view.name)
    for named, count in zip(_listed(rows), counts.tolist(), strict=True):
        found[tuple(named.values())] += count
    return found


def _listed(table: Any) -> list[dict[str, Any]]:
    return list(table.to_pylist())


def _has_nan(row: Row) -> bool:
    return any(isinstance(value, float) and value != value for value in row)


def _kind(type_: Any) -> str:
    return f"decimal with {type_.scale} digits" if "decimal" in str(type_) else str(type_)


def _shown(inputs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in inputs.items())


def _short(found: Any) -> str:
    if isinstance(found, dict):
        plain = {tuple(v if v is None else v[1] for v in row): n for row, n in found.items()}
        return str(dict(sorted(plain.items(), key=repr)))[:1500]
    return str(found)[:1500]
