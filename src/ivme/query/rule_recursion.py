"""Recursive rules, where they are reachability: the transitive closure of a table of edges.

Recognised, up to names and the order of atoms:

    Q(X, Y) = edge(X, Y);
    Q(X, Z) = Q(X, Y), edge(Y, Z)        left-linear
    Q(X, Z) = edge(X, Y), Q(Y, Z)        or right-linear
    Q(X, Z) = Q(X, Y), Q(Y, Z)           or doubling

That is Q(X, Y) = closure(edge)(X, Y): each pair once, however many paths there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ivme.errors import UnsupportedError
from ivme.query.rule_syntax import AtomSyntax, RuleSyntax

_INSTEAD = (
    "write Q(X, Y) = edge(X, Y); Q(X, Z) = Q(X, Y), edge(Y, Z), or closure(edge)(X, Y), "
    "and do everything else in rules that read it"
)


def as_closure(rules: tuple[RuleSyntax, ...], text: str, known: Sequence[str]) -> tuple[RuleSyntax, ...]:
    """The rules, or one rule over a closure if their head is in a body.

    A single rule may read a table that is called as its head is: alone it cannot be reachability. Several rules never
    do, so that they keep their meaning when such a table is made.
    """
    head = rules[0].name.value.lower()
    if len(rules) == 1 and head in map(str.lower, known):
        return rules
    own = [_own_atoms(rule, head) for rule in rules]
    first = next((atom for atoms in own for atom in atoms), None)
    if first is None:
        return rules
    base = [rule for rule, atoms in zip(rules, own, strict=True) if not atoms]
    made = None
    if len(base) == 1 and not any(atom.closure for atoms in own for atom in atoms):
        made = _closure(base[0], [rule for rule in rules if rule is not base[0]], head)
    if made is None:
        message = f"{rules[0].name.value} is defined by itself, and is not recognised as reachability"
        raise UnsupportedError(message, text=text, position=first.token.position, instead=_INSTEAD)
    return (made,)


def _own_atoms(rule: RuleSyntax, head: str) -> list[AtomSyntax]:
    return [atom for atom in (*rule.atoms, *rule.negated) if atom.relation.lower() == head]


def _closure(base: RuleSyntax, steps: list[RuleSyntax], head: str) -> RuleSyntax | None:
    """The base with the closure of its edges in their place; None if the rules are not reachability."""
    ends = _pair(base)
    if ends is None or len(base.atoms) != 1 or base.atoms[0].closure or base.name.value.lower() != head:
        return None
    edges = base.atoms[0]
    is_reversed = _variables(edges) == ends[::-1]
    if not is_reversed and _variables(edges) != ends:
        return None
    if not all(_extends(step, edges.relation, head, is_reversed=is_reversed) for step in steps):
        return None
    return replace(base, atoms=(replace(edges, closure=True),))


def _extends(step: RuleSyntax, edges: str, head: str, *, is_reversed: bool) -> bool:
    """Whether a rule composes two relations of pairs end to end, each of which is the edges or the rule's own head."""
    ends = _pair(step)
    if ends is None or len(step.atoms) != 2 or step.name.value.lower() != head:
        return False
    pairs = []
    for atom in step.atoms:
        variables = _variables(atom)
        is_edge = atom.relation.lower() == edges.lower()
        if variables is None or atom.closure or not (is_edge or atom.relation.lower() == head):
            return False
        pairs.append(variables[::-1] if is_edge and is_reversed else variables)
    (a, b), (c, d) = pairs if pairs[0][0] == ends[0] else pairs[::-1]
    return (a, d) == ends and b == c and len({a, b, d}) == 3


def _pair(rule: RuleSyntax) -> tuple[str, ...] | None:
    """The two variables of the head of a rule that is a join of atoms."""
    variables = tuple(output.source for output in rule.outputs if isinstance(output.source, str))
    is_plain = not (rule.inputs or rule.negated or rule.conditions) and len(rule.outputs) == 2
    return variables if is_plain and len(set(variables)) == 2 else None


def _variables(atom: AtomSyntax) -> tuple[str, ...] | None:
    """The two variables of an atom that has nothing else."""
    terms = tuple(term for _, term in atom.terms or () if isinstance(term, str))
    return terms if len(terms) == len(atom.terms or ()) == 2 else None
