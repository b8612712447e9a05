"""Finds what a given name stands for, and says which views have names that no query can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, TypeGuard

from ivme.errors import PlanError, UnknownNameError, shown

if TYPE_CHECKING:
    from ivme.engine.runtime.catalog import Catalog
    from ivme.query.functions import Function
    from ivme.query.model import Table
    from ivme.query.read_select import ReadSelect
    from ivme.query.sql_text import SqlText
    from ivme.view import View
    from ivme.views.base_view import BaseView


def known(name: str, names: Iterable[str], kind: str) -> str:
    """The one of the names that is meant, in whatever case it is written; UnknownNameError lists them if none is."""
    found = {other.lower(): other for other in names}
    if not isinstance(name, str) or name.lower() not in found:
        listed = ", ".join(found.values()) or "none"
        raise UnknownNameError(
            f"there is no {kind} {name if isinstance(name, str) else shown(name)}; there are: {listed}"
        )
    return found[name.lower()]


def check_sources(catalog: Catalog, tables: Iterable[Table]) -> None:
    """Raises PlanError for a view that other views cannot be built on."""
    for table in tables:
        state = catalog.views.get(table.name)
        if state is not None and state.typed.query.input:
            asked = ", ".join(f"{name}=..." for name in state.typed.query.parameters)
            raise PlanError(
                f"view {table.name} has parameters, so it cannot be read as a whole; read the rows for given values "
                f"with db.view({table.name!r})({asked}), or with GET /views/{table.name}?{asked.replace(', ', '&')}"
            )
        if state is not None and not state.table.columns:
            raise PlanError(f"view {table.name} has no columns, so other views cannot read it")


def refuse_parameterised(catalog: Catalog, source: SqlText) -> None:
    """Raises the same for a view with parameters after FROM or JOIN, whatever else the text was refused for.

    A parameter is not a column: `FROM mine WHERE customer = 1` is refused at `customer`, which says nothing about why.
    """
    tables = {name.lower(): state.table for name, state in catalog.views.items()}
    for word, name in pairwise(source.tokens):
        if word.text.upper() in ("FROM", "JOIN") and name.text.lower() in tables:
            check_sources(catalog, [tables[name.text.lower()]])


def refuse_tables_of(query: str | ReadSelect, functions: Mapping[str, Function]) -> None:
    """Where there is no table at all: raises the error of a query that names one."""
    from ivme.query.sql_script import refuse_tables

    refuse_tables(query, functions)


def is_map_view(view: BaseView) -> TypeGuard[View]:
    """Whether a view's rows are in maps: not those of rings and of users' SQL. Views are loaded with the first one."""
    from ivme.view import View

    return isinstance(view, View) and view.is_stored
