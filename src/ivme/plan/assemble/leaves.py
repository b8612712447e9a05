"""The leaves of a plan: how each atom's rows are read, and what their payloads carry.

NULL joins only by `<=>`, so rows with NULL in another variable that occurs twice in the body, or that is an input, are
dropped as they are read; there are none in the columns of a primary key. Aggregates that are sums in a ring get slots
in the payload (algebra.ring), each lifted by the first atom that has the variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ivme.plan.ir.program import Lift, Source
from ivme.query.aggregates import JOINT, SlotKey, payload_slots
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom, Query, Table
from ivme.structure.dependencies import Dependencies, dependencies_of
from ivme.structure.fracture import Fracture


@dataclass(frozen=True, slots=True)
class Leaves:
    """The sources of all atoms by label, the inputs and outputs of the head, and the slots of the payload.

    `dependencies` are those of the atoms, in the variables of their sources.
    """

    sources: tuple[tuple[str, Source], ...]
    inputs: tuple[tuple[str, str], ...]
    outputs: tuple[str, ...]
    slots: tuple[SlotKey, ...]
    dependencies: Dependencies = field(default_factory=Dependencies)

    def source(self, label: str) -> Source:
        return dict(self.sources)[label]

    @property
    def schemas(self) -> dict[str, tuple[str, ...]]:
        """The variables of each atom in their written order, as the fracture names them."""
        return {label: source.schema for label, source in self.sources}


def leaves_of(query: Query, fracture: Fracture) -> Leaves:
    """The leaves of a query under the names of its fracture."""
    slots = payload_slots(query)
    joined = query.never_null
    lifted_by = {slot: _lifted_by(query, slot) for slot in slots}
    sources = []
    renamed: dict[str, dict[str, str]] = {}
    for i, (atom, edge) in enumerate(zip(query.atoms, fracture.whole.hypergraph.edges, strict=True)):
        names = {fracture.original(name): name for name in edge.variables}
        renamed[edge.label] = names
        lifts = tuple(_lift(slot, lifted_by[slot], i, atom) for slot in slots)
        source = Source(
            atom,
            query.table(atom.relation).column_names,
            tuple(names[variable] for variable in atom.variables),
            _positions(atom, joined - _never_null(atom, query.table(atom.relation))),
            lifts if any(lift is not None and lift != _ONE for lift in lifts) else (),
            key=_key(atom, query.table(atom.relation)),
        )
        sources.append((edge.label, source))
    named = sorted((query.input.index(fracture.original(name)), name) for name in fracture.whole.input)
    inputs = tuple((name, fracture.original(name)) for _, name in named)
    return Leaves(tuple(sources), inputs, query.output, slots, dependencies_of(query).renamed(renamed))


_ONE = Lift(f"{JOINT}one", 0)
"""The factor of a table that has none of its own."""


def _lifted_by(query: Query, slot: SlotKey) -> tuple[int, ...]:
    """The atom that lifts a slot; of a joint one, for each factor an atom of its own."""
    places = [[i for i, atom in enumerate(query.atoms) if variable in atom.variables] for variable in slot[1:]]
    if not slot[0].startswith(JOINT):
        return (places[0][0],)
    return next((one, other) for one in places[0] for other in places[1] if one != other)


def _lift(slot: SlotKey, lifted_by: tuple[int, ...], number: int, atom: Atom) -> Lift | None:
    """What an atom lifts for a slot."""
    if not slot[0].startswith(JOINT):
        return Lift(slot[0], *map(atom.variables.index, slot[1:])) if lifted_by == (number,) else None
    mine = [variable for variable, place in zip(slot[1:], lifted_by, strict=True) if place == number]
    return Lift(slot[0], atom.variables.index(mine[0])) if mine else _ONE


def _never_null(atom: Atom, table: Table) -> frozenset[str]:
    """The variables that stand for columns of the primary key."""
    key = {name.lower() for name in table.primary_key or ()}
    named = zip(atom.columns, atom.terms, strict=True)
    return frozenset(t for c, t in named if isinstance(c, ColumnRef) and c.name.lower() in key and isinstance(t, str))


def _key(atom: Atom, table: Table) -> tuple[int, ...]:
    """Where the variables of the primary key are among the atom's, if it has all of them."""
    named = zip(atom.columns, atom.terms, strict=True)
    terms = {c.name.lower(): t for c, t in named if isinstance(c, ColumnRef) and isinstance(t, str)}
    key = [name.lower() for name in table.primary_key or ()]
    if atom.closure or not terms.keys() >= set(key):
        return ()
    return tuple(sorted({atom.variables.index(terms[name]) for name in key}))


def _positions(atom: Atom, variables: frozenset[str]) -> tuple[int, ...]:
    return tuple(i for i, variable in enumerate(atom.variables) if variable in variables)
