"""Why a row is in a view, or why not, from the rows of its tables: for views of every strategy.

The query is joined as it was written, from the rows that agree with what is known of the view's row, atom by atom as
far as there are partners. It takes time and memory linear in the tables and in the joined rows of that key, and needs
no more of the view than its query. Marks tell the same from their maps (`why`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ivme.engine.read.reasons import Finding, Row, first_few
from ivme.engine.read.recompute import Assignments, Tables, joined_with, kinds_of, row_of, tuples_of
from ivme.engine.runtime.decoding import is_global
from ivme.query.expression import ColumnRef
from ivme.query.model import Aggregate, Atom, Query
from ivme.query.parse import is_sql
from ivme.query.sql_values import compare

Known = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is known of the row in question: the values of variables, and those of aggregates."""

    known: Known
    totals: tuple[tuple[Aggregate, Any], ...] = ()

    @classmethod
    def of(cls, values: Iterable[tuple[str | Aggregate, Any]], given: Known) -> Wanted:
        """From the values of what columns show, and those that inputs are given."""
        pairs = list(values)
        known = {source: value for source, value in pairs if isinstance(source, str)}
        return cls({**known, **given}, tuple((s, value) for s, value in pairs if isinstance(s, Aggregate)))


class Blocks(Protocol):
    """Knows what is behind the rows of blocks, which users do not know by name."""

    def is_block(self, relation: str) -> bool: ...
    def label(self, relation: str) -> str: ...
    def below(self, atom: Atom, known: Sequence[Known], *, present: bool, every: bool) -> tuple[Finding, ...]: ...


class Derivations:
    """The joined rows of a query at the values that are known of some rows of it.

    With `every`, all of them count, as they are added up by what reads the query; else one is enough for each row.
    """

    def __init__(
        self,
        tables: Tables,
        query: Query,
        wanted: Sequence[Wanted],
        blocks: Blocks | None = None,
        *,
        every: bool = False,
    ) -> None:
        self._wanted = wanted
        self._known = wanted[0].known
        self._blocks = blocks
        self._every = bool(query.aggregates) or (every and not query.distinct)
        self._query, self._rows = with_whole_rows(query, tables, blocks)
        query = self._query
        self._labels = _labels(query, blocks)
        self._names = [_names(query, atom) for atom in query.atoms]
        self._kinds = [kinds_of(atom, tables.relation(atom.relation)) for atom in query.atoms]
        self._tuples = [
            [each for each in tuples_of(tables, atom, query.never_null, i) if each[1] and self._is_wanted(each[0])]
            for i, atom in enumerate(query.atoms)
        ]

    def _is_wanted(self, assignment: Known) -> bool:
        return any(_agrees(assignment, each.known) for each in self._wanted)

    def present(self) -> tuple[Finding, ...]:
        """What joins to the rows in question: for each atom the rows that take part in a derivation."""
        whole = [each for each in self._joined() if self._is_wanted(each[0])]
        if self._query.aggregates:
            whole = self._of_groups(whole)
        chosen = whole if self._every else self._one_for_each(whole)
        return tuple(self._partners(place, whole, chosen) for place in range(len(self._query.atoms)))

    def absent(self, view: str) -> tuple[Finding, ...]:
        """The row of its group that is there instead of the one in question, or what has no partner."""
        steps = self._steps()
        whole = steps[-1] if len(steps) == len(self._query.atoms) else []
        if self._query.aggregates and (whole or is_global(self._query.head, self._query.output)):
            return (self._other(view, whole),)
        return self._lacking(steps)

    @property
    def is_whole(self) -> bool:
        """Whether all atoms join at what is known."""
        return bool(self._joined())

    def _joined(self) -> Assignments:
        steps = self._steps()
        return steps[-1] if len(steps) == len(self._query.atoms) else []

    def _of_groups(self, whole: Assignments) -> Assignments:
        """Those of the groups that have the wanted aggregates, if it is not known which groups these are."""
        keys = self._query.input + self._query.output
        if all(key in each.known for key in keys for each in self._wanted):
            return whole
        kept: Assignments = []
        for key, group in self._groups(whole).items():
            row, _ = row_of(self._query, key, group)
            totals = dict(zip((column.source for column in self._query.head), row, strict=True))
            known = dict(zip(keys, key, strict=True))
            if any(_agrees(known, w.known) and all(_is_same(totals[a], v) for a, v in w.totals) for w in self._wanted):
                kept += group
        return kept

    def _groups(self, whole: Assignments) -> dict[Row, Assignments]:
        keys = self._query.input + self._query.output
        groups: dict[Row, Assignments] = {}
        for one, weight in whole:
            groups.setdefault(tuple(one[variable] for variable in keys), []).append((one, weight))
        return groups

    def _one_for_each(self, whole: Assignments) -> Assignments:
        """The first derivation of each row in question."""
        found = (next((each for each in whole if _agrees(each[0], w.known)), None) for w in self._wanted)
        return [each for each in found if each is not None]

    def _partners(self, place: int, whole: Assignments, chosen: Assignments) -> Finding:
        """The rows of an atom that take part in derivations, and what is behind those of the chosen ones."""
        atom = self._query.atoms[place]
        behind = {tuple(one[v] for v in atom.variables): one for one, _ in chosen}
        rows = dict.fromkeys(self._row(place, one) for one, _ in [*chosen, *whole])
        return self._finding(place, self._known, list(rows), list(behind.values()))

    def _steps(self) -> list[Assignments]:
        """The joins of the first atoms, the first two, and so on, as far as there are partners."""
        partial: Assignments = [({}, 1)]
        kinds: dict[str, str] = {}
        found: list[Assignments] = []
        for place in self._order:
            partial = joined_with(partial, self._tuples[place], kinds, self._kinds[place])
            if not partial:
                break
            found.append(partial)
            kinds = {**self._kinds[place], **kinds}
        return found

    @property
    def _order(self) -> list[int]:
        """Atoms without a row first; each of the others shares variables with one before it, if it can."""
        left = sorted(range(len(self._tuples)), key=lambda place: bool(self._tuples[place]))
        order: list[int] = []
        known: set[str] = set()
        while left:
            place = next((p for p in left if known.intersection(self._query.atoms[p].variables)), left[0])
            left.remove(place)
            order.append(place)
            known.update(self._query.atoms[place].variables)
        return order

    def _other(self, view: str, whole: Assignments) -> Finding:
        """The rows that the groups at the key have; that of no rows, if there are none."""
        keys = self._query.input + self._query.output
        groups = self._groups(whole) or {tuple(self._known[variable] for variable in keys): []}
        there = [row_of(self._query, key, group)[0] for key, group in groups.items()]
        shown = [variable for variable in keys if variable in self._known and not variable.startswith("#")]
        at = tuple((variable, self._known[variable]) for variable in shown)
        return Finding(view, at, tuple(there))

    def _lacking(self, steps: list[Assignments]) -> tuple[Finding, ...]:
        """The atoms without a row at the key; or rows that were joined so far, and the atom that has none for them."""
        empty = [place for place, tuples in enumerate(self._tuples) if not tuples]
        if empty:
            return tuple(self._finding(place, self._known, []) for place in empty)
        *before, missing = self._order[: len(steps) + 1]
        atom = self._query.atoms[missing]
        needed: dict[Row, Known] = {}
        for one, _ in steps[-1]:
            needed.setdefault(tuple(repr(one[v]) for v in atom.variables if v in one), one)
        return tuple(self._chain(before, missing, one) for one in first_few([*needed.values()]))

    def _chain(self, before: list[int], missing: int, one: Known) -> Finding:
        """Joined rows one below the other, and what the last atom lacks at the bottom."""
        finding = self._finding(missing, {**self._known, **one}, [])
        for place in reversed(before):
            at = {variable: one[variable] for variable in self._query.atoms[place].variables}
            above = self._finding(place, at, [self._row(place, one)], [one])
            finding = Finding(above.relation, above.at, above.tuples, 0, (finding,))
        return finding

    def _row(self, place: int, assignment: Known) -> Row:
        return tuple(assignment[variable] for variable in self._rows[place])

    def _finding(self, place: int, known: Known, rows: list[Row], behind: Sequence[Known] = ()) -> Finding:
        """What an atom has at what is known, and what is behind some of its rows."""
        variables, names = self._query.atoms[place].variables, self._names[place]
        same = [v for v in variables if v in known and all(_is_same(one.get(v), known[v]) for one in behind)]
        at = tuple({names[variable]: known[variable] for variable in same if names[variable]}.items())
        below: tuple[Finding, ...] = ()
        if self._blocks is not None:
            asked = first_few(behind) or [known]
            below = self._blocks.below(self._query.atoms[place], asked, present=bool(rows), every=self._every)
        return Finding(self._labels[place], at, tuple(rows), 0, below)


def with_whole_rows(query: Query, tables: Tables, blocks: Blocks | None) -> tuple[Query, list[tuple[str, ...]]]:
    """The query with all columns of its tables, and the variables of a row that is shown, by atom.

    Who wrote SQL knows whole rows of tables. A rule names all that it reads, and rows of blocks are not known to users.
    """
    if query.text and not is_sql(query.text):
        return query, [atom.variables for atom in query.atoms]
    atoms, rows = [], []
    for number, atom in enumerate(query.atoms):
        named = {c.name: t for t, c in zip(atom.terms, atom.columns, strict=True) if isinstance(c, ColumnRef)}
        columns = tables.relation(atom.relation).column_names
        shown = {name: named.get(name) for name in columns}
        more = {name: f"{_HIDDEN}{number}.{name}" for name, term in shown.items() if not isinstance(term, str)}
        terms, read = (*atom.terms, *more.values()), (*atom.columns, *map(ColumnRef, more))
        atoms.append(replace(atom, terms=terms, columns=read))
        if blocks is not None and blocks.is_block(atom.relation):
            rows.append(tuple(v for v in atom.variables if not v.startswith("#")))
        else:
            rows.append(tuple(str(more.get(name, shown[name])) for name in columns))
    return replace(query, atoms=tuple(atoms)), rows


_HIDDEN = "#of atom "
"""What variables begin with that stand for columns which the query does not read."""


def _names(query: Query, atom: Atom) -> dict[str, str]:
    """What the variables of an atom are called: columns of SQL; nothing if users do not know them."""
    if query.text and not is_sql(query.text):
        return {variable: variable for variable in atom.variables}
    columns = {str(t): c.name for t, c in zip(atom.terms, atom.columns, strict=True) if isinstance(c, ColumnRef)}
    heads = {str(column.source): column.name for column in query.head}
    called = {v: columns.get(v, v) for v in atom.variables}
    named = {v: heads.get(v, "") if "#" in name else name for v, name in called.items()}
    return {v: "" if "#" in name else name for v, name in named.items()}


def _agrees(assignment: Known, known: Known) -> bool:
    return all(_is_same(value, known[variable]) for variable, value in assignment.items() if variable in known)


def _is_same(value: Any, other: Any) -> bool:
    if value is None or other is None:
        return other is value
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other) or value == other or (math.isnan(value) and math.isnan(other))
    return compare(value, other) == 0


def _labels(query: Query, blocks: Blocks | None) -> list[str]:
    """The relations of the atoms, by their aliases or numbered by occurrence where one repeats; what a filter drops is
    not there."""
    names = [
        atom.relation if blocks is None or not blocks.is_block(atom.relation) else blocks.label(atom.relation)
        for atom in query.atoms
    ]
    aliased = [
        f"{n} AS {atom.alias}" if names.count(n) > 1 and atom.alias and n == atom.relation else n
        for n, atom in zip(names, query.atoms, strict=True)
    ]
    names = aliased if len(set(aliased)) == len(aliased) else names
    numbered = [n if names.count(n) == 1 else f"{n}#{names[: i + 1].count(n)}" for i, n in enumerate(names)]
    return [
        label if atom.where is None else f"{label} (filtered)"
        for label, atom in zip(numbered, query.atoms, strict=True)
    ]
