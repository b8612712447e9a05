"""What every view of a database has, whatever maintains it: the kernel's maps, a closure, a ring, or a user's SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Never, overload
from weakref import WeakSet

from ivme.changes import Changes, Subscription
from ivme.engine.read.reasons import Reasons
from ivme.engine.read.reasons import shown as shown_row
from ivme.errors import DataError, PlanError, shown
from ivme.extras import pandas_frame, polars_frame
from ivme.query.order import Order
from ivme.shown_table import SHOWN_ROWS, html_table, is_numeric, rows_shown, text_table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from ivme.engine.runtime.transaction import SharedSide, StateLock
    from ivme.views.ordered_reading import PageRequest

Row = tuple[Any, ...]


class BaseView(ABC):
    """A view: its rows, whole or for given parameters, its changes, its cost and its statistics.

    `items` pairs each distinct row with its multiplicity; in a ring view with its element of the ring.
    """

    is_stored: ClassVar[bool] = True
    """Whether a directory keeps its definition."""

    before_reading: Callable[[], None] | None = None
    """What its first reader is to be told."""

    _gone = ""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters; empty for a view without parameters."""

    @property
    @abstractmethod
    def relations(self) -> tuple[str, ...]:
        """The tables and views that the view reads."""

    # Reading

    def __iter__(self) -> Iterator[Row]:
        return self()

    @abstractmethod
    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request; a row of multiplicity m comes m times."""

    @abstractmethod
    def items(self, **parameters: Any) -> Iterator[tuple[Row, Any]]:
        """The distinct rows, with their multiplicities; all from one state of the database."""

    def count(self, **parameters: Any) -> int:
        """The number of rows, with multiplicities."""
        return sum(1 for _ in self(**parameters))

    def scalar(self, **parameters: Any) -> Any:
        """The only value of the only row."""
        rows = list(islice(self(**parameters), 2))
        if len(rows) != 1 or len(rows[0]) != 1:
            number = "2 or more" if len(rows) > 1 else len(rows)
            shape = f"{number} rows of {len(self.columns)} columns"
            raise DataError(f"view {self.name} is not a single value: it has {shape}")
        return rows[0][0]

    def rows(
        self,
        *,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        after: Row | None = None,
        **parameters: Any,
    ) -> list[Row]:
        """A page of rows in an order.

        `order_by` lists columns, with a minus sign to sort in descending order. Without it, rows come in the view's own
        order, or by all columns if it has none. `after` is the last row of the previous page; the next page is right
        even if rows were inserted or deleted since. Copies of a row are always on one page. If an ordered map has this
        order (LIMIT, or ORDER BY with `favour="reads"`), a page costs O(log N) and O(1) a row; otherwise all rows are
        sorted.
        """
        from ivme.views.ordered_reading import PageRequest, listed, order_keys

        order = None if order_by is None else order_keys(self.name, self.columns, order_by)
        return listed(self.page(PageRequest(order, limit, offset, after), parameters))

    def page(self, request: PageRequest, parameters: Mapping[str, Any]) -> pa.Table:
        """A page of the rows; all rows are sorted for it."""
        from ivme.views.ordered_reading import page_table

        order = self.own_order if request.order is None else request.order
        return page_table(self.name, self.to_arrow(**parameters), replace(request, order=order))

    @property
    def own_order(self) -> Order | None:
        """The order in which rows are read by position; None if they are in that order already."""
        return Order((), None, 0, "")

    def __len__(self) -> int:
        """The number of rows, with multiplicities."""
        return self.count()

    def __bool__(self) -> bool:
        """Whether there is a row; one with parameters is never false."""
        return bool(self.parameters) or next(iter(self()), None) is not None

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> list[Row]: ...
    def __getitem__(self, key: int | slice) -> Row | list[Row]:
        """A row by its position, or those of a slice, in the view's order, or by all columns if it has none."""
        from ivme.views.ordered_reading import check_position, span_of

        with self.lock:
            size = len(self)
            if isinstance(key, slice):
                return self._between(*span_of(key, size))
            check_position(key)
            place = key + size if key < 0 else key
            if not 0 <= place < size:
                raise IndexError(f"view {self.name} has {size} rows, and no row {key}")
            return self._between(place, place + 1)[0]

    def _between(self, start: int, stop: int) -> list[Row]:
        """The rows from a position up to another."""
        from ivme.views.ordered_reading import PageRequest, listed

        return listed(self.page(PageRequest(offset=start), {}))[: stop - start]

    def sample(self, count: int, *, seed: int | None = None) -> list[Row]:
        """A random sample of so many rows, or all rows if there are fewer; every set of rows is equally likely.

        The same seed and the same rows give the same sample.
        """
        from ivme.views.ordered_reading import drawn

        with self.lock:
            return self._at(drawn(len(self), count, seed))

    def _at(self, places: list[int]) -> list[Row]:
        """Rows by their positions in any order of all rows, which stays the same while nothing changes."""
        from ivme.views.ordered_reading import listed

        return listed(self.to_arrow().take(places)) if places else []

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """The number of copies of a row in the view; 0 if there are none."""
        return sum(1 for found in self(**parameters) if found == row)

    def __contains__(self, row: object) -> bool:
        return isinstance(row, tuple) and self.multiplicity(row) != 0

    def request_many(self, **columns: Any) -> pa.Table:
        """The rows for many values of the parameters: each parameter is a list, or an array of NumPy or Arrow."""
        raise PlanError(
            f"view {self.name} answers one request at a time: {', '.join(columns) or 'it has no parameters'}"
        )

    @abstractmethod
    def to_arrow(self, **parameters: Any) -> pa.Table:
        """The rows as an Arrow table, all from one state of the database."""

    def to_pandas(self, **parameters: Any) -> pandas.DataFrame:
        """The rows as a pandas DataFrame."""
        return pandas_frame(self.to_arrow(**parameters))

    def to_polars(self, **parameters: Any) -> polars.DataFrame:
        """The rows as a polars DataFrame."""
        return polars_frame(self.to_arrow(**parameters))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as Arrow's C interface has them, for `pa.table(view)`, `pl.DataFrame(view)`, and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        """The first rows; of a view with parameters, or one that is gone, its name and columns."""
        if self.parameters or self.is_gone:
            return repr(self)
        first, summary = self._first_rows()
        right = [is_numeric([row[place] for row in first]) for place in range(len(self.columns))]
        return text_table(self.columns, first, right, summary)

    def _repr_html_(self) -> str:
        """The first rows, or the parameters that they need."""
        title = f"<p>view <b>{escape(self.name)}</b></p>"
        if self.parameters:
            return f"{title}<p>parameters: {escape(', '.join(self.parameters))}</p>"
        return title + html_table(self.columns, *self._first_rows())

    def _first_rows(self) -> tuple[list[Row], str]:
        """The first rows, and a line that says whether there are more."""
        first = list(islice(self, SHOWN_ROWS + 1))
        more = f"more than {SHOWN_ROWS} rows" if len(first) > SHOWN_ROWS else rows_shown(len(first))
        return first[:SHOWN_ROWS], more

    def _repr_svg_(self) -> str:
        """The picture of its plan: what is stored for it, and of what."""
        picture: str = self.explain()._repr_svg_()
        return picture

    def snapshot(self, **parameters: Any) -> pa.Table:
        """The rows as they are now; the result does not change when the database does."""
        return self.to_arrow(**parameters)

    # Changes

    def changes(self, *, wait: bool = False, **parameters: Never) -> Changes:
        """A feed of the changes of the view: one for each batch from now on that changes its rows.

        Iterating yields the changes since the last time; with `wait`, and in `async for`, it waits for more.
        """
        self.check_alive()
        if parameters:
            raise PlanError(
                f"changes() of view {self.name} takes no parameters, but gives all changes: the rows of a view with "
                "parameters begin with their values, by which you can choose"
            )
        self.check_followed()
        return Changes(self, wait=wait)

    def subscribe(self, function: Callable[[Any], object]) -> Subscription:
        """Calls a function, in its own thread, with each change of the view's rows from now on, until it is closed."""
        if not callable(function):
            raise DataError(f"a subscriber is a function of one change; it is {shown(function)}")
        return Subscription(self.name, self.changes(wait=True), function)

    def check_followed(self) -> None:  # noqa: B027  most views can be followed
        """Raises PlanError if the changes of the view cannot be followed."""

    @cached_property
    def feeds(self) -> WeakSet[Changes]:
        """The open feeds, which are woken when the view ends."""
        return WeakSet()

    @abstractmethod
    def follow(self, queue: deque[Any]) -> None:
        """From now on the queue gets the change of the view's rows for each batch that has one."""

    @abstractmethod
    def unfollow(self, queue: deque[Any]) -> None:
        """The queue gets no more changes."""

    # Reasons

    def why(self, row: Row, **parameters: Any) -> Reasons:
        """Which rows of its tables make a row of the view; time linear in the tables, and in what joins to the row."""
        return self._explained(row, parameters, present=True)

    def why_not(self, row: Row, **parameters: Any) -> Reasons:
        """Which relation has no partner, and at which key, for a row that is not there; or the row of its group."""
        return self._explained(row, parameters, present=False)

    def _explained(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        self.check_alive()
        if not isinstance(row, tuple | list) or len(row) != len(self.columns):
            raise DataError(f"a row of view {self.name} has {len(self.columns)} columns: {', '.join(self.columns)}")
        row = tuple(row)
        with self.lock:
            if (self.multiplicity(row, **parameters) != 0) != present:
                verb, other = ("is not in", "why_not") if present else ("is in", "why")
                raise DataError(f"{shown_row(row)} {verb} view {self.name}; v.{other}(row) says why")
            return self._reasons(row, parameters, present=present)

    @abstractmethod
    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """The same under the lock, for a row of which is known whether it is there."""

    # About the view

    @abstractmethod
    def explain(self) -> Any:
        """How the view is maintained, and what that costs."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """The view's strategy, and the sizes of what it stores."""

    @abstractmethod
    def verify(self) -> None:
        """Computes the view from its tables in another way; raises VerificationError at the first difference."""

    # For the packages around the database

    @property
    @abstractmethod
    def lock(self) -> StateLock:
        """The database's lock."""

    @property
    def read_lock(self) -> StateLock | SharedSide:
        """The database's lock as readers of this view take it."""
        return self.lock

    @property
    def is_gone(self) -> bool:
        """Whether it was dropped, or its database closed."""
        return bool(self._gone)

    def check_alive(self) -> None:
        """Raises PlanError if it was dropped, or its database closed."""
        if self._gone:
            raise PlanError(f"view {self.name} {self._gone}")

    def check_readable(self) -> None:
        """The same before rows are read, whose first reader may have to be told something."""
        self.check_alive()
        if self.before_reading is not None:
            told, self.before_reading = self.before_reading, None
            told()

    def end(self, reason: str = "was dropped") -> None:
        """From now on reading it raises an error that gives the reason."""
        self._gone = reason
        for feed in tuple(self.feeds):
            feed.wake()
