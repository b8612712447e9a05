"""What the runtime knows about each table and view."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ivme.engine.runtime.observed import Observed

if TYPE_CHECKING:
    from ivme.engine.codes.domains import Domain
    from ivme.engine.ingest.feed import Feed
    from ivme.engine.runtime.decoding import RowDecoder
    from ivme.engine.runtime.error_check import InstalledCheck
    from ivme.engine.runtime.following import Followed
    from ivme.engine.runtime.shared_views import SharedViews
    from ivme.plan.assemble.plan import Plan
    from ivme.plan.explain.explanation import Explanation
    from ivme.query.model import Atom, Table
    from ivme.query.typed import TypedQuery

Key = tuple[int, ...]
"""The codes of a row's outputs."""

VIEW_CHANGES = (
    *("followers", "stale", "followed"),
    *("plan", "explanation", "group", "finisher", "checks"),
)
"""What may become another of a view that stays: those of the second line when it is planned again."""


@dataclass(slots=True)
class TableState:
    """A table, its columns' domains, and the name under which the kernel stores its rows.

    `ring` is whether multiplicities may be negative: all views over the table are in ring mode.
    """

    table: Table
    domains: list[Domain]
    rows: str
    feed: Feed
    ring: bool = False


@dataclass(slots=True)
class ViewState:
    """A view and its plan; `followed` tells its changes while it is followed.

    A view that is not maintained in the kernel's maps (`ExternalView`) has no plan.

    `checks` say whether it would show a row for which an expression fails, which is left out of it.

    `stale` says of a view that is recomputed that its tables changed since it was last built. `observed` counts its
    requests since it was planned.
    """

    name: str
    typed: TypedQuery
    plan: Plan | None
    explanation: Explanation
    group: SharedViews
    table: Table
    finisher: RowDecoder
    relations: tuple[str, ...]
    ring: bool = False
    checks: tuple[InstalledCheck, ...] = ()
    followers: int = 0
    stale: bool = True
    followed: Followed | None = None
    observed: Observed = field(default_factory=Observed)

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The atoms as they are read: without the rows for which an expression fails, if others may be their guards."""
        if self.plan is None:
            return self.typed.query.atoms
        return tuple(source.atom for _, source in self.plan.blueprint.leaves.sources)

    @property
    def hides_keys(self) -> bool:
        """Whether it does not show all that it groups by, so that several groups may look the same."""
        query = self.typed.query
        return not {column.source for column in query.head}.issuperset(query.output)

    @property
    def floats(self) -> list[int]:
        """The columns that may have what no table takes: a sum or an average that is not a number."""
        if self.group.takes_nan:
            return [i for i, type_ in enumerate(self.typed.head) if type_.kind == "float"]
        return self.finisher.floats

    @property
    def is_quiet(self) -> bool:
        """Whether it has no followers, and a change checks and rebuilds nothing."""
        return self.followed is None and not (self.followers or self.checks or self.lazy)

    def outdate(self) -> None:
        self.stale = True

    @property
    def lazy(self) -> bool:
        """Whether it is built when it is read; one that is followed is maintained."""
        blueprint = self.group.blueprints.get(self.name)
        return blueprint is not None and blueprint.lazy
