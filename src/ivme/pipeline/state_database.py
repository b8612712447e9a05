"""What a pipeline needs of the database in its state: `ivme.Database`, or shards (`ivme.shards.state.ShardedState`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from ivme.query.model import Table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ivme.definitions.definitions import Definitions
    from ivme.engine.runtime.delta import Delta
    from ivme.query.table import References


class StateBatch(Protocol):
    """Changes that take effect together when the `with` block ends."""

    def __enter__(self) -> StateBatch: ...

    def __exit__(self, *_: Any) -> None: ...

    def apply(self, table: str, rows: Any, weights: Any) -> None: ...

    def check(self) -> None:
        """Raises what ending the batch now would raise, and changes nothing."""

    def discard(self) -> None:
        """Discards the changes so far."""


class StateTable(Protocol):
    """The rows of a table, as they are now."""

    def __iter__(self) -> Iterator[Any]: ...

    def __len__(self) -> int: ...

    def to_arrow(self) -> pa.Table: ...

    def of_keys(self, rows: pa.Table) -> pa.Table:
        """The rows that have the primary keys of some other rows."""


class StateView(Protocol):
    """The rows of a view, as they are now, and its changes."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def __iter__(self) -> Iterator[Any]: ...

    def __call__(self, **parameters: Any) -> Iterator[Any]: ...

    def count(self, **parameters: Any) -> int: ...

    def scalar(self, **parameters: Any) -> Any: ...

    def to_arrow(self, **parameters: Any) -> pa.Table: ...

    def request_many(self, **columns: Any) -> pa.Table: ...

    def changes(self) -> Iterable[Delta]: ...

    def verify(self) -> None: ...

    def explain(self) -> Any: ...


class StateDatabase(Protocol):
    """The tables and views of a pipeline. A batch and its position in a source are one durable transaction."""

    @property
    def definitions(self) -> Definitions:
        """What is known of tables and views; rows are read by `view` and `contents`."""

    @property
    def tables(self) -> tuple[str, ...]: ...

    @property
    def views(self) -> tuple[str, ...]: ...

    @property
    def now(self) -> datetime | None:
        """What the clock says; None if there is none."""

    def relation(self, name: str) -> Table: ...

    def table(self, name: str) -> StateTable: ...

    def view(self, name: str) -> StateView: ...

    def contents(self, name: str) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """The distinct rows of a table, or of a view without parameters, and their multiplicities."""

    def create_table(
        self,
        name: str,
        schema: Any,
        *,
        primary_key: str | Iterable[str] | None = None,
        append_only: bool = False,
        static: bool = False,
        keep_rows: bool = True,
        references: References | None = None,
        unique: Iterable[str | Iterable[str]] = (),
        not_null: Iterable[str] = (),
    ) -> None: ...

    def create_view(self, name: str, query: str, **options: Any) -> Any: ...

    def drop_view(self, name: str) -> None: ...

    def drop_table(self, name: str) -> None: ...

    def add_column(self, table: str, column: str, type_: Any, default: object = None) -> None: ...

    def advance(self, now: datetime) -> None:
        """Advances the clock, which is made if there is none."""

    def insert(self, table: str, rows: Any) -> None: ...

    def apply(self, table: str, rows: Any, weights: Any) -> None: ...

    def batch(self, source: str | None = None, position: int | None = None) -> StateBatch: ...

    def position(self, source: str) -> int | None: ...

    def close(self) -> None: ...
