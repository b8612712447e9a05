"""Views over heavy and light parts under streams of updates: answers against the oracle, invariants after each step.

The invariants are those of source 003, section 5.4.3, and of source 000, section 4: ⌊M/4⌋ <= N < M; a heavy key has a
degree of at least M^ε/2 somewhere, a light one of less than 3/2·M^ε everywhere; each leaf holds exactly the tuples of
its HL-signature, so that the parts of a relation add up to it; every view equals its definition over the leaves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from ivme.changes import Changes
from ivme.database import Database
from ivme.engine.codes.dictionary import NULL_CODE
from ivme.engine.runtime.single_row import MOST_SINGLE_ROWS
from ivme.plan.assemble.assemble import Assembly
from ivme.query.model import Query
from ivme.query.parse import parse
from ivme.view import View
from tests import oracle
from tests.databases import BACKENDS, make_database
from tests.invariants import expected_counts, leaf
from tests.random_queries import Update, contents

UNKNOWN = 99
"""A value that no stream has."""


class Twins:
    """One view on both backends, with the contents of its tables as the oracle reads them."""

    def __init__(self, text: str, options: dict[str, Any], filled: list[Update] | None = None) -> None:
        self.databases = [make_database(backend) for backend in BACKENDS]
        tables = parse(text, ()).tables
        self.contents: dict[str, Counter[Any]] = {table.name: Counter() for table in tables}
        for database in self.databases:
            for table in tables:
                database.create_table(table.name, dict.fromkeys(table.column_names, "int"))
        self.views: list[View] = []
        self.feeds: list[tuple[Changes, Counter[Any]]] = []
        self.query = parse(text, self.databases[0].definitions.relations())
        self.apply(filled or [])
        self.views = [db.create_view("the view", text, **{"strategy": "skew", **options}) for db in self.databases]

    def apply(self, steps: list[Update], few: bool = False) -> None:
        """One batch on both; triggers scan nothing unless the base M changes.

        With `few` it takes the single-row path, which is to do the same as if its rows had come one by one.
        """
        few = (
            few
            and sum(abs(weight) for _, _, weight in steps) <= MOST_SINGLE_ROWS
            and all(None not in row for _, row, _ in steps)
        )
        views: Sequence[View | None] = self.views or [None, None]
        for database, view in zip(self.databases, views, strict=True):
            before = counted_scans(database, view)
            if few:
                apply_rows(database, steps, together=database is self.databases[0])
            else:
                apply_to(database, steps)
            if view is not None:
                after = counted_scans(database, view)
                assert before == after or before[1] != after[1], "a trigger scanned a map"
        for relation, row, weight in steps:
            self.contents[relation][row] += weight
            if not self.contents[relation][row]:
                del self.contents[relation][row]

    def follow(self) -> None:
        whole = whole_result(self.query, self.contents)
        self.feeds = [(view.changes(), Counter(whole)) for view in self.views]

    def check(self) -> None:
        """Answers, changes and invariants."""
        for view in self.views:
            check_answers(view, self.query, self.contents)
            check_parts(view, self.contents)
        expected = whole_result(self.query, self.contents) if self.feeds else {}
        for feed, total in self.feeds:
            for change in feed:
                assert change
                assert all(change.values())
                for row, weight in change.items():
                    total[row] += weight
            assert expected == {row: weight for row, weight in total.items() if weight}
        balances = [(b.base, b.epsilons, b.major, b.minor) for b in (balance_of(view) for view in self.views)]
        assert balances[0] == balances[1]

    def empty(self) -> None:
        """Deletes everything that is there."""
        self.apply([(name, row, -n) for name, stored in self.contents.items() for row, n in stored.items()])


def run_stream(
    text: str,
    options: dict[str, Any],
    steps: list[Update],
    batch: int = 1,
    filled: int = 0,
    followed: bool = False,
    every: int = 1,
    few: bool = False,
) -> Twins:
    """Runs a stream; the first `filled` updates are there before the view is. Checks after every n-th batch."""
    twins = Twins(text, options, steps[:filled])
    if followed:
        twins.follow()
    twins.check()
    for number, start in enumerate(range(filled, len(steps), batch)):
        twins.apply(steps[start : start + batch], few)
        if number % every == 0:
            twins.check()
    twins.check()
    twins.empty()
    twins.check()
    for view in twins.views:
        assert not any(view.stats()["maps"].values())
    return twins


def apply_to(database: Database, steps: list[Update]) -> None:
    if len(steps) == 1 and abs(steps[0][2]) == 1:
        relation, row, weight = steps[0]
        (database.insert if weight > 0 else database.delete)(relation, [row])
        return
    with database.batch() as batch:
        for relation, changes in contents(steps).items():
            batch.apply(relation, list(changes), list(changes.values()))


def apply_rows(database: Database, steps: list[Update], *, together: bool) -> None:
    """Row by row, in one batch or in one each."""
    with database.batch() if together else nullcontext(database) as target:
        for relation, row, weight in steps:
            for _ in range(abs(weight)):
                (target.insert if weight > 0 else target.delete)(relation, [row])


def balance_of(view: View) -> Any:
    rebalancer = view.state.group.rebalancer
    assert rebalancer is not None
    return rebalancer.balance


def counted_scans(database: Database, view: View | None) -> tuple[int, int]:
    rebalancer = None if view is None else view.state.group.rebalancer
    return database._runtime.backend.scans, 0 if rebalancer is None else rebalancer.balance.major


def whole_result(query: Query, database: oracle.Database) -> dict[Any, int]:
    """All rows with the values of the inputs in front."""
    if not query.input:
        return oracle.rows(query, database)
    rows: Counter[Any] = Counter()
    for key, multiplicity in oracle.result(query, database).items():
        values = dict(zip(query.input + query.output, key, strict=True))
        rows[(*key[: len(query.input)], *(values[str(column.source)] for column in query.head))] += multiplicity
    return dict(rows)


def check_answers(view: View, query: Query, database: oracle.Database) -> None:
    """Rows of access requests, one by one, all at once and of many requests, and the multiplicities of single rows."""
    values = sorted({v for rows in database.values() for row in rows for v in row if v is not None})[:4]
    requests = [*product([*values, UNKNOWN], repeat=len(query.input))][:40]
    hidden = set(query.output) - {column.source for column in query.head}
    everything: Counter[Any] = Counter()
    for request in requests:
        inputs = dict(zip(query.parameters, request, strict=True))
        expected = oracle.rows(query, database, inputs)
        found: Counter[Any] = Counter()
        for row, multiplicity in view.items(**inputs):
            assert row not in found or hidden, f"{row} is enumerated twice"
            found[row] += multiplicity
        assert expected == found, (str(query), inputs)
        if query.input or not query.aggregates:
            whole = view.to_arrow(**inputs)
            columns = [column.to_pylist() for column in whole.columns]
            assert expected == Counter(zip(*columns, strict=True) if columns else [()] * whole.num_rows)
        for row, multiplicity in found.items():
            everything[(*request, *row)] += multiplicity
        for row in list(expected)[:2]:
            assert expected[row] == view.multiplicity(row, **inputs)
            other = tuple(UNKNOWN for _ in row)
            assert expected.get(other, 0) == view.multiplicity(other, **inputs)
    if query.input:
        asked = {name: [request[i] for request in requests] for i, name in enumerate(query.parameters)}
        table = view.request_many(**asked).to_pylist()
        assert everything == Counter(tuple(row.values()) for row in table)


def check_parts(view: View, database: oracle.Database) -> None:
    """The size invariant, the heavy and the light condition, and every map against its definition."""
    group, query = view.state.group, view.state.typed.query
    (only,) = group.views.values()
    rebalancer, assembly = group.rebalancer, only.assembly
    catalog = assembly.catalog
    assert rebalancer is not None
    base = rebalancer.balance.base
    assert base // 4 <= rebalancer.size < base
    heavy = {p.name: set(stored(view, p.heavy)) for p in rebalancer.partitions}
    for partition, epsilon in zip(rebalancer.partitions, rebalancer.balance.epsilons, strict=True):
        degrees = degrees_of(partition.name, assembly, query, database)
        for key in heavy[partition.name]:
            assert any(reaches(2 * degree[key], base, epsilon) for degree in degrees), (partition.name, key)
        for degree in degrees:
            for key in set(degree) - heavy[partition.name]:
                assert not reaches(Fraction(2, 3) * degree[key], base, epsilon), (partition.name, key)
    wholes = {whole_label(label): replace(source, part=()) for label, source in catalog.sources.items()}
    for declared in assembly.storage.maps():
        if declared.role == "result":  # the sum over all signatures
            declared = replace(declared, atoms=tuple(dict.fromkeys(map(whole_label, declared.atoms))))
        if declared.role != "heavy":
            expected = expected_counts(declared, {**wholes, **catalog.sources}, query, database, heavy)
            assert expected == stored(view, declared.name), declared.name


def whole_label(label: str) -> str:
    """The label of a part's atom."""
    return label.split("[")[0]


def degrees_of(partition: str, assembly: Assembly, query: Query, database: oracle.Database) -> list[Counter[Any]]:
    """For each atom that a partition splits, how many tuples go with each key; of those what nobody needs is summed."""
    found = []
    for label, held in assembly.held.items():
        source = assembly.catalog.sources[label]
        for side in source.part:
            if side.partition == partition and len(held.schema) > len(side.key):
                whole = leaf(replace(source, part=()), query, database)
                places = [source.schema.index(variable) for variable in held.schema]
                tuples = {tuple(row[place] for place in places) for row in whole}
                key = [held.schema.index(variable) for variable in side.key]
                found.append(Counter(tuple(row[place] for place in key) for row in tuples))
    return found


def reaches(degree: int | Fraction, base: int, epsilon: Fraction) -> bool:
    """Whether degree >= base^ε, without rounding."""
    if epsilon.denominator > 100:
        return bool(float(degree) >= float(base) ** float(epsilon))
    return bool(Fraction(degree) ** epsilon.denominator >= Fraction(base) ** epsilon.numerator)


def stored(view: View, name: str) -> dict[Any, int]:
    """The counts of a map, by values."""
    columns, counts = view._runtime.backend.scan(name)
    values = [[None if code == NULL_CODE else code for code in column.tolist()] for column in columns]
    keys = zip(*values, strict=True) if values else [()] * len(counts)
    return dict(zip(keys, counts.tolist(), strict=True))
