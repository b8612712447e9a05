"""Checks what `why` answers: the rows that it names, alone in an empty database, give the row that was asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from ivme.database import Database
from ivme.engine.read.reasons import Finding
from ivme.query.expression import ColumnRef
from ivme.query.model import Atom, Constant

Row = tuple[Any, ...]
Contents = dict[str, Counter[Row]]


@contextmanager
def whole_answers() -> Iterator[None]:
    """Answers name all rows, where users see the first few and how many more there are."""
    with patch("ivme.engine.read.reasons.MOST_SHOWN", 10**6):
        yield


def walk(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings with all that is below them."""
    for finding in findings:
        yield finding
        yield from walk(finding.below)


def named(finding: Finding) -> str:
    """The relation that a finding is about."""
    return finding.relation.removesuffix(" (filtered)").partition("#")[0].partition(" AS ")[0]


def witness(db: Database, view: Any, row: Row, **parameters: Any) -> Contents:
    """The rows of tables that `why` names, as often as the tables have them; rows of views are asked for in turn."""
    found: Contents = {}
    for finding in walk(view.why(row, **parameters).findings):
        name = named(finding)
        if name in db.tables:
            held = Counter(db.table(name))
            found.setdefault(name, Counter()).update(_held(view, finding, held))
        elif name in db.views and name != view.name:
            for below in finding.tuples:
                for table, rows in witness(db, db.view(name), below).items():
                    found.setdefault(table, Counter()).update(rows)
    tables = {table: Counter(db.table(table)) for table in found}
    return {table: Counter({row: tables[table][row] for row in rows}) for table, rows in found.items()}


def _held(view: Any, finding: Finding, held: Counter[Row]) -> list[Row]:
    """The rows of a table that a finding names: whole ones, or by the variables of a rule, and of marks."""
    if all(row in held for row in finding.tuples):
        return list(finding.tuples)
    query = view.query if hasattr(view, "query") else view.state.typed.written
    atoms = [atom for atom in query.atoms if atom.relation == named(finding)]
    names = query.table(named(finding)).column_names
    matching = [
        row
        for row in held
        for atom in atoms
        for shown in finding.tuples
        if len(atom.variables) == len(shown) and _is_like(dict(zip(names, row, strict=True)), atom, shown)
    ]
    assert matching, f"{finding} is not of {held}"
    return matching


def _is_like(row: dict[str, Any], atom: Atom, shown: Row) -> bool:
    """Whether a row of a table has what an atom shows of it."""
    known = dict(zip(atom.variables, shown, strict=True))
    named = [(row[c.name], t) for t, c in zip(atom.terms, atom.columns, strict=True) if isinstance(c, ColumnRef)]
    return all(value == (term.value if isinstance(term, Constant) else known[term]) for value, term in named)
