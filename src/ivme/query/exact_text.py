"""The text of a part of a query, by which parts are told apart.

Texts in Spark's words are not enough: sqlglot writes COLLECT_LIST without its order, and all percentiles as
PERCENTILE_APPROX, because Spark has nothing nearer. Two parts that differ in this would be taken for one. Texts in
sqlglot's own words do not tell CAST from TRY_CAST.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark

if TYPE_CHECKING:
    from sqlglot.generators.spark import SparkGenerator
else:
    SparkGenerator = Spark.Generator


class _Exact(SparkGenerator):
    TRANSFORMS: ClassVar = {kind: write for kind, write in SparkGenerator.TRANSFORMS.items() if kind != exp.WithinGroup}

    def arrayagg_sql(self, expression: exp.ArrayAgg) -> str:
        if isinstance(expression.this, exp.Order):
            return self.func("ARRAY_AGG", expression.this)
        return super().arrayagg_sql(expression)


def exact_text(node: exp.Expr) -> str:
    """The text of a node; different ones have different texts.

    >>> from sqlglot import parse_one
    >>> exact_text(parse_one("ARRAY_AGG(a ORDER BY b DESC)", dialect="spark"))
    'ARRAY_AGG(a ORDER BY b DESC)'
    >>> exact_text(parse_one("PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a)", dialect="spark"))
    'PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY a)'
    """
    return _Exact(dialect="spark", comments=False).generate(node)
