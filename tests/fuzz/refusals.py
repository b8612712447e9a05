"""Which views ivme may refuse: each reason is named, so that a view that is refused for another one is a difference."""

from __future__ import annotations

import re

from ivme.errors import DataError, IvmeError, PlanError, SchemaError, UnsupportedError
from tests.fuzz.views import ViewSpec

_ALWAYS = {
    "two parameters for one column": r"the parameters :\w+ and :\w+ are compared with the same column",
    "groups fixed by parameters": r"the groups are fixed by parameters",
    "an expression over a closure": r"an expression over the columns of a recursive query",
    "a filter over a closure": r"closure",
    "another type than a closure's": r"over a column of a recursive query is not supported",
    "UNION ALL that can be told": r"UNION ALL",
    "decimals too wide to compare": r"no decimal of 38 digits holds both",
}


def expected_refusal(view: ViewSpec, error: IvmeError) -> str | None:
    """The reason why a view may be refused; None if there is none."""
    text = str(error)
    if isinstance(error, UnsupportedError | SchemaError | PlanError):
        for reason, pattern in _ALWAYS.items():
            if re.search(pattern, text):
                return reason
    if isinstance(error, DataError) and "NaN cannot be a value" in text:
        return "the view that it reads has a NaN"
    strategy = dict(view.options).get("strategy")
    if strategy is not None and isinstance(error, PlanError | SchemaError | UnsupportedError):
        return f"strategy {strategy} is not for it"
    return None
