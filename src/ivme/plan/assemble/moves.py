"""Moves: the steps that take keys from one side of a partition to the other (source 003, Figure 5.24).

The rows of the keys leave the parts that are light on them and come into those that are heavy, or the other way
round; to everything above, that is a deletion from one leaf and an insertion into another. Leaves move one after the
other, each with its propagation, so that every view equals its definition over the leaves at each point; in between
the parts do not add up to the relation, but nothing reads them then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ivme.errors import PlanError
from ivme.plan.assemble.blueprint import IndicatorLeaf, Leaf, Split
from ivme.plan.assemble.leaf_deltas import LeafDeltas
from ivme.plan.assemble.storage import MapKey, Storage
from ivme.plan.ir import program as ir
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom


@dataclass(frozen=True, slots=True)
class Transfer:
    """The rows of a leaf, held by the map of `origin`, that go to the leaves `targets`, which share them out."""

    origin: Leaf
    key: tuple[str, ...]
    targets: tuple[Leaf, ...]


def transfers(storage: Storage, held: Mapping[str, Leaf], split: Split, *, rising: bool) -> list[Transfer]:
    """What has to move when keys change sides: one transfer for each part and each column set that is a key in it.

    Equal atoms share a part, though not always its map: one may sum up a column that another one needs. The widest map
    has the rows of all.
    """
    found: dict[tuple[MapKey, tuple[int, ...]], Transfer] = {}
    sources = storage.catalog.sources
    roles = sorted(
        {(side.key, label) for label in held for side in sources[label].part if side.partition == split.name}
    )
    for key, label in sorted(roles, key=lambda role: (storage.positions(role[1], role[0]), -len(held[role[1]].schema))):
        side = ir.Side(split.name, key, heavy=not rising)
        if side in sources[label].part:
            mine = [other for other in held if _is_target(sources[label], sources[other], side)]
            name = (storage.source_key(label), storage.positions(label, key))
            found.setdefault(name, Transfer(held[label], key, tuple(held[other] for other in mine)))
    return list(found.values())


def _is_target(origin: ir.Source, other: ir.Source, side: ir.Side) -> bool:
    """Whether rows of one part belong in another once a side is left: the same atom, and no other side differs.

    Of two atoms that are the same one may carry the sums: their parts are different maps.
    """
    same = (origin.atom, origin.schema, origin.lifts) == (other.atom, other.schema, other.lifts)
    if not same or ir.Side(side.partition, side.key, not side.heavy) not in other.part:
        return False
    theirs = {(entry.partition, entry.key): entry.heavy for entry in other.part}
    return all(
        theirs.get((entry.partition, entry.key), entry.heavy) == entry.heavy for entry in origin.part if entry != side
    )


class MovedDeltas(LeafDeltas):
    """The leaf deltas of one transfer."""

    def __init__(
        self,
        storage: Storage,
        nodes: Iterable[Leaf | IndicatorLeaf],
        register: Callable[[], str],
        transfer: Transfer,
        keys: tuple[str, str],
    ) -> None:
        super().__init__(storage, nodes, register)
        self._transfer = transfer
        self._keys = keys
        self._held: dict[MapKey, tuple[str, Leaf]] = {}

    def rows(self) -> Iterator[ir.Step]:
        """Reads the rows that move: with weight -1 for the leaf they leave, with weight 1 for those they reach."""
        origin, targets = self._transfer.origin, self._transfer.targets
        present, absent = self._keys
        for name, nodes in ((absent, (origin,)), (present, targets)):
            rows, steps = self._read(name)
            yield from steps
            for node in nodes:
                mine = self._storage.catalog.sources[origin.label].part
                sides = [side for side in self._storage.catalog.sources[node.label].part if not _known(side, mine)]
                routed, steps = self._filter(rows, sides)
                yield from steps
                self._held[self._storage.source_key(node.label)] = (routed, origin)

    def _read(self, keys: str) -> tuple[str, list[ir.Step]]:
        origin, key = self._transfer.origin, self._transfer.key
        rest = tuple(v for v in self._storage.variables(origin) if v not in key)
        read = self._storage.read(origin, key, rest)
        return self._keep(
            ir.Join(
                self._register(),
                keys,
                (read,),
                (*key, *rest),
                self._storage.sizes.exponent(self._storage.edges(origin), rest, key),
            )
        )

    def _filter(self, origin: str, sides: Iterable[ir.Side]) -> tuple[str, list[ir.Step]]:
        found: list[ir.Step] = []
        for side in sides:
            read = ir.Read(self._storage.declare_heavy(self._splits[side.partition]), side.key, payload=False)
            origin, steps = self._keep(ir.Filter(self._register(), origin, read, side.heavy, self._schema[origin]))
            found += steps
        return origin, found

    def _load(self, node: Leaf) -> Iterator[ir.Step]:
        """The node's share of the rows that its leaf loses or gets."""
        key = self._storage.key(node)
        if key in self._change:
            return
        name, origin = self._held[self._storage.source_key(node.label)]
        columns = dict(
            zip(
                self._storage.positions(origin.label, self._storage.variables(origin)),
                self._storage.variables(origin),
                strict=True,
            )
        )
        places = self._storage.positions(node.label, self._storage.variables(node))
        if not columns.keys() >= set(places):
            raise unmovable(self._storage.catalog.sources[node.label].atom.relation)
        wanted = tuple(columns[i] for i in places)
        if self._schema[name] != wanted:
            name, steps = self._keep(ir.Project(self._register(), name, wanted))
            yield from steps
        self._change[key] = name


def unmovable(relation: str) -> PlanError:
    """Why a relation cannot be split."""
    return PlanError(
        f"strategy 'skew' moves rows of {relation} for all its atoms at once, and two need different columns; "
        "write _ in place of variables that occur once"
    )


def _known(side: ir.Side, part: tuple[ir.Side, ...]) -> bool:
    return any((side.partition, side.key) == (other.partition, other.key) for other in part)


def pseudo_source(relation: str, columns: tuple[str, ...], schema: tuple[str, ...]) -> ir.Source:
    """A source for tuples that no table has: the keys of a move, the rows of a probe."""
    atom = Atom(relation, schema, tuple(ColumnRef(column) for column in columns))
    return ir.Source(atom, columns, schema)
