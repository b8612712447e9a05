"""A SELECT that was read before: a part of a statement, or made of parts of one, with its places in that text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from ivme.query.model import HeadColumn
    from ivme.query.sql_script import SqlScript
    from ivme.query.sql_text import SqlText


@dataclass(frozen=True, slots=True)
class ReadSelect:
    """The syntax tree of a SELECT. It has no parameters: they have been replaced by their values.

    With `shown`, its last block shows these columns in place of its own: a shard shows parts of aggregates. With
    `from_start`, its LIMIT has OFFSET added to it, and none is skipped: a shard cannot know which rows to skip. With a
    `script`, it has been taken apart before, and `node` is that of its last block.
    """

    source: SqlText
    node: exp.Expr
    shown: tuple[HeadColumn, ...] | None = None
    from_start: bool = False
    script: SqlScript | None = None
