"""From a `Program` to the compiled kernel's own form: maps, registers and variables become numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ivme._kernel import Kernel
from ivme.engine.ingest.feed import Feed
from ivme.plan.ir import program as ir
from ivme.query.aggregates import reads_exactly
from ivme.query.percentile import Percentile, read_percentile

if TYPE_CHECKING:
    from ivme._kernel import PieceSpec, ReadSpec, Step


class LoweredSteps:
    """The steps of one trigger under translation. There are no constants left in atoms: they are predicates.

    `emits` lists the emitted deltas in order: the view each belongs to, and its variables.
    """

    def __init__(self, maps: dict[str, int], slots: Sequence[str], partitions: Mapping[str, int]) -> None:
        self.feeds: dict[str, Feed] = {}
        self.emits: list[tuple[str, tuple[str, ...]]] = []
        self._maps = maps
        self._partitions = partitions
        self._slots = slots
        self._registers: dict[str, int] = {}
        self._schemas: dict[str, tuple[str, ...]] = {}
        self._needed: dict[str, frozenset[str]] = {}
        self._count = 0

    def compile(self, kernel: Kernel, steps: Sequence[ir.Step]) -> int:
        lowered: list[Step] = []
        self._needed = _projected(steps)
        for step in steps:
            if isinstance(step, ir.Rename):
                self._registers[step.target] = self._registers[step.origin]
            else:
                if not isinstance(step, ir.Add | ir.Emit | ir.Watch):
                    self._registers[step.target] = self._count
                    self._count += 1
                lowered.append(self._step(step))
            if not isinstance(step, ir.Add | ir.Emit | ir.Watch):
                needed = self._needed.get(step.target)
                self._schemas[step.target] = tuple(v for v in step.schema if needed is None or v in needed)
        return kernel.add_trigger(self._count, self._slots, lowered)

    def _step(
        self,
        step: ir.Load
        | ir.Scan
        | ir.Join
        | ir.Project
        | ir.Distinct
        | ir.Exists
        | ir.Filter
        | ir.Add
        | ir.Emit
        | ir.Watch,
    ) -> Step:
        number = self._registers
        match step:
            case ir.Load(target, source):
                feed = self.feeds.setdefault(source.atom.relation, Feed(source.row))
                place = list(self.feeds).index(source.atom.relation)
                return feed.load(number[target], place, source, self._slots, self._needed.get(target))
            case ir.Scan(target, name, _, indicator):
                return ("scan", number[target], self._maps[name], indicator)
            case ir.Project(target, origin, schema):
                return ("project", number[target], number[origin], _positions(schema, self._schemas[origin]))
            case ir.Distinct(target, origin, schema):
                return ("distinct", number[target], number[origin], _positions(schema, self._schemas[origin]))
            case ir.Exists(target, origin, name, _):
                return ("exists", number[target], number[origin], self._maps[name])
            case ir.Filter(target, origin, read, present, _):
                names = [variable for variable in read.variables if variable is not None]
                columns = _positions(names, self._schemas[origin])
                return ("filter", number[target], number[origin], self._maps[read.map], columns, present)
            case ir.Join(target, origin, reads, schema, _):
                new = len(schema) - len(self._schemas[origin])
                lowered = [self._read(read, schema) for read in reads]
                return ("join", number[target], number[origin], new, lowered)
            case ir.Add(origin, name, check):
                return ("add", number[origin], self._maps[name], check)
            case ir.Emit(origin, view):
                self.emits.append((view, self._schemas[origin]))
                return ("emit", number[origin])
            case ir.Watch(origin, partition, key, leaf):
                columns = _positions(key, self._schemas[origin])
                return ("watch", number[origin], self._partitions[partition], columns, leaf)

    def _read(self, read: ir.Read, schema: tuple[str, ...]) -> ReadSpec:
        columns = [-1 if variable is None else schema.index(variable) for variable in read.variables]
        pending = -1 if read.pending is None else self._registers[read.pending]
        return (self._maps[read.map], columns, read.payload, pending)


def _projected(steps: Sequence[ir.Step]) -> dict[str, frozenset[str]]:
    """For each load that is only ever projected, the variables that some projection keeps."""
    loads = {step.target for step in steps if isinstance(step, ir.Load)}
    needed: dict[str, frozenset[str]] = {}
    for step in steps:
        if isinstance(step, ir.Project):
            needed[step.origin] = needed.get(step.origin, frozenset()) | set(step.schema)
        elif isinstance(step, ir.Join):
            loads -= {step.origin, *(read.pending for read in step.reads)}
        elif not isinstance(step, ir.Load | ir.Scan):
            loads.discard(step.origin)
    return {target: kept for target, kept in needed.items() if target in loads}


def lower_partition(partition: ir.Partition, kernel: Kernel, maps: Mapping[str, int]) -> int:
    degrees = [[(maps[name], index.key, index.values) for name, index in degree.parts] for degree in partition.degrees]
    return kernel.add_partition(maps[partition.heavy], degrees)


def lower_reader(enumeration: ir.Enumeration, kernel: Kernel, maps: dict[str, int], slots: Sequence[str] = ()) -> int:
    """The reader of an enumeration; `slots` are the types of the sums of a view with branches."""
    guards = ir.long_guards(enumeration)
    if not enumeration.branches and not guards:
        return _loops(enumeration, kernel, maps)
    originals = [original for _, original in enumeration.inputs]
    asked = [originals.index(original) for original in dict.fromkeys(originals)]
    if enumeration.branches:
        parts = [_branch(enumeration, branch, kernel, maps, slots) for branch in enumeration.branches]
    else:
        parts = [([_loops(enumeration, kernel, maps)], _guards(enumeration, guards, kernel, maps), None)]
    disjoint = enumeration.disjoint or not enumeration.branches
    answered = any(branch.answer for branch in enumeration.branches) and bool(enumeration.outputs)
    pieces = lower_pieces(enumeration) if answered else []
    exact = reads_exactly(enumeration.slots)
    return kernel.add_union(len(originals), len(enumeration.outputs), asked, parts, disjoint, exact, answered, pieces)


def lower_pieces(enumeration: ir.Enumeration) -> list[PieceSpec]:
    """For each piece its parent, the columns that it shares with that, or with the request, in both; and where the
    outputs are that it brings."""
    inputs = tuple(dict.fromkeys(original for _, original in enumeration.inputs))
    pieces = enumeration.branches[0].pieces
    lowered: list[PieceSpec] = []
    for piece in pieces:
        above = pieces[piece.parent].schema if piece.parent >= 0 else inputs
        shared = [variable for variable in piece.schema if variable in above]
        new = [variable for variable in piece.schema if variable not in above]
        keys = _positions(shared, piece.schema), _positions(shared, above)
        lowered.append((piece.parent, *keys, _positions(new, piece.schema), _positions(new, enumeration.outputs)))
    return lowered


def _branch(
    enumeration: ir.Enumeration, branch: ir.Branch, kernel: Kernel, maps: dict[str, int], slots: Sequence[str]
) -> tuple[list[int], list[int], int | None]:
    """The readers of the segments, those of the guards, and the trigger of the probe; one without outputs has only
    that. One that answers requests has only the trigger that finds their rows."""
    if branch.answer and enumeration.outputs:
        return [], [], LoweredSteps(maps, slots, {}).compile(kernel, branch.answer)
    probe = None if enumeration.disjoint else LoweredSteps(maps, slots, {}).compile(kernel, branch.probe)
    if not enumeration.outputs and not enumeration.disjoint:
        return [], [], probe
    given = tuple((variable, variable) for variable, _ in enumeration.inputs)
    segments = [
        _loops(ir.Enumeration(given + known, segment.keep, (), segment.loops, factors), kernel, maps)
        for known, segment, factors in _factored(branch, dict(given))
    ]
    return segments, _guards(enumeration, branch.guards, kernel, maps), probe


def _factored(
    branch: ir.Branch, inputs: Mapping[str, str]
) -> Iterator[tuple[tuple[tuple[str, str], ...], ir.Segment, tuple[ir.Read, ...]]]:
    """The segments of a branch, each with what it is given and the factors whose variables it is the first to know."""
    left = list(branch.factors)
    kept: tuple[str, ...] = ()
    for segment in branch.segments:
        known = {*inputs, *kept, *(variable for loop in segment.loops for variable in loop.new)}
        factors = tuple(factor for factor in left if known.issuperset(variable or "" for variable in factor.variables))
        left = [factor for factor in left if factor not in factors]
        yield tuple((variable, variable) for variable in kept), segment, factors
        kept = segment.keep
    assert not left, "every factor is known in some segment"


def _guards(
    enumeration: ir.Enumeration, guards: Sequence[tuple[ir.Loop, ...]], kernel: Kernel, maps: dict[str, int]
) -> list[int]:
    """Readers that find something for the inputs that pass."""
    given = tuple((variable, variable) for variable, _ in enumeration.inputs)
    return [_loops(ir.Enumeration(given, (), (), loops, ()), kernel, maps) for loops in guards]


def _loops(enumeration: ir.Enumeration, kernel: Kernel, maps: dict[str, int]) -> int:
    """Inputs are the first variables; then come those that the loops yield."""
    inputs = [variable for variable, _ in enumeration.inputs]
    variables = inputs + [variable for loop in enumeration.loops for variable in loop.new]

    def read(use: ir.Read) -> tuple[int, list[int]]:
        return maps[use.map], _positions([variable or "" for variable in use.variables], variables)

    loops = [(*read(loop.read), _positions(loop.new, variables)) for loop in enumeration.loops]
    extremes = []
    for extreme in enumeration.extremes:
        value = extreme.read.variables.index(extreme.variable)
        known = [0 if i == value else variables.index(v or "") for i, v in enumerate(extreme.read.variables)]
        percentile = read_percentile(extreme.function) or Percentile(extreme.function, 0.0, False)
        constants = percentile.fraction, percentile.descending
        extremes.append((percentile.function, maps[extreme.read.map], known, value, *constants))
    factors = [read(factor) for factor in enumeration.factors]
    outputs = _positions(enumeration.outputs, variables)
    guards = [_guard(loop, inputs, maps) for loop in ir.single_guards(enumeration)]
    exact = reads_exactly(enumeration.slots)
    return kernel.add_reader(len(inputs), len(variables), outputs, loops, factors, extremes, guards, exact)


def _guard(loop: ir.Loop, inputs: Sequence[str], maps: dict[str, int]) -> tuple[int, list[int], list[int]]:
    key = [(i, name or "") for i, name in enumerate(loop.read.variables) if name not in loop.new]
    return maps[loop.read.map], [i for i, _ in key], _positions([name for _, name in key], inputs)


def _positions(wanted: Sequence[str], schema: Sequence[str]) -> list[int]:
    return [schema.index(variable) for variable in wanted]
