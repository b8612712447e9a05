"""What is known of a view's parameters once they have types: whether defaults fit, and lists can be put together."""

from __future__ import annotations

from ivme.errors import shown
from ivme.query.defaults import fits, not_combined
from ivme.query.model import Query
from ivme.query.sql_text import SqlText
from ivme.query.typed import TypedQuery

_AVERAGE = (
    "group by what the list is of, which gives a row for each member; an average is a SUM and a COUNT when reading"
)


def refuse_misfits(source: SqlText, view: TypedQuery, rows: TypedQuery) -> None:
    """Refuses a default of another type, and aggregates across a list that are not known from those of its members.

    `rows` is the query behind an order, or the view itself.
    """
    variables = dict(zip(view.query.parameters, view.query.input, strict=True))
    for default in source.defaults:
        if default.parameter in variables:
            type_ = view.types[variables[default.parameter]]
            value = dict(view.query.defaults)[default.parameter]
            if not fits(value, type_):
                message = f"the default of :{default.parameter} is {shown(value)}, and the parameter of type {type_}"
                raise source.unsupported(message, default.start, f"write a constant of type {type_}")
    found = not_combined(rows.query, rows.types)
    name = next((name for name, across in rows.query.lists if across), "")
    if found is not None:
        message = f"{found} over all members of the list :{name} is not known from those of each member"
        raise source.unsupported(message, source.parameter(name), _AVERAGE)
    if name and _hides_keys(rows.query):
        message = f"the groups of all members of the list :{name} cannot be told apart"
        raise source.unsupported(message, source.parameter(name), "select all keys of GROUP BY")


def _hides_keys(query: Query) -> bool:
    shown = {column.source for column in query.head}
    return bool(query.aggregates) and not set(query.output) <= shown


def parameter_notes(view: TypedQuery) -> list[str]:
    """What explain() says about defaults, lists, and parameters with rows for all values."""
    query = view.query
    notes = [f"the parameter :{name} is {value!r} where a request leaves it out" for name, value in query.defaults]
    notes += [f"the parameter :{name} is a list: a request has the rows of its members" for name, _ in query.lists]
    for name, block in zip(query.parameters, query.known, strict=False):
        if block:
            notes.append(
                f"{block} has the values that :{name} is compared with; a request for another one is one for NULL"
            )
    return notes
