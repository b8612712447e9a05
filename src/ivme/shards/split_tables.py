"""Each place of a text that reads a table as a table of its own, whose rows can be routed by a column of their own.

`SELECT src FROM edge UNION SELECT dst FROM edge` reads one table by two columns: an engine has `edge` twice then, as it
has for a self-join. A text that gives a name of WITH to a table, too, or that is recursive, is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from ivme.query.functions import Function
from ivme.query.model import HeadColumn, Table
from ivme.query.read_select import ReadSelect
from ivme.query.sql import one_statement

if TYPE_CHECKING:
    from ivme.query.sql_script import SqlScript
    from ivme.query.sql_text import SqlText

Functions = Mapping[str, Function]


def tables_read(text: str | ReadSelect, tables: Iterable[Table], functions: Functions) -> tuple[str, ...]:
    """The tables that a SELECT reads, place by place; none if it is not one, or its places cannot be told apart."""
    nodes = _nodes(text.script) if isinstance(text, ReadSelect) else [_parsed(text, functions)[1]]
    return tuple(_known(tables)[place.name.lower()] for node in nodes for place in _places(node, tables))


def renamed_text(
    text: str | ReadSelect,
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
    if isinstance(text, ReadSelect):
        assert text.script is not None, "a text, or a fragment of one"
        selects = [(name, node.copy()) for name, node in text.script.selects]
        _rename([node for _, node in selects], names, tables)
        script = replace(text.script, selects=tuple(selects))
        return replace(text, script=script, node=selects[-1][1], shown=shown, from_start=from_start)
    source, node = _parsed(text, functions)
    _rename([node], names, tables)
    return ReadSelect(source, node, shown, from_start)


def _rename(nodes: Sequence[exp.Expr], names: Sequence[str] | None, tables: Iterable[Table]) -> None:
    places = [place for node in nodes for place in _places(node, tables)] if names is not None else []
    for place, name in zip(places, names or (), strict=True):
        if not place.alias:
            place.set("alias", exp.TableAlias(this=exp.to_identifier(place.name)))
        place.set("this", exp.to_identifier(name, quoted=True))


def _nodes(script: SqlScript | None) -> list[exp.Expr]:
    assert script is not None, "a text, or a fragment of one"
    return [node for _, node in script.selects]


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
