"""Functional dependencies of a query: which variables of an atom's rows determine which others.

They come from primary keys and UNIQUE columns (all columns follow from the key), from constants in filters (the
variable follows from nothing), from equal columns and from computed columns within an atom, and from the keys of views.
Each belongs to one atom: in the join of some atoms, with or without others as indicators, exactly their dependencies
hold. An input variable is not a constant: views hold all of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ivme.query.expression import Call, ColumnRef, Expression, Literal, columns_of
from ivme.query.model import Atom, Constant, Query, Table
from ivme.structure.hypergraph import labels_of

Rule = tuple[frozenset[str], frozenset[str]]
"""The variables that are given, and those that follow from them."""

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
"""Conditions that no row passes whose column is NULL."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Rows of the atom `label` that agree on `given` agree on `determined`."""

    label: str
    given: frozenset[str]
    determined: frozenset[str]

    def __str__(self) -> str:
        return f"{self.label}: {', '.join(sorted(self.given)) or '∅'} -> {', '.join(sorted(self.determined))}"


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of the atoms of a query."""

    all: tuple[Dependency, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.all)

    def of(self, label: str, variables: frozenset[str] | None = None) -> tuple[Rule, ...]:
        """The rules of an atom, or of its projection on some variables: those that it still shows."""
        mine = [(each.given, each.determined) for each in self.all if each.label == label]
        if variables is None:
            return tuple(mine)
        shown = [(given, determined & variables) for given, determined in mine if given <= variables]
        return tuple((given, determined) for given, determined in shown if not determined <= given)

    def closure(self, variables: Iterable[str], labels: Iterable[str] | None = None) -> frozenset[str]:
        """What some variables determine in the join of these atoms, or of all: C(X).

        >>> orders, customers = Dependency("O", frozenset("o"), frozenset("oc")), Dependency("C", *map(frozenset, "cg"))
        >>> sorted(Dependencies((orders, customers)).closure("o")), sorted(Dependencies((orders,)).closure("o"))
        (['c', 'g', 'o'], ['c', 'o'])
        """
        wanted = None if labels is None else frozenset(labels)
        rules = [(each.given, each.determined) for each in self.all if wanted is None or each.label in wanted]
        return closure(frozenset(variables), rules)

    def renamed(self, names: Mapping[str, Mapping[str, str]]) -> Dependencies:
        """The same under other names for variables, by label."""
        return Dependencies(
            tuple(
                replace(
                    each,
                    given=frozenset(names[each.label].get(v, v) for v in each.given),
                    determined=frozenset(names[each.label].get(v, v) for v in each.determined),
                )
                for each in self.all
            )
        )

    def prefixed(self, prefix: str) -> Dependencies:
        """The same under longer labels."""
        return Dependencies(tuple(replace(each, label=prefix + each.label) for each in self.all))


def closure(variables: frozenset[str], rules: Iterable[Rule]) -> frozenset[str]:
    """What some variables determine by some rules."""
    waiting, known, before = [*rules], variables, -1
    while waiting and len(known) != before:
        before = len(known)
        known = known.union(*[determined for given, determined in waiting if given <= known])
        waiting = [rule for rule in waiting if not rule[1] <= known]
    return known


def dependencies_of(query: Query) -> Dependencies:
    """The dependencies of a query's atoms, in its own variables.

    >>> from ivme.query.model import table
    >>> from ivme.query.rule import parse_rule
    >>> tables = [table("O", ["id", "customer"]), table("C", ["id", "city"], primary_key="id")]
    >>> [str(each) for each in dependencies_of(parse_rule("Q(G, COUNT) = O(I, K), C(K, G)", tables)).all]
    ['C: K -> G']
    """
    never_null = query.never_null
    found: dict[Dependency, None] = {}
    for label, atom in zip(labels_of(query), query.atoms, strict=True):
        for given, determined in _rules(atom, query.table(atom.relation), never_null):
            rest = determined - given
            if rest:
                found[Dependency(label, given, rest)] = None
    return Dependencies(tuple(found))


def view_keys(query: Query) -> tuple[tuple[str, ...], ...]:
    """The key of a view's rows, by the names of their columns: what its groups follow from, or its rows by keys of the
    tables. Empty if all columns together are the only one that is known; NULL counts as a value.

    >>> from ivme.query.rule import parse_rule
    >>> view_keys(parse_rule("Q(A, B, COUNT) = R(A, B, C)")), view_keys(parse_rule("Q(A, B) = R(A, B, C)"))
    ((('A', 'B'),), ())
    """
    shown = {c.source: c.name for c in reversed(query.head) if isinstance(c.source, str)}
    if query.aggregates and not set(query.output) <= set(shown):
        return ()
    dependencies = dependencies_of(query)
    needed = [v for v in dict.fromkeys(c.source for c in query.head) if isinstance(v, str)]
    for variable in reversed(needed):
        rest = [other for other in needed if other != variable]
        needed = rest if variable in dependencies.closure(rest) else needed
    return (tuple(shown[v] for v in needed),) if len(needed) < len(query.head) else ()


def has_key(atom: Atom, table: Table, never_null: frozenset[str]) -> bool:
    """Whether an atom reads all columns of a key of its table."""
    columns = _Columns(atom)
    return not atom.closure and any(map(columns.stand_for, columns.keys(table, never_null)))


def _rules(atom: Atom, table: Table, never_null: frozenset[str]) -> Iterator[Rule]:
    if atom.closure:
        return
    columns = _Columns(atom)
    everything = frozenset(atom.variables)
    for key in columns.keys(table, never_null):
        if columns.stand_for(key):
            yield columns.variables(key), everything
    pinned = frozenset(v for name in columns.pinned for v in columns.terms.get(name, ()))
    if pinned:
        yield frozenset(), pinned
    for names in columns.equal:
        same = frozenset(v for name in names for v in columns.terms.get(name, ()))
        for variable in same:
            yield frozenset({variable}), same
    for expression, term in zip(atom.columns, atom.terms, strict=True):
        read = [name.lower() for name in columns_of(expression)]
        if isinstance(term, str) and columns.stand_for(read):
            yield columns.variables(read), frozenset({term})


class _Columns:
    """Which variables stand for which columns of an atom, and what its filter says about them."""

    def __init__(self, atom: Atom) -> None:
        conditions = [*_conjuncts(atom.where)] if atom.where is not None else []
        named = [(c.name.lower(), t) for c, t in zip(atom.columns, atom.terms, strict=True) if isinstance(c, ColumnRef)]
        self.pinned = {name for name, term in named if isinstance(term, Constant)}
        self.not_null = set(self.pinned)
        pairs: list[set[str]] = []
        for condition in conditions:
            self._learn(condition, pairs)
        self.terms: dict[str, list[str]] = {}
        for name, term in named:
            if isinstance(term, str):
                self.terms.setdefault(name, []).append(term)
        repeated = [{name for name, term in named if term == variable} for variable in atom.variables]
        self.equal = _merged([*pairs, *(names for names in repeated if len(names) > 1)])
        self.equal += [{name} for name, terms in self.terms.items() if len(terms) > 1]
        self._same = {name: names for names in self.equal for name in names}

    def _learn(self, condition: Expression, pairs: list[set[str]]) -> None:
        match condition:
            case Call("not", (Call("is_null", (ColumnRef(name),)),)):
                self.not_null.add(name.lower())
            case Call("eq", (ColumnRef(name), Literal(value))) | Call("eq", (Literal(value), ColumnRef(name))):
                if value is not None:
                    self.pinned.add(name.lower())
                    self.not_null.add(name.lower())
            case Call("eq", (ColumnRef(one), ColumnRef(other))):
                pairs.append({one.lower(), other.lower()})
                self.not_null.update((one.lower(), other.lower()))
            case Call(function, arguments) if function in _COMPARISONS:
                self.not_null.update(each.name.lower() for each in arguments if isinstance(each, ColumnRef))

    def keys(self, table: Table, never_null: frozenset[str]) -> Iterator[list[str]]:
        """The keys that hold in the rows that the atom reads: a UNIQUE one only where none of its columns is NULL."""
        strict = [*table.keys, *([] if table.primary_key is None else [table.primary_key])]
        yield from ([name.lower() for name in key] for key in strict)
        declared = self.not_null | {name.lower() for name in (*table.not_null, *(table.primary_key or ()))}
        for key in table.unique:
            names = [name.lower() for name in key]
            if all(name in declared or not never_null.isdisjoint(self.terms.get(name, ())) for name in names):
                yield names

    def stand_for(self, names: Iterable[str]) -> bool:
        """Whether variables or constants stand for all of these columns."""
        return None not in map(self._found, names)

    def variables(self, names: Iterable[str]) -> frozenset[str]:
        """One variable for each of these columns that is not a constant."""
        return frozenset([v for name in names for v in (self._found(name) or ())[:1]])

    def _found(self, name: str) -> list[str] | None:
        """The variables of a column, or of one that is equal to it; empty if it is a constant, None if it has none."""
        same = [name, *sorted(self._same.get(name, set()) - {name})]
        if not self.pinned.isdisjoint(same):
            return []
        for each in same:
            if each in self.terms:
                return self.terms[each]
        return None


def _conjuncts(where: Expression) -> Iterator[Expression]:
    if isinstance(where, Call) and where.function == "and":
        for argument in where.arguments:
            yield from _conjuncts(argument)
    else:
        yield where


def _merged(groups: Iterable[set[str]]) -> list[set[str]]:
    """Groups that have a column in common as one."""
    found: list[set[str]] = []
    for group in groups:
        joined = [each for each in found if each & group]
        found = [each for each in found if each not in joined]
        found.append(group.union(*joined))
    return found
