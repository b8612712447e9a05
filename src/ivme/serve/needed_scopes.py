"""Which scopes a statement of SQL needs: what it reads, what it changes, and whether it defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from ivme.query.sql import whole_statement
from ivme.serve.grants import Grant
from ivme.statements.model import (
    CreateTableAs,
    Delete,
    Describe,
    Explain,
    Insert,
    Merge,
    Select,
    Show,
    Statement,
    Transaction,
    Update,
)
from ivme.statements.select import pointing_into

if TYPE_CHECKING:
    from ivme.database import Database

Change = Insert | Update | Delete | Merge


def check_scopes(database: Database, grant: Grant, statement: Statement) -> None:
    """Raises `RefusedError` for a statement that a token does not allow."""
    match statement:
        case Transaction() | Show():
            return
        case Describe():
            if not grant.sees(name_of(statement.relation)):
                grant.require("read", name_of(statement.relation))
        case Insert() | Update() | Delete() | Merge():
            grant.require("write", name_of(statement.table))
            if _looks_at_rows(statement):
                grant.require("read", name_of(statement.table))
        case Select() | Explain():
            pass
        case _:
            grant.require_define()
    if not grant.allows("read", "*"):
        _check_reads(database, grant, _expressions(database, statement))


def _looks_at_rows(statement: Change) -> bool:
    """Whether a change depends on the rows that are there, or gives rows back: that tells something of them."""
    if isinstance(statement, Insert):
        return statement.conflict is not None or bool(statement.returning)
    return bool(statement.returning) or isinstance(statement, Update | Merge) or statement.where is not None


def _expressions(database: Database, statement: Statement) -> Iterator[exp.Expr]:
    """The syntax trees that may name relations."""
    match statement:
        case Select():
            with pointing_into(statement):
                yield whole_statement(statement.text, functions=database.definitions.functions.defined)[1]
        case Explain():
            yield from _expressions(database, statement.query)
        case CreateTableAs(rows=Select() as query):
            yield from _expressions(database, query)
        case Insert():
            yield from _inserted(database, statement)
        case Update():
            yield from (node for _, node in statement.values)
            yield from _given(statement.where)
        case Delete():
            yield from _given(statement.where)
        case Merge():
            yield from (statement.using, statement.on)
            for when in statement.whens:
                yield from (*_given(when.condition), *(node for _, node in when.values or ()))


def _inserted(database: Database, statement: Insert) -> Iterator[exp.Expr]:
    if isinstance(statement.rows, Select):
        yield from _expressions(database, statement.rows)
    elif isinstance(statement.rows, tuple):
        yield from (node for row in statement.rows for node in row)
    if statement.conflict is not None:
        yield from (node for _, node in statement.conflict.values or ())
        yield from _given(statement.conflict.where)


def _given(node: exp.Expr | None) -> list[exp.Expr]:
    return [] if node is None else [node]


def _check_reads(database: Database, grant: Grant, nodes: Iterable[exp.Expr]) -> None:
    """Each relation that is named may be read.

    A name of WITH needs no scope, unless a relation has it as well: whether that is hidden is not found out here.
    """
    known = {each.name.lower() for each in database.definitions.relations()}
    for node in nodes:
        hidden = {each.alias.lower() for each in node.find_all(exp.CTE)} - known
        for table in node.find_all(exp.Table):
            if name_of(table).lower() not in hidden:
                grant.require("read", name_of(table))


def name_of(node: exp.Table) -> str:
    """The name of a relation, as it is written."""
    return ".".join(part.name for part in node.parts)
