"""Every error that ivme raises, in one small hierarchy.

An error is part of the interface: its message says what was wrong, where in the user's text, and what to do
instead. Catch `IvmeError` to catch them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Self

_LONGEST = 80
_WIDEST = 240


def shown(value: object) -> str:
    """A value as messages show it, cut if it is long; an int of thousands of digits has no text at all.

    >>> shown("a" * 100)[-6:], shown(10**5000)
    ('aaa...', 'an int with too many digits to show')
    """
    try:
        text = repr(value)
    except ValueError:
        return f"{'an int' if isinstance(value, int) else 'a ' + type(value).__name__} with too many digits to show"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class IvmeError(Exception):
    """The base of every error that ivme raises on purpose."""


class QueryError(IvmeError):
    """A query that is refused, with the place of the error in its text.

    `text` is the query as the user wrote it, and `position` the offset of the offending character, or None if there is
    no single one. `instead` says what to write. `others` are the other errors in the text.
    """

    def __init__(
        self,
        message: str,
        *,
        text: str = "",
        position: int | None = None,
        instead: str = "",
        others: tuple[QueryError, ...] = (),
    ) -> None:
        self.message = message
        self.text = text
        self.position = position
        self.instead = instead
        self.others = others
        super().__init__(self._render())

    @property
    def line(self) -> int | None:
        """The line of the offending character, counted from 1."""
        return None if self.position is None else self.text.count("\n", 0, self.position) + 1

    @property
    def column(self) -> int | None:
        """The column of the offending character, counted from 1."""
        return None if self.position is None else self.position - self.text.rfind("\n", 0, self.position)

    def _render(self) -> str:
        parts = [self.message]
        if self.position is not None and self.text:
            lines = self.text.split("\n")
            line, column = self.line, self.column
            assert line is not None
            assert column is not None
            parts[0] += f" (line {line}, column {column})"
            start = max(0, column - _WIDEST // 2) if len(lines[line - 1]) > _WIDEST else 0
            parts.append(f"  {lines[line - 1][start : start + _WIDEST]}\n  {' ' * (column - 1 - start)}^")
        if self.instead:
            parts.append(f"Instead: {self.instead}")
        return "\n".join([*parts, *(f"\nAlso: {other}" for other in self._shown_others())])

    def _shown_others(self) -> Iterator[str]:
        """The other errors, with each piece of advice once."""
        given = {self.instead}
        for other in self.others:
            known = other.instead in given
            given.add(other.instead)
            yield str(type(other)(other.message, text=other.text, position=other.position) if known else other)

    def with_others(self, others: tuple[QueryError, ...]) -> Self:
        """The same error, with the other errors in the text."""
        return type(self)(self.message, text=self.text, position=self.position, instead=self.instead, others=others)


class ParseError(QueryError):
    """The text is not a query: it breaks the grammar of rule notation or of SQL."""


class UnsupportedError(QueryError):
    """The text is a query, but not one that ivme maintains; `instead` says what to write."""


class UnknownNameError(QueryError):
    """A table, column, view or parameter that does not exist, or whose name is ambiguous."""


class MissingPackageError(IvmeError, ImportError):
    """A package that this part of ivme needs is not installed; the message has the line that installs it."""


class UnnamedValueError(IvmeError, TypeError):
    """A value passed by position where values are passed by name; the message has the call to write."""

    @classmethod
    def of_view(cls, view: str, parameters: Sequence[str], values: Sequence[object]) -> UnnamedValueError:
        """The error of a request to a view.

        >>> print(UnnamedValueError.of_view("flights", ["origin", "dest"], ["London"]))
        view flights takes values by name: write view(origin='London', dest=...)
        >>> print(UnnamedValueError.of_view("total", [], [3]))
        view total has no parameters: write view() or iterate over the view
        """
        if not parameters:
            return cls(f"view {view} has no parameters: write view() or iterate over the view")
        named = zip_longest(parameters, map(shown, values[: len(parameters)]), fillvalue="...")
        return cls(f"view {view} takes values by name: write view({', '.join(map('='.join, named))})")

    @classmethod
    def of_sql(cls) -> UnnamedValueError:
        """The error of a statement."""
        return cls(
            "sql() takes values by name: write :name in the text and pass name=value, "
            'as in db.sql("SELECT * FROM t WHERE id = :id", id=1); pass a dict as **values'
        )


class SchemaError(IvmeError):
    """A table definition, or a query's use of a table, that contradicts itself."""


class PlanError(IvmeError):
    """The requested strategy has no plan for the query, or the requested operation is not possible."""


class CancelledError(IvmeError):
    """The caller cancelled a request before it took effect. Nothing was changed."""


class BrokenViewError(IvmeError):
    """A view that could not be built when its directory was opened; the message says why, and what to do."""


class StaleCursor(IvmeError):  # noqa: N818
    """The data changed while a result was being read: an error in place of wrong rows."""


class VerificationError(IvmeError):
    """A view whose rows differ from its query computed from scratch."""


class DataError(IvmeError):
    """Data that cannot be applied: wrong types, deleting a row that does not exist, overflow. Nothing was changed."""


class MemoryLimitError(IvmeError):
    """A batch or a view that would exceed the memory limit of the database. Nothing was changed."""

    @classmethod
    def beyond(cls, limit: int) -> MemoryLimitError:
        """The error of whatever would go beyond a limit, in bytes."""
        return cls(
            f"this would take more memory than memory_limit allows, {limit:,} bytes; nothing was changed. "
            "Delete rows, drop views, or set a higher limit"
        )


class ExpressionError(DataError):
    """An expression that fails for a row: a division by zero, an overflow, a text that is not a date.

    The message names the view and the row as far as they are known.
    """

    def __init__(self, message: str, *, expression: str = "", reason: str = "", row: str = "", view: str = "") -> None:
        self.expression = expression
        self.reason = reason
        self.row = row
        self.view = view
        super().__init__(message)

    @classmethod
    def of(cls, expression: str, reason: str, *, row: str = "", view: str = "") -> ExpressionError:
        """The error of an expression, as far as the row and the view are known."""
        message = f"{f'view {view}: ' if view else ''}{expression} fails{f' for {row}' if row else ''}: {reason}"
        return cls(message, expression=expression, reason=reason, row=row, view=view)

    def of_view(self, view: str) -> ExpressionError:
        """The same error with the name of the view that has the expression."""
        return ExpressionError.of(self.expression, self.reason, row=self.row, view=self.view or view)


class SparkError(IvmeError):
    """Spark or Java is missing, cannot do what was requested, or failed."""


class PipelineError(IvmeError):
    """An error in a pipeline file; the message starts with the file, line and column."""


class StorageError(IvmeError):
    """The directory of a database cannot be opened, read or written; the message names the file."""


class DamagedError(StorageError):
    """A file of a database is damaged. None of its contents were used."""


class ServeError(IvmeError):
    """A server cannot be started with its settings."""


def still_needed(act: str, kind: str, name: str, needed: Iterable[str]) -> PlanError:
    """The error if a table or view cannot be dropped, replaced or renamed because views read it.

    >>> still_needed("replace", "view", "v", ["w"])
    PlanError('cannot replace view v: w needs it; drop view w, replace v, and create w again')
    """
    views = [*needed]
    named = ", ".join(views)
    verb, readers, them = ("needs", "view", named) if len(views) == 1 else ("need", "views", "them")
    then = " first" if act == "drop" else f", {act} {name}, and create {them} again"
    return PlanError(f"cannot {act} {kind} {name}: {named} {verb} it; drop {readers} {named}{then}")
