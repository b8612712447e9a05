"""The `Program`: the one printable form that every strategy compiles to and every runtime executes.

A program knows nothing about queries. It declares *maps* (from tuples to payloads, with indexes) and, for each
relation, a *trigger*: straight-line steps over named deltas. A delta is a small relation, tuples with payloads,
written `d(A, B)`; a step makes a new delta from an earlier one or adds a delta to a map. The life of a change:

1. `Load` reads the changed rows of a relation as a delta over an atom's variables.
2. `Join` extends a delta by the matching entries of one or more maps, one block of variables at a time; where
   several maps know the block it iterates the one with the fewest matches and looks up the rest (worst-case
   optimal, source 003 section 4.1.3).
3. `Project` sums payloads away to fewer variables.
4. `Exists` replaces a delta by the changes of presence that it would cause in a map: ±1 where an entry appears
   or disappears, nothing elsewhere. Indicator projections, DISTINCT and marks travel along such edges.
5. `Filter` keeps the tuples whose key is, or is not, in a map: routing by heavy and light parts.
6. `Add` adds a delta to a map.
7. `Watch` notes the keys of a delta whose degree no longer fits their side of a partition.

With partitions a program also has `Move`s, which take keys from one side to the other, and its rows may come from
several `Branch`es, whose answers overlap.

`Read.pending` names a delta that its map does not hold yet and that this read must see: with self-joins,
occurrences before the one being propagated read the new contents and those after it the old (SEEDS.md).
The reference with an example is docs/program.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ivme.query.model import Atom


@dataclass(frozen=True, slots=True)
class Index:
    """For each value of the `key` columns, the distinct values of the `values` columns, counted.

    If key and values are all columns of the map, an index enumerates its entries; if fewer, it enumerates a
    projection of them (each value with its support), as a worst-case optimal join needs it.
    """

    key: tuple[int, ...]
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """A map from tuples over `schema` to payloads; an entry whose count is zero is absent.

    `role` says what it stands for: "leaf" (rows of a relation, possibly summed to fewer variables), "support"
    (distinct tuples counted per projection, read as an indicator), "view", "auxiliary", "result" or "heavy" (the
    heavy keys of a partition). `sums` is whether payloads carry aggregate sums beside the count. `sorted_by`
    are ordered indexes, for MIN and MAX. `atoms` are the labels of the atoms below, and `indicators` those that
    only filter. With `counted`, an entry is the number of distinct tuples over these variables in their join (see
    `plan.marks`). The map holds at most N^exponent entries.
    """

    name: str
    schema: tuple[str, ...]
    role: str
    exponent: Fraction
    sums: bool = False
    indexes: tuple[Index, ...] = ()
    sorted_by: tuple[Index, ...] = ()
    atoms: tuple[str, ...] = ()
    indicators: tuple[tuple[str, tuple[str, ...]], ...] = ()
    counted: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.schema)})"


@dataclass(frozen=True, slots=True)
class Lift:
    """A slot of the payload: the sum of a column, or the count of its values that are not NULL."""

    function: str
    column: int


@dataclass(frozen=True, slots=True)
class Side:
    """One entry of an HL-signature: whether the variables `key` are heavy or light in a partition (003, 5.1)."""

    partition: str
    key: tuple[str, ...]
    heavy: bool

    def __str__(self) -> str:
        return f"{''.join(self.key)}→{'H' if self.heavy else 'L'}"


@dataclass(frozen=True, slots=True)
class Source:
    """How the rows of a relation become tuples of an atom's leaf.

    `row` names the columns of the relation's rows, in their order. A row passes if the atom's constants, repeated
    variables and predicate hold and no variable of `not_null` is NULL (a join or an input: NULL never joins).
    `schema[i]` is the name of `atom.variables[i]` in the plan: inputs are renamed by the fracture. With `lifts`, one
    for each slot of the payload and None where another leaf lifts, the payload of a row of weight m is m times the
    lifted values (see algebra.ring); without, it is m. `part` is the HL-signature of the part of the relation that the
    leaf holds; a `Load` reads all of it, and filters behind it choose the part.
    """

    atom: Atom
    row: tuple[str, ...]
    schema: tuple[str, ...]
    not_null: tuple[int, ...] = ()
    lifts: tuple[Lift | None, ...] = ()
    part: tuple[Side, ...] = ()

    def __str__(self) -> str:
        where = f" where {self.atom.where}" if self.atom.where is not None else ""
        return f"{self.atom}{where}"


@dataclass(frozen=True, slots=True)
class Degree:
    """How many tuples a leaf has for a key: the sum of the matches in these maps, its parts, each by an index."""

    parts: tuple[tuple[str, Index], ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """A heavy/light partition on a key (source 003, section 5.1).

    A key is heavy while it is in the map `heavy`; the threshold is M^ε for this partition's own ε. Its degree in each
    leaf that counts decides on which side it has to be.
    """

    name: str
    heavy: str
    key: tuple[str, ...]
    epsilon: Fraction
    degrees: tuple[Degree, ...]


@dataclass(frozen=True, slots=True)
class Read:
    """The use of a map in a step: `variables[i]` stands for the map's column i, None for a column left open.

    Columns whose variables are known in the delta form the key; the others are what the read yields. With
    `payload` the payloads multiply, without it the read only asks for presence. The read sees the map as it is,
    plus the delta named `pending` if there is one.
    """

    map: str
    variables: tuple[str | None, ...]
    payload: bool = True
    pending: str | None = None

    def __str__(self) -> str:
        name = self.map if self.pending is None else f"({self.map} + {self.pending})"
        text = f"{name}({', '.join(v or '_' for v in self.variables)})"
        return text if self.payload else f"∃{text}"


@dataclass(frozen=True, slots=True)
class Load:
    """`target` := the changed rows of the trigger's relation, as `source` reads them, consolidated."""

    target: str
    source: Source

    @property
    def schema(self) -> tuple[str, ...]:
        return self.source.schema

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := load {self.source}"


@dataclass(frozen=True, slots=True)
class Scan:
    """`target` := all entries of a map; bulk builds start from it. With `indicator`, each with payload 1."""

    target: str
    map: str
    schema: tuple[str, ...]
    indicator: bool = False

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := {'∃' if self.indicator else ''}scan {self.map}"


@dataclass(frozen=True, slots=True)
class Rename:
    """`target` := `origin` under other names for its columns; costs nothing."""

    target: str
    origin: str
    schema: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := {self.origin}"


@dataclass(frozen=True, slots=True)
class Join:
    """`target` := `origin` ⋈ reads. The variables that are new in `schema` come from the smallest of the reads.

    Every read knows all the new variables. The whole step costs at most N^exponent for one changed row.
    """

    target: str
    origin: str
    reads: tuple[Read, ...]
    schema: tuple[str, ...]
    exponent: Fraction

    def __str__(self) -> str:
        reads = " ⋈ ".join(map(str, self.reads))
        return f"{_delta(self.target, self.schema)} := {self.origin} ⋈ {reads}    # N^{self.exponent}"


@dataclass(frozen=True, slots=True)
class Project:
    """`target` := `origin` summed to the variables of `schema`."""

    target: str
    origin: str
    schema: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := sum {self.origin}"


@dataclass(frozen=True, slots=True)
class Exists:
    """`target` := ±1 for each tuple that `origin` will make appear in, or disappear from, the map."""

    target: str
    origin: str
    map: str
    schema: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := ∃-changes of {self.map} by {self.origin}"


@dataclass(frozen=True, slots=True)
class Filter:
    """`target` := the tuples of `origin` whose key is (or is not) in a map: routing to heavy and light parts."""

    target: str
    origin: str
    read: Read
    present: bool
    schema: tuple[str, ...]

    def __str__(self) -> str:
        side = "in" if self.present else "not in"
        return f"{_delta(self.target, self.schema)} := {self.origin} where {side} {self.read}"


@dataclass(frozen=True, slots=True)
class Add:
    """The map takes the delta. `check` refuses the whole batch if a count goes below zero ("present") or leaves
    0 and 1 ("unique")."""

    origin: str
    map: str
    check: str = ""

    def __str__(self) -> str:
        return f"{self.map} += {self.origin}{f', {self.check}' if self.check else ''}"


@dataclass(frozen=True, slots=True)
class Emit:
    """The delta is part of the change of a view's result, which somebody follows."""

    origin: str
    view: str

    def __str__(self) -> str:
        return f"emit {self.origin} as a change of {self.view}"


@dataclass(frozen=True, slots=True)
class Watch:
    """The keys of the delta's tuples are judged: a light one is noted if its degree in this leaf has reached the upper
    bound of the partition, a heavy one if its degree in all leaves is below the lower bound."""

    origin: str
    partition: str
    key: tuple[str, ...]
    leaf: int

    def __str__(self) -> str:
        return f"watch {', '.join(self.key)} of {self.origin} in partition {self.partition}"


Step = Load | Scan | Rename | Join | Project | Exists | Filter | Add | Emit | Watch


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
    """MIN, MAX or COUNT DISTINCT of `variable` in the group at hand, from an ordered index of a view."""

    function: str
    variable: str
    read: Read

    def __str__(self) -> str:
        return f"{self.function}({self.variable}) from {self.read}"


@dataclass(frozen=True, slots=True)
class Segment:
    """Loops that find tuples over `keep`, some of them several times: bound variables that nobody needs behind them."""

    loops: tuple[Loop, ...]
    keep: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several ways to find rows: a skew-aware view tree (source 003, section 5.3).

    Its loops may run over bound variables, too, and then find a row several times; each segment begins with the
    distinct tuples of the one before. `probe` are steps from a delta over inputs and outputs to the payload that this
    branch has for each of its tuples, which they emit.
    """

    segments: tuple[Segment, ...]
    factors: tuple[Read, ...]
    probe: tuple[Step, ...]
    guards: tuple[tuple[Loop, ...], ...] = ()

    @property
    def loops(self) -> tuple[Loop, ...]:
        return tuple(loop for segment in self.segments for loop in segment.loops)


@dataclass(frozen=True, slots=True)
class Enumeration:
    """How rows are read: nested loops over views, then the payload as a product of factors (Figures 4.9, 4.10).

    `inputs` pairs each variable that the fracture made with the input variable whose value it takes; `outputs` are
    the variables of a row; `slots` says what the payload's sums are, beside the count. With `branches`, which replace
    loops and factors, the payload of a row is the sum over all of them; if `disjoint`, no row comes twice. If one of
    the `guards` finds nothing, there are no rows.
    """

    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    slots: tuple[tuple[str, str], ...]
    loops: tuple[Loop, ...]
    factors: tuple[Read, ...]
    extremes: tuple[Extreme, ...] = ()
    branches: tuple[Branch, ...] = ()
    disjoint: bool = False
    guards: tuple[tuple[Loop, ...], ...] = ()


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
        for branch in self.enumeration.branches or (self.enumeration,):
            lines += ["read", *(f"  if there is {'; '.join(map(str, guard))}" for guard in branch.guards)]
            lines += _indented(branch.loops)
            lines += [f"  payload {' · '.join(map(str, branch.factors)) or '1'}"]
        lines += _indented(self.enumeration.extremes)
        return "\n".join(lines)


def _delta(name: str, schema: tuple[str, ...]) -> str:
    return f"{name}({', '.join(schema)})"


def _indented(steps: Iterable[object]) -> list[str]:
    return [f"  {step}" for step in steps]


def _describe(declared: Map) -> str:
    def columns(positions: tuple[int, ...]) -> str:
        return ",".join(declared.schema[position] for position in positions) or "()"

    indexes = [f"{columns(index.key)}→{columns(index.values)}" for index in declared.indexes]
    ordered = [f"{columns(index.key)}→sorted {columns(index.values)}" for index in declared.sorted_by]
    return f"{declared.role:<10} {' '.join(indexes + ordered)}"
