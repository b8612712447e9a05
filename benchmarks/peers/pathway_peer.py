"""Pathway in a process of its own, with all changes in its memory before its clock starts."""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.contenders import Ivme, canonical
from benchmarks.peers.missing import MissingError
from benchmarks.peers.race import CHECKED, LEAST, Result
from benchmarks.peers.workload import Request, Workload

NAME = "Pathway"
TIMEOUT = 600
ASKED, IN_ROUND, REQUEST = "asked", "asked_in", "request"
"""The table of access requests, and its columns in front of the parameters."""


def pathway_version(python: str) -> str:
    """The version that the Python has, which is also the test that it can be imported."""
    command = [python, "-c", "import pathway; print(pathway.__version__)"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(NAME, f"{python} does not run: {error}") from error
    if done.returncode:
        raise MissingError(NAME, f"{python} cannot import it: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return done.stdout.strip().splitlines()[-1]


class Following(Ivme):
    """ivme with a copy of the answer outside of it, kept by its changes: Pathway gives answers in this way only."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.rows: Counter[Any] = canonical(self.view.to_arrow())
        self.feed = self.view.changes()

    def answer(self, request: Request) -> Counter[Any]:
        assert not request, "Pathway has no parameters"
        for change in self.feed:
            for row, weight in change.items():
                self.rows[row] += weight
                if not self.rows[row]:
                    del self.rows[row]
        return self.rows


def started(workload: Workload) -> Ivme:
    """Whichever way of reading suits the view: a number or a few rows as they are, and the changes of many."""
    given = Ivme(workload)
    if workload.reading != "rows" or given.few or workload.parameters:
        return given
    given.close()
    return Following(workload)


def pathway_result(python: str, workload: Workload, budget: float) -> Result:
    """Pathway beside ivme, which takes the same rounds right after it; their answers are compared first."""
    given = started(workload)
    try:
        told = _told(python, workload, budget, _answered(workload, given.view.columns))
        ours = _ours(given, replace(workload, rounds=workload.rounds[: len(told["seconds"])]), told["answers"])
    finally:
        given.close()
    theirs = _by_turns(workload, told["seconds"])
    return Result(workload.key, workload.title, workload.rows, NAME, "s a round", theirs, ours)


def _answered(workload: Workload, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of Pathway's answer."""
    if workload.reading == "count":
        return ("n",)
    return (REQUEST, *columns) if workload.parameters else columns


def _told(python: str, workload: Workload, budget: float, columns: tuple[str, ...]) -> Any:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _write(workload, budget, folder)
        script = Path(__file__).with_name("pathway_rounds.py")
        command = [python, str(script), str(folder), workload.pathway, ",".join(columns)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MissingError(NAME, f"{workload.title}: {error}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        said = next((line for line in reversed(lines) if "Error:" in line), lines[-1])
        raise MissingError(NAME, f"{workload.title}: {said}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _write(workload: Workload, budget: float, folder: Path) -> None:
    """The tables as Parquet files, without the rows that a round takes away first: the connector sends those."""
    sent = []
    for table in workload.tables:
        rows, leaving = workload.loaded[table.name], _leaving(workload, table.name)
        if leaving:
            keep = [row not in leaving for row in zip(*(c.to_pylist() for c in rows.columns), strict=True)]
            sent.append((table.name, 1, leaving))
            rows = rows.filter(pa.array(keep))
        pq.write_table(rows, folder / f"{table.name}.parquet")
    columns = {table.name: dict(table.columns) for table in workload.tables}
    keys = {table.name: list(table.key) for table in workload.tables}
    if workload.parameters:
        columns[ASKED] = {IN_ROUND: "int", REQUEST: "int", **dict.fromkeys(workload.parameters, "int")}
        keys[ASKED] = [IN_ROUND, REQUEST]
    given = {
        "columns": columns,
        "keys": keys,
        "checked": CHECKED,
        "least": CHECKED + LEAST * workload.turn,
        "budget": budget,
        "first": sent,
        "rounds": [_messages(workload, number) for number in range(len(workload.rounds))],
    }
    (folder / "rounds.json").write_text(json.dumps(given), "utf-8")


def _messages(workload: Workload, number: int) -> list[tuple[str, int, list[Any]]]:
    """The changes of a round, and its access requests as rows of a table of their own."""
    round_ = workload.rounds[number]
    sent: list[tuple[str, int, list[Any]]] = [(each.table, each.sign, each.tuples) for each in round_.changes]
    if workload.parameters:
        sent.append((ASKED, 1, [(number, i, *request.values()) for i, request in enumerate(round_.requests)]))
    return sent


def _leaving(workload: Workload, table: str) -> list[tuple[Any, ...]]:
    """The rows whose first change is a delete."""
    first: dict[tuple[Any, ...], int] = {}
    for change in (change for round_ in workload.rounds for change in round_.changes if change.table == table):
        for row in change.tuples:
            first.setdefault(row, change.sign)
    return [row for row, sign in first.items() if sign < 0]


def _ours(given: Ivme, workload: Workload, told: list[list[Any]]) -> tuple[float, ...]:
    """ivme's seconds a round for each turn, and the comparison of the first answers and the last."""
    taken: list[float] = []
    for number, round_ in enumerate(workload.rounds):
        began = time.perf_counter()
        given.apply(round_)
        answers = [given.answer(request) for request in round_.requests]
        taken.append(time.perf_counter() - began)
        at = number if number < CHECKED else -1
        compared = number < CHECKED or number == len(workload.rounds) - 1
        if compared and Counter(map(tuple, told[at])) != _found(answers, workload):
            raise AssertionError(f"{workload.title}: Pathway and ivme differ after round {number + 1}")
    return _by_turns(workload, taken)


def _found(answers: list[Any], workload: Workload) -> Counter[tuple[Any, ...]]:
    """The answer of a round; with access requests, each row behind the number of its request."""
    if workload.parameters:
        return Counter((i, *row) for i, answer in enumerate(answers) for row in canonical(answer).elements())
    (answer,) = answers
    return answer if isinstance(answer, Counter) else canonical(answer)


def _by_turns(workload: Workload, seconds: list[float]) -> tuple[float, ...]:
    """Seconds a round, for the turns that the others are timed in."""
    starts = range(CHECKED, len(seconds) - workload.turn + 1, workload.turn)
    return tuple(statistics.fmean(seconds[i : i + workload.turn]) for i in starts)
