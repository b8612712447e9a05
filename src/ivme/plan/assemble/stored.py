"""Which map of a program holds a node of a view tree, if any: the others only pass changes through."""

from __future__ import annotations

from ivme.plan.ir.program import Map, Program, Source
from ivme.plan.order.view_tree import ViewNode


def stored_map(program: Program, node: ViewNode) -> str | None:
    """The name of the map that holds the node's entries; None if changes only pass through it.

    A tree over a single atom is that atom summed, so that its maps are leaves; occurrences that read their relation
    alike share them.
    """
    atoms, indicators = node.atoms, node.indicators
    if node.kind == "indicator" and node.label is not None:
        return leaf_map(program, node.label, node.schema, indicator=True)
    if len(atoms) == 1 and not indicators:
        return leaf_map(program, atoms[0], node.schema)
    wanted = (node.kind, node.schema, atoms, indicators)
    found = (m.name for m in program.maps if (m.role, m.schema, m.atoms, m.indicators) == wanted)
    return next(found, None)


def leaf_map(program: Program, label: str, schema: tuple[str, ...], *, indicator: bool = False) -> str | None:
    """The name of the map that holds the rows of an atom, or of its part, on some of its variables."""
    source = program.source(label)
    columns = sorted(source.schema.index(variable) for variable in schema)
    role = "support" if indicator and len(columns) < len(source.schema) else "leaf"
    for declared in program.maps:
        if declared.role == role and declared.counted is None and _columns(program, declared) == columns:
            other = program.source(declared.atoms[0])
            if _read_alike(source, other):
                return declared.name
    return None


def _columns(program: Program, declared: Map) -> list[int]:
    schema = program.source(declared.atoms[0]).schema
    return sorted(schema.index(variable) for variable in declared.schema)


def _read_alike(one: Source, other: Source) -> bool:
    """Whether two atoms read the same part of the same rows in the same way, but for the names of variables."""

    def shape(source: Source) -> tuple[object, ...]:
        atom = source.atom
        terms = tuple(atom.variables.index(t) if isinstance(t, str) else t for t in atom.terms)
        sides = ((s.partition, tuple(source.schema.index(v) for v in s.key), s.heavy) for s in source.part)
        return (
            atom.relation,
            atom.closure,
            atom.columns,
            terms,
            atom.where,
            source.not_null,
            source.lifts,
            sorted(sides),
        )

    return shape(one) == shape(other)
