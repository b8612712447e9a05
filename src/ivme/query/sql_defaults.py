"""The values of defaults: `:city DEFAULT 'Zurich'`. Their types are checked once those of parameters are known."""

from __future__ import annotations

from collections.abc import Container

import sqlglot

from ivme.errors import IvmeError
from ivme.query.expression import evaluate
from ivme.query.model import Value
from ivme.query.sql_expression import Scalars
from ivme.query.sql_scope import Scope
from ivme.query.sql_text import DIALECT

_ONCE = "write it once, or the same everywhere"


def read_defaults(scope: Scope, parameters: Container[str]) -> tuple[tuple[str, Value], ...]:
    """The defaults of parameters, in the order in which they are written."""
    source = scope.source
    found: dict[str, Value] = {}
    for default in source.defaults:
        if default.parameter not in parameters:
            continue
        node = sqlglot.parse_one(source.text[default.start : default.end], read=DIALECT)
        try:
            value = evaluate(Scalars(Scope(source, scope.catalog), ()).translate(node), {})
        except IvmeError as error:
            message = f"the default of :{default.parameter} cannot be computed: {error}"
            raise source.unsupported(message, default.start, "write another constant") from None
        first = found.setdefault(default.parameter, value)
        if first != value or type(first) is not type(value):
            raise source.unsupported(f"the parameter :{default.parameter} has two defaults", default.start, _ONCE)
    return tuple(found.items())
