"""What a view has been used for so far: updates, access requests, and the rows read for them."""

from __future__ import annotations

from dataclasses import dataclass

from ivme.plan.assemble.tuning import Workload


@dataclass(slots=True)
class Observed:
    """Counts since the view was made."""

    updates: int = 0
    requests: int = 0
    rows: int = 0

    def workload(self) -> Workload:
        """The mix so far; a view that nobody has changed or read yet counts as even."""
        if not self.updates and not self.requests:
            return Workload()
        return Workload(self.updates, self.requests, self.rows / self.requests if self.requests else 1.0)
