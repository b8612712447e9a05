"""Each place of a text that reads a table as a table of its own, whose rows can be routed by a column of their own.

`SELECT src FROM edge UNION SELECT dst FROM edge` reads one table by two columns: an engine has `edge` twice then, as it
has for a self-join. A text that gives a name of WITH to a table, too, or that is recursive, is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from ivme.query.functions import Function
from ivme.query.model import HeadColumn, Table
from ivme.query.read_select import ReadSelect
from ivme.query.sql import one_statement

if TYPE_CHECKING:
    from ivme.query.sql_text import SqlText

Functions = Mapping[str, Function]


def tables_read(text: str, tables: Iterable[Table], functions: Functions) -> tuple[str, ...]:
    """The tables that a SELECT reads, place by place; none if it is not one, or its places cannot be told apart."""
    return tuple(_known(tables)[node.name.lower()] for node in _places(_parsed(text, functions)[1], tables))


def renamed_text(
    text: str,
    names: Sequence[str] | None,
    tables: Iterable[Table],
    functions: Functions,
    shown: tuple[HeadColumn, ...] | None = None,
    *,
    from_start: bool = False,
) -> str | ReadSelect:
    """A SELECT that reads tables of these names, place by place, or those that it names.

    What `shown` and `from_start` are, `ReadSelect` says. A text of which nothing changes stays one.
    """
    if names is None and shown is None and not from_start:
        return text
    source, node = _parsed(text, functions)
    for place, name in zip(_places(node, tables), names, strict=True) if names is not None else ():
        if not place.alias:
            place.set("alias", exp.TableAlias(this=exp.to_identifier(place.name)))
        place.set("this", exp.to_identifier(name, quoted=True))
    return ReadSelect(source, node, shown, from_start)


def _parsed(text: str, functions: Functions) -> tuple[SqlText, exp.Expr]:
    return one_statement(text, functions=functions)


def _known(tables: Iterable[Table]) -> dict[str, str]:
    return {table.name.lower(): table.name for table in tables}


def _places(node: exp.Expr, tables: Iterable[Table]) -> list[exp.Table]:
    known = _known(tables)
    is_recursive = any(each.args.get("recursive") for each in node.find_all(exp.With))
    if is_recursive or {cte.alias.lower() for cte in node.find_all(exp.CTE)} & known.keys():
        return []
    return [each for each in node.find_all(exp.Table) if len(each.parts) == 1 and each.name.lower() in known]
