"""What became of a step in all shards, and what the database is after it.

An outcome follows from the one before, the step, and the shards' reports, so that a process that writes it again after
a failure writes the same. A step that failed in some shard is taken back by the next one in those where it did not:
until then the database is what it was before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ivme.errors import IvmeError
from ivme.shards.catalog import ShardCatalog
from ivme.shards.journal import StepJournal
from ivme.shards.shard import Base, error_of

_KEPT_STEPS = 2


def record_outcome(journal: StepJournal, number: int, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Writes the outcome of a step from what each shard answered: its reports and its base."""
    existing = journal.outcome(number)
    if existing is not None:
        return existing
    step = journal.read_step(number)
    before = committed_state(journal.outcome(number - 1) if number > 1 else None)
    reports = [report for shard in shards for report in shard["reports"] if report["step"] == number]
    reports.sort(key=lambda report: (report["error"] is None, report["where"] != "table", report["shard"]))
    failed = reports[0]["error"] is not None
    after = {
        "catalog": before["catalog"] if step.catalog is None else step.catalog,
        "sources": before["sources"] if step.source is None else {**before["sources"], step.source[0]: step.source[1]},
    }
    outcome = {
        "step": number,
        "failed": reports[0] if failed else None,
        "before": before,
        "after": before if failed else after,
        "entries": {str(report["shard"]): report["entries"] for report in reports},
        "bases": {str(shard["shard"]): shard["base"] for shard in shards},
    }
    journal.write_outcome(number, outcome)
    _forget(journal, number)
    return outcome


def committed_state(outcome: Mapping[str, Any] | None) -> dict[str, Any]:
    """The catalog and the positions of streams after a step."""
    return {"catalog": ShardCatalog().to_json(), "sources": {}} if outcome is None else outcome["after"]


def failure(outcome: Mapping[str, Any]) -> IvmeError | None:
    """Why a step failed, if it did."""
    return None if outcome["failed"] is None else error_of(outcome["failed"])


def bases(outcome: Mapping[str, Any] | None, shards: int) -> dict[int, Base]:
    """Where each shard is after a step."""
    if outcome is None:
        return {shard: Base() for shard in range(shards)}
    return {int(shard): Base.from_json(base) for shard, base in outcome["bases"].items()}


def _forget(journal: StepJournal, number: int) -> None:
    """Forgets the log that all shards' snapshots cover. Some steps are kept: Spark may repeat its last batch."""
    older = journal.outcome(number - _KEPT_STEPS) if number > _KEPT_STEPS else None
    if older is not None:
        snapshots = {shard: base.snapshot for shard, base in bases(older, journal.shards).items()}
        if min(snapshots.values()):
            journal.forget_before(min(*snapshots.values(), number - _KEPT_STEPS), snapshots)
