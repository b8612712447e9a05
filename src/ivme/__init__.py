"""ivme keeps the answers of queries fresh while the data changes.

>>> import ivme
>>> view = ivme.explain("Q(A, B, C) = R(A, B), S(A, C)")
>>> view.query_class, view.strategy, str(view.update), str(view.delay)
('CQAP0', 'view-tree', 'O(1)', 'O(1)')
"""

from __future__ import annotations

from ivme.compile import compile_query as _compile_query
from ivme.errors import IvmeError
from ivme.plan.explain import Explanation
from ivme.query.model import Query as _Query
from ivme.tables import Tables as _Tables

__all__ = ["Explanation", "IvmeError", "__version__", "explain"]
__version__ = "0.1.0"


def explain(query: str | _Query, tables: _Tables | None = None, **options: object) -> Explanation:
    """What ivme would do for a view, and what that guarantees, without any data.

    `query` is SQL or a rule. `tables` maps names to schemas (columns with types, or just names), or lists tables;
    without it, they are those that the text implies. Options: `strategy`, `epsilon` (a number from 0 to 1, "auto", or
    one for each relation), `append_only` and `static` (names of tables), `semantics` ("bag", "set" or "ring"),
    `space` ("linear" or "source"), `rebalance` ("amortised" or "deamortised").
    """
    return _compile_query(query, tables, **options)
