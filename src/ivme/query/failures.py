"""Expressions without a value for some rows, in queries over several atoms: which rows those are, and who may see them.

An expression is computed at its atom, before the atom is joined, and the guard that keeps a failing row out of the
result may lie in another atom: `SELECT a.x / a.y FROM a JOIN b ON a.k = b.k WHERE b.ok`. So rows for which something
fails are left out of the query (`without_failures`), and the joins that they would take part in are queries of their
own (`failing_joins`): the query is in error exactly if one of these has a row.

What fails is taken as if it held: a row whose predicate fails passes it, and a row whose join key fails joins with
everything. One whose other columns fail is joined as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, replace
from itertools import chain, combinations

from ivme.query.can_fail import can_fail
from ivme.query.expression import Call, Expression, Literal, conjunction, conjuncts
from ivme.query.inference import type_of
from ivme.query.model import ORDER_AGGREGATES, Aggregate, Atom, HeadColumn, Query, Table

Place = tuple[int, int]
"""An atom's number, and the number of one of its columns."""


MOST_KEYS = 3
"""Up to how many join keys that may fail are told apart, in as many sets as there are: seven."""


@dataclass(frozen=True, slots=True)
class FailingJoin:
    """The joins of rows for which an expression of one of these atoms fails. The query has no row if all is well."""

    query: Query
    atoms: tuple[int, ...]


def without_failures(query: Query) -> Query:
    """The query over the rows for which nothing fails; a query over one atom as it is, since its WHERE is its guard.

    >>> from ivme.query.model import table
    >>> from ivme.query.sql import parse_sql
    >>> tables = [table("a", {"k": "int", "x": "int", "y": "int"}), table("b", {"k": "int", "ok": "bool"})]
    >>> query = parse_sql("SELECT a.x / a.y AS q FROM a JOIN b ON a.k = b.k WHERE b.ok AND a.x > 0", tables)
    >>> str(without_failures(query).atoms[0].where)
    '(x > 0) AND (NOT fails(x / y))'
    >>> [(str(each.query.atoms[0].where), each.atoms) for each in failing_joins(query)]
    [('(x > 0) AND fails(x / y)', (0,))]
    """
    if len(query.atoms) == 1:
        return query
    return replace(query, atoms=tuple(_sound(atom, query.table(atom.relation)) for atom in query.atoms))


def failing_joins(query: Query) -> tuple[FailingJoin, ...]:
    """What must have no row for the query to be without error.

    For each atom the joins of its rows that fail with all rows of the other atoms, failing or not; and, since a failing
    key joins with everything, the joins for each set of keys that fail together. With more than a few such keys there
    is one join for each atom, without any of them: it may refuse a row that a key that does not fail would keep out.
    """
    if len(query.atoms) == 1:
        return ()
    parts = [_parts(query, number) for number in range(len(query.atoms))]
    keys = [place for part in parts for place in part.keys]
    if len(keys) > MOST_KEYS:
        numbers = [n for n, part in enumerate(parts) if part.can_fail or part.keys]
        return tuple(FailingJoin(_join(query, parts, {n}, set(keys), is_any=True), (n,)) for n in numbers)
    sets = chain.from_iterable(combinations(keys, size) for size in range(1, len(keys) + 1))
    found = [FailingJoin(_join(query, parts, {n}, set()), (n,)) for n, part in enumerate(parts) if part.can_fail]
    for lost in sets:
        failing = tuple(dict.fromkeys(number for number, _ in lost))
        found.append(FailingJoin(_join(query, parts, set(), set(lost)), failing))
    return tuple(found)


def as_count(query: Query) -> Query:
    """How many rows a query has, without the variables that no join needs."""
    uses = Counter(term for atom in query.atoms for term in atom.terms)
    atoms = []
    for atom in query.atoms:
        kept = [i for i, term in enumerate(atom.terms) if not isinstance(term, str) or uses[term] > 1]
        columns = tuple(atom.columns[i] for i in kept)
        atoms.append(replace(atom, terms=tuple(atom.terms[i] for i in kept), columns=columns))
    head = (HeadColumn("0", Aggregate("count")),)
    return replace(query, output=(), atoms=tuple(atoms), head=head, distinct=False)


def with_failing_rows(query: Query) -> tuple[Atom, ...]:
    """The atoms with the rows that fail among theirs, and NULL for columns that fail and are not join keys.

    So rows are sent to where it is decided whether they are visible; where a key fails, `failure_of` says.
    """
    return tuple(_lenient(_parts(query, number)) for number in range(len(query.atoms)))


def failure_of(column: Expression, table: Table) -> Expression | None:
    """That a column of an atom has no value; None if it always has one."""
    return _fails([_in_type(column, table)]) if can_fail(column, table) else None


def failing_expressions(atom: Atom, table: Table) -> Iterator[Expression]:
    """The parts of an atom that may have no value, in the order in which they are computed."""
    for test in conjuncts(atom.where):
        if can_fail(test, table):
            yield test
    for column in atom.columns:
        if can_fail(column, table):
            yield _in_type(column, table)


@dataclass(frozen=True, slots=True)
class _Parts:
    """An atom and its table; `keys` are the places of columns that may fail and join, `loose` are others."""

    atom: Atom
    table: Table
    keys: tuple[Place, ...]
    loose: tuple[int, ...]

    @property
    def can_fail(self) -> bool:
        """Whether something may fail that decides nothing about whom a row joins with."""
        return bool(self.loose) or any(can_fail(test, self.table) for test in conjuncts(self.atom.where))


def _parts(query: Query, number: int) -> _Parts:
    atom = query.atoms[number]
    table = query.table(atom.relation)
    uses = Counter(term for each in query.atoms for term in each.terms)
    failing = [i for i, column in enumerate(atom.columns) if can_fail(column, table)]
    keys = [i for i in failing if uses[atom.terms[i]] > 1 or atom.terms[i] in query.input]
    return _Parts(atom, table, tuple((number, i) for i in keys), tuple(i for i in failing if i not in keys))


def _sound(atom: Atom, table: Table) -> Atom:
    """The rows of an atom that pass its predicate, and for which nothing fails."""
    tests: list[Expression] = []
    for test in conjuncts(atom.where):
        tests += [_not(_fails([test])), test] if can_fail(test, table) else [test]
    columns = [_in_type(column, table) for column in atom.columns if can_fail(column, table)]
    tests += [_not(_fails(columns))] if columns else []
    return replace(atom, where=conjunction(tests))


def _join(query: Query, parts: list[_Parts], failing: Set[int], lost: Set[Place], *, is_any: bool = False) -> Query:
    """The joins of rows for which the predicate or a loose column of the `failing` atoms and all `lost` keys fail.

    With `is_any`, it may as well be a key of the `failing` atoms, and the other atoms' keys may fail or not.

    Its payloads have the sums of the query's own, so that both share the maps of atoms that cannot fail.
    """
    atoms = [_rows(query, part, failing=n in failing, lost=lost, is_any=is_any) for n, part in enumerate(parts)]
    there = {variable for atom in atoms for variable in atom.variables}
    for number, column in sorted(lost):
        old = query.atoms[number]
        if old.terms[column] not in there:
            there.add(str(old.terms[column]))
            atoms[number] = _with_null(atoms[number], str(old.terms[column]), old.columns[column])
    sums = [a for a in query.aggregates if a.function not in ORDER_AGGREGATES]
    sums = sums or [Aggregate("count")] if query.aggregates else sums
    free = query.input + query.output
    sources: tuple[str | Aggregate, ...] = (*free, *sums)
    head = [HeadColumn(f"{i}", source) for i, source in enumerate(sources)]
    return replace(query, output=free, input=(), parameters=(), atoms=tuple(atoms), head=tuple(head))


def _rows(query: Query, part: _Parts, *, failing: bool, lost: Set[Place], is_any: bool) -> Atom:
    atom, table = part.atom, part.table
    here = {column for place, column in lost if (place, column) in part.keys}
    tests = [_as_if_true(test, table) for test in conjuncts(atom.where)]
    for _, i in () if is_any else part.keys:
        fails = _fails([_in_type(atom.columns[i], table)])
        tests.append(fails if i in here else _not(fails))
    if failing:
        loose = [_in_type(atom.columns[i], table) for i in (*part.loose, *(here if is_any else ()))]
        tests.append(_fails([*(test for test in conjuncts(atom.where) if can_fail(test, table)), *loose]))
    kept = [i for i in range(len(atom.terms)) if i not in here]
    tests += [_given(atom.columns[i]) for i in kept if atom.terms[i] in query.input]
    columns = tuple(_null(atom.columns[i]) if i in part.loose else atom.columns[i] for i in kept)
    return replace(atom, terms=tuple(atom.terms[i] for i in kept), columns=columns, where=conjunction(tests))


def _lenient(part: _Parts) -> Atom:
    columns = [
        Call("case", (_not(_fails([_in_type(column, part.table)])), column)) if i in part.loose else column
        for i, column in enumerate(part.atom.columns)
    ]
    where = conjunction(_as_if_true(test, part.table) for test in conjuncts(part.atom.where))
    return replace(part.atom, columns=tuple(columns), where=where)


def _as_if_true(test: Expression, table: Table) -> Expression:
    return Call("or", (_fails([test]), test)) if can_fail(test, table) else test


def _in_type(column: Expression, table: Table) -> Expression:
    """The column so that it fails, too, where its value does not fit its type."""
    type_ = type_of(column, table)
    if type_ is None or type_.kind != "decimal":
        return column
    return Call("cast_decimal", (column, Literal(type_.precision), Literal(type_.scale)))


def _fails(expressions: Iterable[Expression]) -> Expression:
    return Call("fails", tuple(expressions))


def _not(test: Expression) -> Expression:
    return Call("not", (test,))


def _given(column: Expression) -> Expression:
    """That a parameter may equal the column: NULL equals nothing."""
    return _not(Call("is_null", (column,)))


def _null(column: Expression) -> Expression:
    """NULL in the column's type."""
    return Call("case", (Literal(False), column))


def _with_null(atom: Atom, variable: str, column: Expression) -> Atom:
    return replace(atom, terms=(*atom.terms, variable), columns=(*atom.columns, _null(column)))
