"""What a trigger wants of a relation's rows: an expression over the row, in one of several forms."""

from __future__ import annotations

from dataclasses import dataclass

from ivme.query.expression import Expression


@dataclass(frozen=True, slots=True)
class FeedColumn:
    """A column of a feed: an expression over the row, as a code or as something that a lift reads.

    `form` is "code"; "test" (1 where a predicate holds); "int" (a code that is summed); "float" (an
    order-preserving code); "known" (NULL where the value is NULL, and otherwise any code); or "low" and "high", the
    words of a wide integer.

    The expression counts only in rows for which `guard` holds, the predicate of its atom: WHERE comes before SELECT.
    """

    expression: Expression
    form: str
    guard: Expression | None = None
