"""What a program needs to rebalance its partitions: degrees, watches, and moves (source 003, section 5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.plan.assemble.blueprint import IndicatorLeaf, Leaf, Split, StoredView, referred
from ivme.plan.assemble.leaf_deltas import LeafDeltas
from ivme.plan.assemble.moves import MovedDeltas, Transfer, pseudo_source, transfers, unmovable
from ivme.plan.assemble.prune import without_dead_steps
from ivme.plan.assemble.storage import MapKey
from ivme.plan.ir import program as ir

if TYPE_CHECKING:
    from ivme.plan.assemble.assemble import Assembly


def partitions_of(assembly: Assembly) -> tuple[ir.Partition, ...]:
    """The partitions with the maps and indexes that tell degrees."""
    return tuple(
        ir.Partition(
            split.name,
            assembly.storage.declare_heavy(split),
            split.key,
            split.epsilon,
            tuple(_degree(assembly, label, key) for label, key in _roles(assembly, split)),
        )
        for split in assembly.catalog.splits
    )


def measured_by(assembly: Assembly) -> tuple[str, ...]:
    """The maps whose entries are the database's size, as the view sees it: each table once, however it is split."""
    first: dict[MapKey, str] = {}
    for label in assembly.held:
        first.setdefault(assembly.storage.whole_key(label), label)
    counted = [
        leaf
        for label, leaf in assembly.held.items()
        if _is_same_atom(assembly, first[assembly.storage.whole_key(label)], label)
    ]
    return tuple(dict.fromkeys(assembly.storage.declare(leaf) for leaf in counted))


def watches(assembly: Assembly, relation: str, leaves: LeafDeltas) -> Iterator[ir.Watch]:
    """The steps that judge the keys of changed rows."""
    for split in assembly.catalog.splits:
        for number, (label, key) in enumerate(_roles(assembly, split)):
            if assembly.catalog.sources[label].atom.relation == relation:
                name, schema = leaves.loaded(label)
                names = tuple(schema[i] for i in assembly.storage.positions(label, key))
                yield ir.Watch(name, split.name, names, number)


def _roles(assembly: Assembly, split: Split) -> list[tuple[str, tuple[str, ...]]]:
    """The atoms in which a partition's key has a degree that counts, each loaded way once."""
    found: dict[tuple[MapKey, tuple[int, ...]], tuple[str, tuple[str, ...]]] = {}
    for label, leaf in assembly.held.items():
        for side in assembly.catalog.sources[label].part:
            if side.partition == split.name and len(leaf.schema) > len(side.key):
                place = (assembly.storage.whole_key(label), assembly.storage.positions(label, side.key))
                found.setdefault(place, (label, side.key))
    return list(found.values())


def _is_same_atom(assembly: Assembly, one: str, other: str) -> bool:
    """Whether two labels are parts of one atom; other occurrences of its relation may be split in other ways."""
    mine, theirs = assembly.catalog.sources[one], assembly.catalog.sources[other]
    return (mine.atom, mine.schema) == (theirs.atom, theirs.schema)


def _degree(assembly: Assembly, label: str, key: tuple[str, ...]) -> ir.Degree:
    """The parts of an atom."""
    storage = assembly.storage
    places = storage.positions(label, key)
    parts: dict[str, ir.Index] = {}
    for other, leaf in assembly.held.items():
        if _is_same_atom(assembly, label, other):
            schema, variables = assembly.catalog.sources[other].schema, storage.variables(leaf)
            columns = tuple(variables.index(schema[i]) for i in places)
            index = ir.Index(columns, tuple(i for i in range(len(variables)) if i not in columns))
            parts[storage.declare_index(leaf, index)] = index
    return ir.Degree(tuple(parts.items()))


def moves_of(assembly: Assembly) -> tuple[ir.Move, ...]:
    """For each partition how keys rise and how they fall."""
    return tuple(
        ir.Move(
            split.name,
            rising,
            move_of(assembly, split, rising=rising, views=True),
            move_of(assembly, split, rising=rising, views=False),
            gradual_move(assembly, split, rising=rising) if assembly.catalog.gradual else None,
        )
        for split in assembly.catalog.splits
        for rising in (True, False)
    )


def check_moves(assembly: Assembly) -> None:
    """Declares the indexes that moves read by, and refuses a view whose rows cannot move, before any steps are made.

    Above the leaves, what moves is propagated by the rules of the triggers, which have declared theirs.
    """
    storage = assembly.storage
    held: dict[MapKey, set[int]] = {}
    for label, leaf in assembly.held.items():
        held.setdefault(storage.source_key(label), set()).update(storage.positions(label, leaf.schema))
    for split in assembly.catalog.splits:
        for rising in (True, False):
            for transfer in transfers(storage, assembly.held, split, rising=rising):
                origin, key = transfer.origin, transfer.key
                storage.read(origin, key, tuple(v for v in storage.variables(origin) if v not in key))
                places = set(storage.positions(origin.label, origin.schema))
                for leaf in (origin, *transfer.targets):
                    if not held[storage.source_key(leaf.label)] <= places:
                        raise unmovable(assembly.relation_of(leaf))


def move_of(assembly: Assembly, split: Split, *, rising: bool, views: bool) -> tuple[ir.Step, ...]:
    """The steps that take keys of a partition from one side to the other: in leaves only, or in views, too."""
    assembly.section = "move"
    present, absent = (
        ir.Load(assembly.register(), pseudo_source(relation, split.key, split.key))
        for relation in (ir.KEYS, ir.NO_KEYS)
    )
    steps: list[ir.Step] = [present, absent]
    for transfer in transfers(assembly.storage, assembly.held, split, rising=rising):
        steps += _transferred(assembly, transfer, (present.target, absent.target), views=views)
    steps.append(ir.Add(present.target if rising else absent.target, assembly.storage.declare_heavy(split)))
    return without_dead_steps(steps)


def gradual_move(assembly: Assembly, split: Split, *, rising: bool) -> ir.GradualMove:
    """The same for one row after the other: a partition of its own leaf has one transfer."""
    (transfer,) = transfers(assembly.storage, assembly.held, split, rising=rising)
    columns = assembly.storage.variables(transfer.origin)
    flip = ir.Load(assembly.register(), pseudo_source(ir.KEYS if rising else ir.NO_KEYS, split.key, split.key))
    heavy = ir.Add(flip.target, assembly.storage.declare_heavy(split))
    present, absent = (
        ir.Load(assembly.register(), pseudo_source(relation, columns, columns)) for relation in (ir.KEYS, ir.NO_KEYS)
    )
    whole = replace(transfer, key=columns)
    moved = [present, absent, *_transferred(assembly, whole, (present.target, absent.target), views=True)]
    rest = tuple(variable for variable in columns if variable not in transfer.key)
    loop = ir.Loop(assembly.storage.read(transfer.origin, transfer.key, rest), rest)
    inputs = tuple((variable, variable) for variable in transfer.key)
    rows = ir.Enumeration(inputs, columns, (), (loop,), ())
    return ir.GradualMove((flip, heavy), rows, without_dead_steps(moved))


def _transferred(assembly: Assembly, transfer: Transfer, keys: tuple[str, str], *, views: bool) -> Iterator[ir.Step]:
    """The steps of one transfer: the rows that move, the leaves that take them, and the views above if they are
    there."""
    storage = assembly.storage
    names = assembly.register(), assembly.register()
    for name, loaded in zip(names, keys, strict=True):
        yield ir.Rename(name, loaded, transfer.key)
    changed = {storage.source_key(leaf.label) for leaf in (transfer.origin, *transfer.targets)}
    labels = [label for label in assembly.catalog.labels if storage.source_key(label) in changed]
    affected = assembly.affected(assembly.relation_of(transfer.origin)) if views else []
    affected = [propagation for propagation in affected if propagation.use.label in labels]
    used = (*assembly.stored, *(rule.origin for propagation in affected for rule in propagation.rules))
    nodes = [n for n in map(referred, used) if not isinstance(n, StoredView) and n.label in labels]
    nodes = sorted(dict.fromkeys(nodes), key=lambda n: _in_turn(n, labels))
    moved = MovedDeltas(storage, nodes, assembly.register, transfer, names)
    yield from moved.rows()
    yield from moved.steps(assembly.stored_keys)
    yield from (step for step in assembly.propagated(affected, moved) if not isinstance(step, ir.Emit))


def _in_turn(node: Leaf | IndicatorLeaf, labels: list[str]) -> tuple[bool, int, int, tuple[str, ...]]:
    """Indicators judge what leaves have, so they come behind these."""
    return isinstance(node, IndicatorLeaf), labels.index(node.label), -len(node.schema), node.schema
