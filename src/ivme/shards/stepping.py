"""Taking a shard through new steps: when to compact, and what to remember. Pure but for the question to the shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ivme.shards.journal import StepJournal
from ivme.shards.protocol import Message
from ivme.shards.shard import Base

LEAST_LOG_ROWS = 200_000
LONGEST_LOG = 200
"""A log is compacted when it has more rows than its shard has entries, and at least this many, or this many steps."""

Asking = Callable[[Mapping[str, Any]], Message]


def take_steps(journal: StepJournal, shard: int, base: Base, numbers: Sequence[int], asking: Asking) -> dict[str, Any]:
    """Brings a shard from a base through some steps; its reports, and its new base.

    A step that takes back the one before is no occasion to compact: a snapshot would have what is taken back.
    """
    steps = [(number, journal.digest(number)) for number in numbers if number > base.position[0]]
    if not steps:
        return {"shard": shard, "reports": [], "base": base.to_json()}
    undoing = journal.read_step(steps[0][0]).undo is not None
    head = {
        "op": "advance",
        "base": base.to_json(),
        "steps": steps,
        "compact": not undoing and is_long(journal, shard, base),
    }
    answer = asking(head)
    reports = answer.head["reports"]
    new = Base.from_json(answer.head["base"])
    new = replace(new, log=(*new.log, *steps), size=sum(reports[-1]["entries"].values()))
    return {"shard": shard, "reports": reports, "base": new.to_json()}


def is_long(journal: StepJournal, shard: int, base: Base) -> bool:
    """Whether replaying a shard's log takes longer than reading a snapshot would."""
    if len(base.log) >= LONGEST_LOG:
        return True
    files = [file for number, _ in base.log for file in journal.read_step(number).files if file.shard == shard]
    return sum(file.rows for file in files) > max(LEAST_LOG_ROWS, base.size)
