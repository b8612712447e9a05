"""Whether a batch takes changes: from its `with` on, until it is over."""

from __future__ import annotations

from typing import Self

from ivme.errors import PlanError


class OpenBatch:
    """What batches have in common, whoever applies them. One that nobody entered would lose its changes silently."""

    def __init__(self) -> None:
        self._is_entered = False
        self._over = False

    def __enter__(self) -> Self:
        return self.begin()

    def begin(self) -> Self:
        """Lets changes come, for a caller that ends the batch himself; `with` does so, and ends it."""
        self._is_entered = True
        return self

    def _check_open(self) -> None:
        if self._over:
            raise PlanError("the batch is over; open another one with batch()")
        if not self._is_entered:
            raise PlanError(
                "the batch was not entered, so that its changes would never be applied; write "
                "`with db.batch() as batch:`, which applies them when the block ends"
            )
