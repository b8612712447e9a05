"""Parts of relations by HL-signature, and the leaves of skew-aware queries (source 003, sections 5.1 and 5.2).

A `Role` splits the atoms of some labels on a key. A signature says for each role which side it takes; the atoms of the
query, each restricted to its part, make one skew-aware query, and the answer is the sum over all signatures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from ivme.plan.assemble.blueprint import Split
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.assemble.storage import loaded_as
from ivme.plan.ir.program import Side, Source


@dataclass(frozen=True, slots=True)
class Role:
    """A key and the atoms that are split on it. `partition` is the name of the split that decides; self-joins share."""

    key: tuple[str, ...]
    labels: tuple[str, ...]
    partition: str


Signature = Mapping[Role, bool]
"""For each role, whether the key is heavy."""


def roles_of(leaves: Leaves, keys: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> tuple[Role, ...]:
    """Roles for keys with their labels; those that have a degree of the same number in common get one partition.

    With one table of edges E(A, B), E(B, C), E(C, A) the degrees of A, B and C are those of one node, so one set of
    heavy nodes serves all three, and the parts of the table are stored once. With E(A, B), E(B, C), E(A, C), as
    undirected graphs have it, A has out-degrees, C has in-degrees, and B both: a node is heavy for all of them if one
    of its degrees is large, which at most doubles the heavy nodes.
    """
    names: dict[object, str] = {}
    roles: list[Role] = []
    for key, labels in keys:
        places: list[object] = []
        for label in labels:
            source = leaves.source(label)
            places.append((loaded_as(source), tuple(source.schema.index(variable) for variable in key)))
        known = list(dict.fromkeys(names[place] for place in places if place in names))
        own = ",".join(key) if ",".join(key) not in names.values() else f"{','.join(key)} of {'+'.join(labels)}"
        name = known[0] if known else own
        names |= dict.fromkeys(places, name)
        if len(known) > 1:  # this role has degrees of several: these are one from now on
            names = {place: name if old in known else old for place, old in names.items()}
            roles = [replace(role, partition=name) if role.partition in known else role for role in roles]
        roles.append(Role(key, labels, name))
    return tuple(roles)


def splits_of(roles: Iterable[Role], epsilons: Mapping[str, Fraction]) -> tuple[Split, ...]:
    """The partitions behind some roles; `epsilons` has one number for each."""
    first = {role.partition: role for role in reversed(list(roles))}
    return tuple(Split(name, role.key, epsilons[name]) for name, role in sorted(first.items()))


def signatures(roles: Sequence[Role]) -> Iterator[Signature]:
    """All assignments of sides."""
    for sides in product((True, False), repeat=len(roles)):
        yield dict(zip(roles, sides, strict=True))


def sides_of(leaves: Leaves, label: str, signature: Signature) -> tuple[Side, ...]:
    """The HL-signature of an atom's part, in the order of the atom's variables: what is equal has to look so."""
    schema = leaves.source(label).schema
    sides = [Side(role.partition, role.key, heavy) for role, heavy in signature.items() if label in role.labels]
    return tuple(sorted(sides, key=lambda side: [schema.index(variable) for variable in side.key]))


def part_label(label: str, sides: Sequence[Side]) -> str:
    """The label of a part: that of its atom, and its HL-signature."""
    return f"{label}[{', '.join(map(str, sides))}]" if sides else label


def part_of(source: Source, sides: Sequence[Side]) -> Source:
    """The source of a part."""
    return replace(source, part=tuple(sides))


def with_parts(leaves: Leaves, parts: Mapping[str, Iterable[tuple[Side, ...]]]) -> Leaves:
    """The leaves with each atom replaced by its parts, in the order of the atoms."""
    sources = [
        (part_label(label, sides), part_of(source, sides))
        for label, source in leaves.sources
        for sides in dict.fromkeys(parts[label])
    ]
    return replace(leaves, sources=tuple(sources))
