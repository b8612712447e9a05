"""The columns of a table as `_kernel.RowPath` takes them, which makes codes of single rows of Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.domain import Domain
from ivme.errors import DataError
from ivme.query.model import Table

if TYPE_CHECKING:
    from ivme._kernel import RowEncoder

RowColumn = tuple[str, str, int, int, bool, Any, Callable[[Any], int | None] | None]
"""Name, kind, precision, scale, whether NULL is refused, a dictionary, and what encodes where the kernel does not."""

_KINDS = ("int", "float", "string", "bool", "date", "timestamp", "binary")


def row_columns(table: Table, domains: Sequence[Domain]) -> list[RowColumn]:
    """The columns for `_kernel.RowPath`."""
    keys = table.key_positions
    return [
        _column(column.name, domain, position in keys)
        for position, (column, domain) in enumerate(zip(table.columns, domains, strict=True))
    ]


def row_encoder(table: Table, domains: Sequence[Domain]) -> RowEncoder:
    """What takes lists of rows of Python values to codes."""
    from ivme import _kernel

    return _kernel.RowEncoder(row_columns(table, domains))


def _column(name: str, domain: Domain, never_null: bool) -> RowColumn:
    kind = domain.type.kind
    if kind == "decimal" and domain.orders_by_code:
        return (name, kind, domain.type.precision or 0, domain.type.scale or 0, never_null, None, None)
    if kind not in _KINDS:
        return (name, kind, 0, 0, never_null, None, _encoder(domain))
    native = getattr(getattr(domain, "dictionary", None), "native", None)
    return (name, kind, 0, 0, never_null, native, None)


def _encoder(domain: Domain) -> Callable[[Any], int | None]:
    """The code of a value; None if it is not of the column's type."""

    def encode(value: Any) -> int | None:
        try:
            return domain.encode_value(value)
        except DataError:
            return None

    return encode
