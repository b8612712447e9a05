"""Views that are not maintained in the kernel's maps, such as the closure of a graph.

To the runtime they are groups of one view: they take part in the same transactions as the kernel, answer access
requests, and report the change of their rows, which feeds the views that are built on them. What maintains them is a
class of its own; the engine knows only this.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from ivme.engine.runtime.shared_views import SharedViews
from ivme.engine.runtime.view_readers import point_reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ivme.engine.backend import Block, EmittedDelta
    from ivme.engine.codes.dictionary import Codes
    from ivme.engine.ingest.row_batch import Layout, RowBatch
    from ivme.engine.runtime.following import Change
    from ivme.engine.runtime.native_path import NativeBranch
    from ivme.engine.runtime.reader import Reader
    from ivme.engine.runtime.view_state import ViewState


class ExternalView(SharedViews):
    """A group of one view that is not made of maps; it takes part in transactions as a `MaintainedView`."""

    relations: tuple[str, ...]
    shares_reading = False
    needs_changes = True
    """Whether it must hear of changes although it is not followed; one that only reads need not."""
    is_of_whole_changes = False
    """Whether its rows count only together: some have negative multiplicities, so that one alone means nothing."""

    @abstractmethod
    def build(self, rows: Mapping[str, RowBatch]) -> None: ...
    @abstractmethod
    def apply(self, relation: str, rows: RowBatch) -> None: ...
    def fill(self) -> None:
        """Fills a block between blocks from the views that it reads, if it has rows of its own."""

    def prepare(self) -> None:
        """What `commit` needs is there."""

    @abstractmethod
    def commit(self) -> None: ...
    @abstractmethod
    def roll_back(self) -> None: ...
    @abstractmethod
    def follow(self, on: bool) -> None:
        """From now on, or no longer, the changes of its rows are requested."""

    @abstractmethod
    def changed(self, layout: Layout) -> RowBatch:
        """The change of the view's rows in the open transaction, over the columns of the view, parameters in front."""

    @abstractmethod
    def held_codes(self) -> list[Codes]:
        """The codes that it has."""

    @abstractmethod
    def memory_bytes(self) -> int: ...
    @abstractmethod
    def all_rows(self, layout: Layout) -> RowBatch:
        """All rows, over the columns of the view."""

    @abstractmethod
    def verify(self, reader: Reader, state: ViewState) -> None:
        """Computes the view from its relation in another way; VerificationError at the first difference."""

    def read_of(self, relation: str) -> set[str] | None:  # noqa: ARG002
        """The columns of a relation that it reads; None for all of them."""
        return None

    def native_branches(self) -> dict[str, list[NativeBranch]] | None:
        """How the kernel passes on what it has of each relation, if it stores nothing; None if only Python can."""
        return None

    def points(self, view: str, columns: Sequence[Codes]) -> tuple[Codes, Block]:
        return self.request_many(point_reader(view), columns)

    def maps_of(self, view: str) -> list[str]:  # noqa: ARG002  it has none
        return []


def counts_together(state: ViewState) -> bool:
    """Whether the changed rows of a view must be passed on together."""
    return isinstance(state.group, ExternalView) and state.group.is_of_whole_changes


def change_of(state: ViewState, emitted: Sequence[EmittedDelta]) -> Change:
    """The change of the rows of a view of any kind, given what the kernel emitted for it."""
    assert state.followed is not None
    if not isinstance(state.group, ExternalView):
        return state.followed.change(emitted)
    changed = state.group.changed(state.followed.layout)
    return (changed if len(changed.weights) else None), None
