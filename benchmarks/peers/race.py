"""Takes all contenders through the same rounds, in turns, and compares their answers before any clock runs.

In turns, so that a busy machine is busy for all of them: a ratio compares rounds that were timed next to each other.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from benchmarks.peers.contenders import OURS, Contender, Start, canonical
from benchmarks.peers.workload import Round, Workload

LEAST = 5
"""Timed rounds of a contender, however slow it is."""

CHECKED = 2
"""Rounds at the start whose answers are compared, and which are not timed."""

PAIR = 2
"""Rounds come in pairs that undo each other, so that a slow contender may leave out the later pairs of a turn."""

SLOW = 1.0
"""Seconds after which a contender is slow, and its turn ends with the pair."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds of a contender for each timed turn, divided by its rounds."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Result:
    """A contender beside ivme over the same turns; above 1 ivme is faster."""

    workload: str
    title: str
    rows: int
    peer: str
    unit: str
    theirs: tuple[float, ...]
    ours: tuple[float, ...]

    @property
    def system(self) -> str:
        """The peer, whichever way it takes."""
        return self.peer.partition(",")[0]

    @property
    def ratio(self) -> float:
        return statistics.median(self.theirs) / statistics.median(self.ours)

    @property
    def spread(self) -> tuple[float, float]:
        """The quartiles of the ratios turn by turn."""
        ratios = [t / o for t, o in zip(self.theirs, self.ours, strict=True)]
        first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
        return first, third


def race(
    workload: Workload, starts: Iterable[Start], seconds: float, say: Callable[[str], None] = lambda _: None
) -> list[Result]:
    """The results of all contenders but the first, which is ivme."""
    contenders: list[Contender] = []
    try:
        for start in starts:
            contenders.append(start(workload))
            say(f"{contenders[-1].name} has loaded {workload.rows:,} rows")
        check(workload, contenders, workload.rounds[:CHECKED])
        say("the answers are equal")
        samples = timed(workload, contenders, seconds)
        check_last(contenders, samples, workload)
    finally:
        for contender in contenders:
            contender.close()
    return results(workload, samples)


def check(workload: Workload, contenders: Sequence[Contender], rounds: Sequence[Round]) -> None:
    """Raises unless all contenders give the same answers after each round."""
    for round_ in rounds:
        for contender in contenders:
            contender.apply(round_)
        for request in round_.requests:
            answers = {each.name: canonical(each.answer(request)) for each in contenders}
            expected = answers[contenders[0].name]
            wrong = [name for name, answer in answers.items() if answer != expected]
            if wrong:
                raise AssertionError(
                    f"{workload.title}: {', '.join(wrong)} and {contenders[0].name} differ for {request}: "
                    f"{_few(answers[wrong[0]] - expected)} against {_few(expected - answers[wrong[0]])}"
                )


def check_last(contenders: Sequence[Contender], samples: Sequence[Samples], workload: Workload) -> None:
    """The answers are still equal for those that took all rounds."""
    most = max(len(each.seconds) for each in samples)
    whole = [c for c, each in zip(contenders, samples, strict=True) if len(each.seconds) == most]
    for request in workload.rounds[-1].requests:
        if len({frozenset(canonical(each.answer(request)).items()) for each in whole}) != 1:
            raise AssertionError(f"{workload.title}: the answers differ after the last round")


def _few(rows: Iterable[object]) -> list[object]:
    return sorted(rows, key=str)[:3]


def timed(workload: Workload, contenders: Sequence[Contender], budget: float) -> list[Samples]:
    """Turns by turns; a contender that used up its time drops out once it had enough of them."""
    turns = [
        workload.rounds[i : i + workload.turn]
        for i in range(CHECKED, len(workload.rounds) - workload.turn + 1, workload.turn)
    ]
    if len(turns) < LEAST:
        raise ValueError(f"{workload.title} has {len(turns)} turns; {LEAST} are needed")
    found: list[list[float]] = [[] for _ in contenders]
    for turn in turns:
        for contender, taken in zip(contenders, found, strict=True):
            if len(taken) < LEAST or sum(taken) * workload.turn < budget or contender.name == OURS:
                taken.append(_turn(contender, turn))
    return [Samples(each.name, tuple(taken)) for each, taken in zip(contenders, found, strict=True)]


def _turn(contender: Contender, turn: Sequence[Round]) -> float:
    """Seconds a round."""
    began = time.perf_counter()
    for done, round_ in enumerate(turn, 1):
        contender.apply(round_)
        for request in round_.requests:
            contender.answer(request)
        taken = time.perf_counter() - began
        if taken > SLOW and done % PAIR == 0:
            break
    return taken / done


def results(workload: Workload, samples: Sequence[Samples]) -> list[Result]:
    """Each peer beside ivme's turns at the same places."""
    ours, *others = samples
    return [
        Result(
            workload.key,
            workload.title,
            workload.rows,
            each.name,
            "s a round",
            each.seconds,
            ours.seconds[: len(each.seconds)],
        )
        for each in others
    ]
