"""Listings with other atoms hung on them: for a signature, what a filter on a few of the free variables costs.

A listing joins a change with all other parts, so each atom that only filters costs a whole walk through the listing
when its own rows change: in Q(A, B, C) = R(A, B), S(B, C), T(C, A), U(A), all triangles of a node. Hung on top instead,
U meets the number of triangles of each A, one look-up, and the readers begin at the A that both have:

    V(A) = W(A), U(A)    W(A) = Σ L(A, B, C)    L(A, B, C) = R(A, B), S(B, C), T(C, A)

Atoms whose variables contain one another are hung in a chain. Those hung must lie within another atom's variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise

from ivme.plan.assemble.blueprint import Blueprint, Definition, Iteration, Leaf, Propagation, Reading, Rule, StoredView
from ivme.plan.assemble.branch_reading import BranchReading
from ivme.plan.assemble.leaves import Leaves
from ivme.plan.strategy.skew.trees import Branch, Tree
from ivme.structure.hypergraph import Cqap

MOST_CHAINS = 8
"""How many ways to hang atoms are tried."""


@dataclass(frozen=True, slots=True)
class _Hook:
    """Atoms hung on the same variables, with the view `below` that they meet, and the view of those that have all."""

    atoms: tuple[Leaf, ...]
    below: StoredView
    all: StoredView


def hung_listings(
    whole: Cqap, leaves: Leaves, labels: tuple[str, ...], suffix: str
) -> Iterator[Callable[[], tuple[Tree, Branch]]]:
    """The listings of a skew-aware query with its filters on top, one for each chain of these, to be drawn."""
    uses = Counter(variable for label in labels for variable in leaves.source(label).schema)
    shared = {label: tuple(v for v in leaves.source(label).schema if uses[v] > 1) for label in labels}
    for chain in _chains(whole, shared):
        hung = [label for label in labels if frozenset(shared[label]) in chain and _hangs(label, whole, shared)]
        rest = tuple(label for label in labels if label not in hung)
        covered = {variable for label in rest for variable in leaves.source(label).schema}
        if rest and covered.issuperset(whole.free):
            hooks = [[label for label in hung if set(shared[label]) == key] for key in chain]
            yield partial(_drawn, whole, leaves, rest, hooks, suffix)


def _hangs(label: str, whole: Cqap, shared: dict[str, tuple[str, ...]]) -> bool:
    """Whether an atom's shared variables are free, and within those of another that has more of them."""
    mine = set(shared[label])
    return bool(mine) and whole.free.issuperset(mine) and any(mine < set(theirs) for theirs in shared.values())


def _chains(whole: Cqap, shared: dict[str, tuple[str, ...]]) -> list[tuple[frozenset[str], ...]]:
    """The chains of sets of variables to hang atoms on, the longest first."""
    keys = {frozenset(variables) for label, variables in shared.items() if _hangs(label, whole, shared)}
    ordered = sorted(keys, key=lambda key: (len(key), sorted(key)))
    chains = [
        chain
        for number in range(len(ordered), 0, -1)
        for chain in combinations(ordered, number)
        if all(one < other for one, other in pairwise(chain))
    ]
    return chains[:MOST_CHAINS]


def _drawn(
    whole: Cqap, leaves: Leaves, rest: tuple[str, ...], chain: Sequence[list[str]], suffix: str
) -> tuple[Tree, Branch]:
    """The listing over the rest, the hooks above it, and how both are read."""
    labels = (*rest, *(label for hung in chain for label in hung))
    uses = Counter(variable for label in labels for variable in leaves.source(label).schema)
    needed = {variable for variable in uses if uses[variable] > 1} | whole.free
    parts = {label: Leaf(label, tuple(v for v in leaves.source(label).schema if v in needed)) for label in labels}
    inputs = tuple(variable for variable, _ in leaves.inputs)
    listing = StoredView(f"L{suffix}", (*inputs, *leaves.outputs), "view", rest)
    hooks = _hooks(listing, [[parts[label] for label in hung] for hung in chain], suffix)
    climb = [rule for below, hook in pairwise([None, *hooks]) if hook for rule in _up(listing, below, hook)]
    propagations = [
        Propagation(
            Leaf(label, leaves.source(label).schema),
            (Rule(listing, parts[label], (tuple(parts[other] for other in rest if other != label),)), *climb),
        )
        for label in rest
    ]
    propagations += [_propagation(leaves, hooks, hook, leaf, climb) for hook in hooks for leaf in hook.atoms]
    definitions = [Definition(listing, tuple(parts[label] for label in rest))]
    for below, hook in zip([listing, *(hook.all for hook in hooks)], hooks, strict=False):
        definitions += [Definition(hook.below, (below,)), Definition(hook.all, (hook.below, *hook.atoms))]
    reading = _reading(listing, hooks, inputs)
    blueprint = Blueprint(leaves, tuple(propagations), tuple(definitions), reading)
    return Tree(blueprint, labels), Branch(BranchReading(reading, ()), labels, frozenset())


def _hooks(listing: StoredView, chain: Sequence[list[Leaf]], suffix: str) -> list[_Hook]:
    """The hooks from the listing up, which is from the widest to the narrowest."""
    found: list[_Hook] = []
    atoms = listing.atoms
    for atoms_here in reversed(chain):
        schema = next(leaf.schema for leaf in atoms_here)
        schema = tuple(variable for variable in listing.schema if variable in schema)
        name = f"{len(found) + 1}{suffix}"
        below = StoredView(f"W{name}", schema, "view", atoms)
        atoms = (*atoms, *(leaf.label for leaf in atoms_here))
        found.append(_Hook(tuple(atoms_here), below, StoredView(f"V{name}", schema, "view", atoms)))
    return found


def _up(listing: StoredView, before: _Hook | None, hook: _Hook) -> list[Rule]:
    """How a change of what is below a hook gets above it."""
    origin = listing if before is None else before.all
    return [Rule(hook.below, origin, ()), Rule(hook.all, hook.below, (hook.atoms,))]


def _propagation(leaves: Leaves, hooks: list[_Hook], hook: _Hook, leaf: Leaf, climb: list[Rule]) -> Propagation:
    """What a change of a hung atom sets off: it meets what is below and the others there, and climbs from there."""
    others = tuple(other for other in hook.atoms if other != leaf)
    above = climb[2 * hooks.index(hook) + 2 :]
    return Propagation(
        Leaf(leaf.label, leaves.source(leaf.label).schema), (Rule(hook.all, leaf, ((hook.below, *others),)), *above)
    )


def _reading(listing: StoredView, hooks: list[_Hook], inputs: tuple[str, ...]) -> Reading:
    """From the topmost hook down to the listing; a row's payload is that of the listing and of all that is hung."""
    known = set(inputs)
    iterations = []
    for view in [*(hook.all for hook in reversed(hooks)), listing]:
        new = tuple(variable for variable in view.schema if variable not in known)
        known.update(new)
        iterations.append(Iteration(view, new))
    return Reading(tuple(iterations), (listing, *(leaf for hook in hooks for leaf in hook.atoms)))
