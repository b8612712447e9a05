"""How the rows of a view are read: nested loops over its nodes, branches of them, or steps that answer a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ivme.plan.assemble.blueprint import Blueprint, Gathered, Node, Reading, Reference, referred
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.ir import program as ir

if TYPE_CHECKING:
    from ivme.plan.assemble.assemble import Assembly

_Loops = tuple[tuple[ir.Loop, ...], tuple[ir.Read, ...]]


def enumeration_of(assembly: Assembly, blueprint: Blueprint) -> ir.Enumeration:
    """The nested loops, the factors of the payload, and the ordered groups of a view; or its branches."""
    leaves, reading = blueprint.leaves, blueprint.reading
    loops, factors = _loops(assembly, leaves, reading)
    return ir.Enumeration(
        leaves.inputs,
        leaves.outputs,
        leaves.slots,
        loops,
        factors,
        tuple(assembly.storage.extreme(*extreme) for extreme in reading.extremes),
        tuple(_branch(assembly, leaves, branch) for branch in blueprint.branches),
        blueprint.disjoint,
        _guards(assembly, leaves, reading),
        tuple(_gathering(assembly, leaves, each) for each in blueprint.gathered),
    )


def _guards(assembly: Assembly, leaves: Leaves, reading: Reading) -> tuple[tuple[ir.Loop, ...], ...]:
    return tuple(_loops(assembly, leaves, Reading(guard, ()))[0] for guard in reading.guards)


def _loops(assembly: Assembly, leaves: Leaves, reading: Reading) -> _Loops:
    known = [variable for variable, _ in leaves.inputs]
    loops: list[ir.Loop] = []
    for iteration in reading.iterations:
        loops.append(ir.Loop(assembly.storage.read(iteration.node, known, iteration.new), iteration.new))
        known += iteration.new
    return tuple(loops), tuple(assembly.storage.read(node, known, ()) for node in reading.factors)


def _branch(assembly: Assembly, leaves: Leaves, reading: Reading) -> ir.Branch:
    """A branch of loops, with the probe of its rows; or one that answers requests by steps of their own.

    A probe finds the payload of given rows: the product of the factors, summed over the bound variables in them
    (COMPUTEM, source 003, Figure 5.16).
    """
    names = dict(leaves.inputs)
    rows = (*dict.fromkeys(names.values()), *leaves.outputs)
    if reading.pieces:
        return _pieced(assembly, leaves, reading)
    if reading.answer:
        answer, probe = _asked(assembly, leaves, reading)
        return ir.Branch((), (), probe, (), answer)
    loops, factors = _loops(assembly, leaves, reading)
    probe = assembly.asked(rows, tuple((_named(node, names),) for node in reading.factors), rows)
    return ir.Branch(segments(loops, leaves.outputs, factors), factors, probe, _guards(assembly, leaves, reading))


def _pieced(assembly: Assembly, leaves: Leaves, reading: Reading) -> ir.Branch:
    """A branch whose steps find pieces of rows."""
    inputs = tuple(dict.fromkeys(original for _, original in leaves.inputs))
    rows = (*inputs, *leaves.outputs)
    pieces = tuple(ir.Piece((*inputs, *piece.schema), piece.parent) for piece in reading.pieces)
    answer = assembly.asked_pieces(inputs, reading.pieces)
    return ir.Branch((), (), assembly.asked(rows, reading.probe, rows), (), answer, pieces)


def _gathering(assembly: Assembly, leaves: Leaves, gathered: Gathered) -> ir.Gathering:
    steps = _asked(assembly, leaves, gathered.reading, gathered.variable)
    return ir.Gathering(gathered.variable, gathered.functions, *steps)


def _asked(
    assembly: Assembly, leaves: Leaves, reading: Reading, *more: str
) -> tuple[tuple[ir.Step, ...], tuple[ir.Step, ...]]:
    """The steps from inputs to rows, and from given rows to their payloads; the tuples found may have `more`."""
    inputs = tuple(dict.fromkeys(original for _, original in leaves.inputs))
    rows = (*inputs, *leaves.outputs)
    found = (*rows, *more)
    return assembly.asked(inputs, reading.answer, found), assembly.asked(rows, reading.probe, found)


def _named(node: Node, names: Mapping[str, str]) -> Reference:
    """The node under the query's own names for its inputs."""
    return Reference(referred(node), tuple(names.get(variable, variable) for variable in node.schema))


def segments(
    loops: tuple[ir.Loop, ...], outputs: tuple[str, ...], factors: tuple[ir.Read, ...]
) -> tuple[ir.Segment, ...]:
    """Loops cut after the last use of a bound variable, where what they have found repeats.

    Without the cuts, two bound variables that have nothing to do with each other would multiply the repetitions. A
    variable of a factor is held until all of the factor's variables are known, so that a segment can multiply by it.
    """
    found: list[ir.Segment] = []
    current: list[ir.Loop] = []
    known: list[str] = []
    for i, loop in enumerate(loops):
        current.append(loop)
        known += loop.new
        rest = loops[i + 1 :]
        found_later = {variable for later in rest for variable in later.new}
        needed = [read for read in factors if not found_later.isdisjoint(read.variables)]
        used = {variable for read in (*needed, *(later.read for later in rest)) for variable in read.variables}
        keep = tuple(variable for variable in known if variable in used or variable in outputs)
        if len(keep) < len(known) and any(later.new for later in rest):
            found.append(ir.Segment(tuple(current), keep))
            current, known = [], list(keep)
    return (*found, ir.Segment(tuple(current), outputs))
