"""What a view has been used for so far: updates, access requests, and the rows read for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ivme.plan.assemble.tuning import Workload

LATEST = 32
"""So many requests are remembered."""


@dataclass(slots=True)
class Observed:
    """Counts since the view was made, or planned again.

    `since` has, for each relation that it reads, how many rows had changed by then, and `size` how many the largest one
    had; `tried` is the work after which it was planned again without finding a better plan, and `asked` are the
    parameters of the latest requests.
    """

    updates: int = 0
    requests: int = 0
    rows: int = 0
    since: dict[str, int] | None = None
    size: int = 0
    tried: float = 0.0
    asked: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=LATEST))

    def read(self, rows: int, requests: int = 1) -> None:
        """Takes down requests that have been answered, and the rows of their answers together."""
        self.requests += requests
        self.rows += rows

    def workload(self) -> Workload:
        """The mix so far; a view that was not changed or read yet counts as even."""
        from ivme.plan.assemble.tuning import Workload

        if not self.updates and not self.requests:
            return Workload()
        return Workload(self.updates, self.requests, self.rows / self.requests if self.requests else 1.0)
