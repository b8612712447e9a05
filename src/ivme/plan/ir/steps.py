"""Maps and steps: what programs are made of (see `program`)."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    are ordered indexes, for MIN and MAX, and `ranked_by` those that also count, for percentiles. `atoms` are the labels
    of the atoms below, and `indicators` those that only filter. With `counted`, an entry is the number of distinct
    tuples over these variables in their join (see `plan.marks`). The map holds at most N^exponent entries.
    `key` are the columns of an enforced primary key, if it has one: at the end of a batch no two entries agree on
    them. A runtime may find entries by these columns without an index; answers do not depend on it.
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
    ranked_by: tuple[Index, ...] = ()
    key: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.schema)})"


@dataclass(frozen=True, slots=True)
class Lift:
    """A slot of the payload: the sum of a column, or the count of its values that are not NULL.

    "square" is the sum of the squares, and "product" that of the products with the column `partner`. "joint count" and
    "joint sum" are the factors of this table in joint slots, and "joint one" that of a table without any.
    """

    function: str
    column: int
    partner: int | None = None


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
    leaf holds; a `Load` reads all of it, and filters behind it choose the part. `key` says where the columns of the
    relation's primary key are in `schema`, if it has one and they are all there; it is not part of what a map is
    known by.
    """

    atom: Atom
    row: tuple[str, ...]
    schema: tuple[str, ...]
    not_null: tuple[int, ...] = ()
    lifts: tuple[Lift | None, ...] = ()
    part: tuple[Side, ...] = ()
    key: tuple[int, ...] = field(default=(), repr=False)

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
class Distinct:
    """`target` := the tuples of `origin` over the variables of `schema`, each once, with payload 1."""

    target: str
    origin: str
    schema: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_delta(self.target, self.schema)} := distinct {self.origin}"


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
    """The delta is part of the change of the result of a followed view."""

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


Step = Load | Scan | Rename | Join | Project | Distinct | Exists | Filter | Add | Emit | Watch


def _delta(name: str, schema: tuple[str, ...]) -> str:
    return f"{name}({', '.join(schema)})"
