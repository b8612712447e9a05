"""Random readers of several branches over hand-filled maps, and what they should find, by nested loops in Python.

The maps of a branch have the input P in front. Its loops find A and B with or without a context, in one segment or in
two; counts may be negative, so that rows of different branches cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from ivme.engine.backend import exact_sums, listed
from ivme.engine.ingest.feed import Feed, float_code
from ivme.engine.native_backend import NativeBackend
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime.view_readers import point
from ivme.plan.ir import program as ir
from ivme.query.rule import parse_rule

ONE = Fraction(1)
FORMS: dict[str, Callable[[Any], int]] = {"code": int, "int": int, "float": float_code}
INPUT, OUTPUTS = "P", ("A", "B")
KEY = (INPUT, *OUTPUTS)

Entries = dict[tuple[int, ...], tuple[int, int]]
"""The entries of a map: the count and the sum of each tuple."""


@dataclass(frozen=True, slots=True)
class Part:
    """A map of a branch: its columns behind the input, and what is in it."""

    schema: tuple[str, ...]
    entries: Entries
    sums: bool = False


@dataclass(frozen=True, slots=True)
class BranchSpec:
    """A branch: the maps that it multiplies, the loops that find their variables, and where those are cut."""

    parts: tuple[Part, ...]
    cut: bool
    guard: frozenset[int] | None
    """The inputs that its guard lets pass; None if it has no guard. For others the last map has no entries, as a guard
    only saves the vain search for a component that is empty."""


@dataclass(frozen=True, slots=True)
class UnionSpec:
    """A reader: its branches, the type of the sums or "", and whether no row is in two branches or twice in one."""

    branches: tuple[BranchSpec, ...]
    slot: str
    disjoint: bool

    def expected(self, given: int) -> dict[tuple[int, ...], tuple[int, int]]:
        """The rows of a request, by nested loops."""
        total: dict[tuple[int, ...], tuple[int, int]] = {}
        for branch in self.branches:
            for row, (count, sum_) in self.joined(branch, given):
                old = total.get(row, (0, 0))
                total[row] = (old[0] + count, old[1] + sum_)
        return {row: payload for row, payload in total.items() if payload[0]}

    def joined(self, branch: BranchSpec, given: int) -> list[tuple[tuple[int, ...], tuple[int, int]]]:
        """Each way to find a row, with its payload."""
        found: list[tuple[dict[str, int], tuple[int, int]]] = [({INPUT: given}, (1, 0))]
        for part in branch.parts:
            longer = []
            for known, (c, s) in found:
                for key, (d, t) in part.entries.items():
                    names = dict(zip((INPUT, *part.schema), key, strict=True))
                    if all(known.get(name, value) == value for name, value in names.items()):
                        longer.append((known | names, (c * d, c * t + d * s)))
            found = longer
        return [((known["A"], known["B"]), payload) for known, payload in found]


SHAPES: dict[str, tuple[tuple[tuple[str, ...], ...], bool]] = {
    "flat": ((("A", "B"),), False),
    "context": ((("X", "A", "B"),), False),
    "two loops": ((("X", "A"), ("X", "B")), False),
    "two segments": ((("X", "A"), ("A", "Y", "B")), True),
    "a product": ((("X", "A"), ("Y", "B")), True),
    "a context alone": ((("X",), ("A", "B")), True),
}

values = st.sampled_from([0, 1, 2, 3, 3, 2**40, -5])
counts = st.sampled_from([1, 1, 1, 2, 3, -1, -2])


def entries(width: int, sums: bool) -> st.SearchStrategy[Entries]:
    keys = st.tuples(*([st.integers(0, 2)] + [values] * width))
    payloads = st.tuples(counts, st.integers(-5, 5) if sums else st.just(0))
    return st.dictionaries(keys, payloads, max_size=12).map(
        lambda found: {key: (count, count * value) for key, (count, value) in found.items()}
    )


@st.composite
def branches(draw: Any, slot: str) -> BranchSpec:
    schemas, cut = SHAPES[draw(st.sampled_from(sorted(SHAPES)))]
    summed = [bool(slot) and i == len(schemas) - 1 for i in range(len(schemas))]
    parts = [Part(schema, draw(entries(len(schema), sums)), sums) for schema, sums in zip(schemas, summed, strict=True)]
    return guarded(BranchSpec(tuple(parts), cut, draw(st.none() | st.frozensets(st.integers(0, 2)))))


def guarded(branch: BranchSpec) -> BranchSpec:
    """The branch without what its guard would keep from being found."""
    *others, last = branch.parts
    guard = branch.guard
    left = {key: each for key, each in last.entries.items() if guard is None or key[0] in guard}
    return replace(branch, parts=(*others, replace(last, entries=left)))


@st.composite
def unions(draw: Any) -> UnionSpec:
    slot = draw(st.sampled_from(["", "i128", "f64", "d192"]))
    if draw(st.sampled_from([False, False, True])):
        return UnionSpec(tuple(_separate(draw, slot, i) for i in range(draw(st.integers(1, 3)))), slot, True)
    return UnionSpec(tuple(draw(st.lists(branches(slot), min_size=1, max_size=3))), slot, False)


def _separate(draw: Any, slot: str, number: int) -> BranchSpec:
    """A branch whose rows no other has."""
    found = draw(entries(2, bool(slot)))
    mine: Entries = {(given, 10 * number + a, b): payload for (given, a, b), payload in found.items()}
    guard = draw(st.none() | st.frozensets(st.integers(0, 2)))
    return guarded(BranchSpec((Part(("A", "B"), mine, bool(slot)),), False, guard))


class Built:
    """A reader on one of the backends: `all` enumerates, `one` gives the payloads of single rows."""

    def __init__(self, backend: str, spec: UnionSpec) -> None:
        self.spec = spec
        self.backend: Any = NativeBackend(7) if backend == "native" else PureBackend()
        self.slots = [spec.slot] if spec.slot else []
        made = tuple(self._branch(number, branch) for number, branch in enumerate(spec.branches))
        slots = (("exact_sum", "X"),) if spec.slot else ()
        inputs = ((INPUT, INPUT),)
        whole = ir.Enumeration(inputs, OUTPUTS, slots, (), (), branches=made, disjoint=spec.disjoint)
        self.backend.set_reader("all", whole, self.slots)
        self.backend.set_reader("one", point(whole), self.slots)

    def _branch(self, number: int, branch: BranchSpec) -> ir.Branch:
        reads: list[ir.Read] = []
        loops: list[ir.Loop] = []
        known = [INPUT]
        for i, part in enumerate(branch.parts):
            schema = (INPUT, *part.schema)
            new = tuple(variable for variable in part.schema if variable not in known)
            name = f"M{number}.{i}"
            self._map(name, schema, part, [tuple(v for v in schema if v not in new), *self._asked(schema, reads)])
            reads.append(ir.Read(name, schema))
            loops.append(ir.Loop(reads[-1], new))
            known += new
        segments: tuple[ir.Segment, ...] = (ir.Segment(tuple(loops), OUTPUTS),)
        if branch.cut:
            keep = tuple(variable for variable in loops[0].new if variable in OUTPUTS)
            segments = (ir.Segment(tuple(loops[:1]), keep), ir.Segment(tuple(loops[1:]), OUTPUTS))
        return ir.Branch(segments, tuple(reads), self._probe(reads), self._guard(number, branch))

    def _asked(self, schema: tuple[str, ...], before: list[ir.Read]) -> list[tuple[str, ...]]:
        """The key by which a probe asks for a map, after those before it."""
        known = {*KEY, *(variable for read in before for variable in read.variables)}
        return [tuple(variable for variable in schema if variable in known)]

    def _map(self, name: str, schema: tuple[str, ...], part: Part, keys: Iterable[tuple[str, ...]]) -> None:
        indexes = []
        for key in dict.fromkeys(keys):
            columns = tuple(i for i, variable in enumerate(schema) if variable in key)
            rest = tuple(i for i, variable in enumerate(schema) if variable not in key)
            indexes += [ir.Index(columns, rest)] if rest else []
        declared = ir.Map(name, schema, "view", ONE, sums=part.sums, indexes=tuple(indexes))
        self.backend.install([declared], self.slots, {})
        self.fill(name, schema, part)

    def fill(self, name: str, schema: tuple[str, ...], part: Part) -> None:
        """Adds entries to a map: a row for each, with the count as its weight."""
        names = (*schema, "V")
        atom = parse_rule(f"Q({', '.join(names)}) = R({', '.join(names)})").atoms[0]
        lifts = (ir.Lift("sum", len(schema)),) if part.sums else ()
        source = ir.Source(atom, tuple(f"_{i}" for i in range(1, len(names) + 1)), names, lifts=lifts)
        steps = [ir.Load("d", source), ir.Project("p", "d", schema), ir.Add("p", name)]
        feed: Feed = self.backend.set_trigger("fill", steps, self.slots)["R"]
        rows = [(*key, sum_ // count, count) for key, (count, sum_) in part.entries.items()]
        columns = []
        for column in feed.columns:
            place = int(str(column.expression).strip('"_')) - 1
            columns.append(np.array([self._code(column.form, row[place]) for row in rows], np.int64))
        self.backend.run("fill", {"R": (columns, np.array([row[-1] for row in rows], np.int64))})
        self.backend.drop_trigger("fill")

    @staticmethod
    def _code(form: str, value: int) -> int:
        if form == "low":
            return value
        return -(value < 0) if form == "high" else FORMS[form](value)

    def _probe(self, reads: list[ir.Read]) -> tuple[ir.Step, ...]:
        atom = parse_rule("Q(P, A, B) = rows(P, A, B)").atoms[0]
        steps: list[ir.Step] = [ir.Load("d0", ir.Source(replace(atom, relation=ir.ROWS), ("_1", "_2", "_3"), KEY))]
        schema: tuple[str, ...] = KEY
        for i, read in enumerate(reads):
            schema += tuple(variable for variable in read.variables if variable and variable not in schema)
            steps.append(ir.Join(f"d{i + 1}", f"d{i}", (read,), schema, ONE))
        return (*steps, ir.Project("sum", f"d{len(reads)}", KEY), ir.Emit("sum", "answer"))

    def _guard(self, number: int, branch: BranchSpec) -> tuple[tuple[ir.Loop, ...], ...]:
        """Two loops: for each input that may pass a Z, and behind it a W."""
        if branch.guard is None:
            return ()
        first = Part(("Z",), {(given, z): (1, 0) for given in range(3) for z in range(2)})
        second = Part(("Z", "W"), {(given, 1, 7): (1, 0) for given in branch.guard})
        loops = []
        for name, part, new in ((f"G{number}", first, ("Z",)), (f"H{number}", second, ("W",))):
            schema = (INPUT, *part.schema)
            self._map(name, schema, part, [tuple(v for v in schema if v not in new)])
            loops.append(ir.Loop(ir.Read(name, schema), new))
        return (tuple(loops),)

    # Ways of reading

    def read(self, given: int, size: int, *, whole: bool = False) -> list[Any]:
        """A request block by block."""
        cursor, found = self.backend.open("all", (given,), whole=whole), []
        while len((block := cursor.next_block(size))[1]):
            assert whole or len(block[1]) <= size
            found += rows_of(block)
        return found

    def request(self, given: int, limit: int) -> list[Any] | None:
        answer = self.backend.request("all", (given,), limit)
        if answer is None:
            return None
        columns, n, sums, _ = answer
        shown = [exact_sums(each) for each in sums] or [[0] * len(n)]
        return list(zip(zip(*columns, strict=True), zip(n, map(whole_number, shown[0]), strict=True), strict=True))

    def many(self, given: list[int]) -> list[tuple[int, Any]]:
        numbers, block = self.backend.request_many("all", [np.array(given, np.int64)])
        return list(zip(numbers.tolist(), rows_of(block), strict=True))

    def points(self, keys: list[tuple[int, ...]]) -> dict[int, tuple[int, int]]:
        """The payloads of given rows, by their places."""
        columns = [np.array([key[i] for key in keys], np.int64) for i in range(len(KEY))]
        numbers, (_, n, sums, _) = self.backend.request_many("one", columns)
        shown = [exact_sums(each) for each in sums] or [[0] * len(n)]
        return dict(zip(numbers.tolist(), zip(n.tolist(), map(whole_number, shown[0]), strict=True), strict=True))


def rows_of(block: Any) -> list[Any]:
    """The rows of a block with their counts and sums."""
    columns, n, _, _ = listed((block[0], block[1], [], []))
    shown = [exact_sums(each) for each in block[2]] or [[0] * len(n)]
    return list(zip(zip(*columns, strict=True), zip(n, map(whole_number, shown[0]), strict=True), strict=True))


def whole_number(total: Any) -> int:
    """A sum, of floats the rounded one: all values here are whole and small."""
    return int(float(total)) if not isinstance(total, int) else total
