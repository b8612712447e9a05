"""The `Program`: the one printable form that every strategy compiles to and every runtime executes.

A program knows nothing about queries. It declares *maps* (from tuples to payloads, with indexes) and, for each
relation, a *trigger*: straight-line steps over named deltas. A delta is a small relation, tuples with payloads,
written `d(A, B)`; a step makes a new delta from an earlier one or adds a delta to a map. The life of a change:

1. `Load` reads the changed rows of a relation as a delta over an atom's variables.
2. `Join` extends a delta by the matching entries of one or more maps, one block of variables at a time; where
   several maps know the block it iterates the one with the fewest matches and looks up the rest (worst-case
   optimal, source 003 section 4.1.3).
3. `Project` sums payloads away to fewer variables.
4. `Distinct` does the same and forgets the payloads: each tuple counts once.
5. `Exists` replaces a delta by the changes of presence that it would cause in a map: ±1 where an entry appears
   or disappears, nothing elsewhere. Indicator projections, DISTINCT and marks travel along such edges.
6. `Filter` keeps the tuples whose key is, or is not, in a map: routing by heavy and light parts.
7. `Add` adds a delta to a map.
8. `Watch` notes the keys of a delta whose degree no longer fits their side of a partition.

With partitions a program also has `Move`s, which take keys from one side to the other, and its rows may come from
several `Branch`es, whose answers overlap.

`Read.pending` names a delta that its map does not hold yet and that this read must see: with self-joins,
occurrences before the one being propagated read the new contents and those after it the old.
The reference with an example is docs/program.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ivme.plan.ir.steps import (
    Add,
    Degree,
    Distinct,
    Emit,
    Exists,
    Filter,
    Index,
    Join,
    Lift,
    Load,
    Map,
    Partition,
    Project,
    Read,
    Rename,
    Scan,
    Side,
    Source,
    Step,
    Watch,
)
from ivme.query.percentile import read_percentile

__all__ = [
    "KEYS",
    "NO_KEYS",
    "ROWS",
    "Add",
    "Branch",
    "Degree",
    "Distinct",
    "Emit",
    "Enumeration",
    "Exists",
    "Extreme",
    "Filter",
    "GradualMove",
    "Index",
    "Join",
    "Lift",
    "Load",
    "Loop",
    "Map",
    "Move",
    "Partition",
    "Piece",
    "Program",
    "Project",
    "Read",
    "Rename",
    "Scan",
    "Segment",
    "Side",
    "Source",
    "Step",
    "Trigger",
    "Watch",
    "is_listed",
    "long_guards",
    "single_guards",
]


@dataclass(frozen=True, slots=True)
class Move:
    """Takes keys from the light side of a partition to the heavy one (`rising`), or back.

    The steps load the keys from two pseudo-relations, `KEYS` with weight 1 and `NO_KEYS` with weight -1. `steps`
    carry the views along, `leaf_steps` move the rows only, before views are built. With `gradual` keys can also move
    little by little.
    """

    partition: str
    rising: bool
    steps: tuple[Step, ...]
    leaf_steps: tuple[Step, ...]
    gradual: GradualMove | None = None


@dataclass(frozen=True, slots=True)
class GradualMove:
    """How a key changes sides row by row, where a partition splits one leaf only and all parts meet in some view.

    `flip` sends the key's new rows to the other side; `rows` finds those that are still on the old one; `steps` move
    given rows, which they load as keys that have all columns of the leaf.
    """

    flip: tuple[Step, ...]
    rows: Enumeration
    steps: tuple[Step, ...]


KEYS, NO_KEYS = "keys", "no keys"
"""The pseudo-relations that a move loads."""

ROWS = "rows"
"""The pseudo-relation that a probe loads: tuples over the inputs and outputs, as the query names them."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """What to do when a relation changes."""

    relation: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A view iterator (source 003, section 4.2): yields the `new` variables, or checks the known ones."""

    read: Read
    new: tuple[str, ...]

    def __str__(self) -> str:
        return f"for {', '.join(self.new)} in {self.read}" if self.new else f"if {self.read}"


@dataclass(frozen=True, slots=True)
class Extreme:
    """MIN, MAX, COUNT DISTINCT, a percentile or all values of `variable` in the group at hand, from a view's index."""

    function: str
    variable: str
    read: Read

    def __str__(self) -> str:
        return f"{self.function}({self.variable}) from {self.read}"


def is_listed(function: str) -> bool:
    """Whether what is read of a group are values with their counts, and not a single one."""
    return function == "values" or read_percentile(function) is not None


@dataclass(frozen=True, slots=True)
class Segment:
    """Loops that find tuples over `keep`, some of them several times: bound variables that no later loop needs."""

    loops: tuple[Loop, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Tuples over `schema`, the inputs first, of which rows are made: each agrees with a tuple of the piece with number
    `parent` on the variables that both have. The first has no parent, and -1 in its place; others come after theirs."""

    schema: tuple[str, ...]
    parent: int

    def __str__(self) -> str:
        return f"({', '.join(self.schema)})"


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several ways to find rows: a skew-aware view tree (source 003, section 5.3).

    Its loops may run over bound variables, too, and then find a row several times; each segment begins with the
    distinct tuples of the one before. `probe` are steps from a delta over inputs and outputs to the payload that this
    branch has for each of its tuples, which they emit. With an `answer` there are no loops, and it is the only branch:
    its steps go from a delta over the inputs of requests to all rows of these, with their payloads. With `pieces` they
    emit a delta for each of them, in order: the rows are their join, and payloads the products.
    """

    segments: tuple[Segment, ...]
    factors: tuple[Read, ...]
    probe: tuple[Step, ...]
    guards: tuple[tuple[Loop, ...], ...] = ()
    answer: tuple[Step, ...] = ()
    pieces: tuple[Piece, ...] = ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        return tuple(loop for segment in self.segments for loop in segment.loops)


@dataclass(frozen=True, slots=True)
class Gathering:
    """What a request reads of the values of `variable` in each group where no index holds them: MIN, MAX and the like.

    The steps of `answer` go from a delta over the inputs of requests to the tuples over these, the outputs and the
    variable, and those of the `probe` from a delta over inputs and outputs.
    """

    variable: str
    functions: tuple[str, ...]
    answer: tuple[Step, ...]
    probe: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Enumeration:
    """How rows are read: nested loops over views, then the payload as a product of factors (Figures 4.9, 4.10).

    `inputs` pairs each variable that the fracture made with the input variable whose value it takes; `outputs` are
    the variables of a row; `slots` says what the payload's sums are, beside the count. With `branches`, which replace
    loops and factors, the payload of a row is the sum over all of them; if `disjoint`, no row comes twice. If one of
    the `guards` finds nothing, there are no rows. What is read of ordered variables is in `extremes`, or, for a view
    that is evaluated at requests, `gathered` then.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    slots: tuple[tuple[str, ...], ...]
    loops: tuple[Loop, ...]
    factors: tuple[Read, ...]
    extremes: tuple[Extreme, ...] = ()
    branches: tuple[Branch, ...] = ()
    disjoint: bool = False
    guards: tuple[tuple[Loop, ...], ...] = ()
    gathered: tuple[Gathering, ...] = ()

    @property
    def ordered(self) -> tuple[tuple[str, str], ...]:
        """What is read of which variable, in the order in which blocks have it."""
        indexed = [(extreme.function, extreme.variable) for extreme in self.extremes]
        return (*indexed, *((function, each.variable) for each in self.gathered for function in each.functions))


def single_guards(enumeration: Enumeration) -> tuple[Loop, ...]:
    """The guards that one look at the inputs decides; those of several loops have to be read."""
    known = {variable for variable, _ in enumeration.inputs}
    one = (guard[0] for guard in enumeration.guards if len(guard) == 1)
    return tuple(
        loop for loop in one if known.issuperset(name or "" for name in loop.read.variables if name not in loop.new)
    )


def long_guards(enumeration: Enumeration) -> tuple[tuple[Loop, ...], ...]:
    """The guards that have to be read."""
    single = single_guards(enumeration)
    return tuple(guard for guard in enumeration.guards if len(guard) > 1 or guard[0] not in single)


@dataclass(frozen=True, slots=True)
class Program:
    """The sources of its atoms by label, maps, triggers, the bulk build and the enumeration of one view.

    With `lazy`, triggers only keep the leaves and `build` runs before the next read (strategy `recompute`). With
    partitions, `fill` fills the leaves, all keys light, and `build` only the views, after the heavy keys have been
    moved; N is the number of entries of the maps `measured`.
    """

    sources: tuple[tuple[str, Source], ...]
    maps: tuple[Map, ...]
    triggers: tuple[Trigger, ...]
    build: tuple[Step, ...]
    enumeration: Enumeration
    lazy: bool = False
    partitions: tuple[Partition, ...] = ()
    moves: tuple[Move, ...] = ()
    fill: tuple[Step, ...] = ()
    measured: tuple[str, ...] = ()

    def source(self, label: str) -> Source:
        return next(source for name, source in self.sources if name == label)

    def map(self, name: str) -> Map:
        return next(declared for declared in self.maps if declared.name == name)

    def trigger(self, relation: str) -> Trigger:
        return next(trigger for trigger in self.triggers if trigger.relation == relation)

    @property
    def _reading(self) -> tuple[Branch | Enumeration, ...]:
        """What has loops."""
        branches = self.enumeration.branches
        return tuple(branch for branch in branches if not branch.answer) if branches else (self.enumeration,)

    def __str__(self) -> str:
        lines = ["maps"]
        lines += [f"  {declared!s:<28} {_describe(declared)}".rstrip() for declared in self.maps]
        for trigger in self.triggers:
            lines += [f"on {trigger.relation}", *_indented(trigger.steps)]
        for move in self.moves:
            lines += [
                f"when keys of {move.partition} turn {'heavy' if move.rising else 'light'}",
                *_indented(move.steps),
            ]
        if self.fill:
            lines += ["fill", *_indented(self.fill)]
        lines += ["build before reading" if self.lazy else "build", *_indented(self.build)]
        for answered in self.enumeration.branches:
            lines += ["answer a request", *_indented(answered.answer)] if answered.answer else []
            lines += [f"  rows {' ⋈ '.join(map(str, answered.pieces))}"] if answered.pieces else []
        for each in self.enumeration.gathered:
            lines += [f"gather {', '.join(each.functions)} of {each.variable}", *_indented(each.answer)]
        for branch in self._reading:
            lines += ["read", *(f"  if there is {'; '.join(map(str, guard))}" for guard in branch.guards)]
            lines += _indented(branch.loops)
            lines += [f"  payload {' · '.join(map(str, branch.factors)) or '1'}"]
        lines += _indented(self.enumeration.extremes)
        return "\n".join(lines)


def _indented(steps: Iterable[object]) -> list[str]:
    return [f"  {step}" for step in steps]


def _describe(declared: Map) -> str:
    def columns(positions: tuple[int, ...]) -> str:
        return ",".join(declared.schema[position] for position in positions) or "()"

    indexes = [f"{columns(index.key)}→{columns(index.values)}" for index in declared.indexes]
    ordered = [f"{columns(index.key)}→sorted {columns(index.values)}" for index in declared.sorted_by]
    ordered += [f"{columns(index.key)}→ranked {columns(index.values)}" for index in declared.ranked_by]
    return f"{declared.role:<10} {' '.join(indexes + ordered)}"
