"""Runs corpora query by query, each in a process of its own, and prints a table."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import benchmarks.corpora
from benchmarks.corpora.by_spark import by_spark
from benchmarks.corpora.material import corpus
from benchmarks.corpora.measuring import Loaded, Outcome, loaded, measured
from benchmarks.measure import parse

_HEAD = "| query | | blocks | most rows | ms for 1,000 changes | DuckDB, ms | reason |\n|---|---|---|---|---|---|---|"


def main(arguments: list[str] | None = None) -> int:
    """Returns 1 if some query is wrong or broke ivme."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpora", description=benchmarks.corpora.__doc__)
    parser.add_argument("corpora", nargs="*", default=["tpch", "tpcds"], help="tpch and tpcds")
    parser.add_argument("--sf", default="0.01", help="the scale factor")
    parser.add_argument("--query", type=int, nargs="+", help="the numbers of queries; all, if none is given")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long one query may take")
    parser.add_argument(
        "--spark", action="store_true", help="compare with Spark's answers instead, and measure nothing"
    )
    parser.add_argument("--table", type=Path, help="write the table into this file, too")
    given = parse(parser, arguments)
    if given.spark:
        return by_spark(given.corpora, given.sf, given.query)
    outcomes = []
    print(_HEAD, flush=True)
    for name in given.corpora:
        material = corpus(name, given.sf)
        database = loaded(material)
        for number in given.query or sorted(material.queries):
            outcome = _apart(database, number, given.seconds)
            outcomes.append(outcome)
            print(line(outcome), flush=True)
    print("\n".join(summary(outcomes)))
    if given.table is not None:
        given.table.write_text("\n".join([_HEAD, *map(line, outcomes), "", *summary(outcomes)]) + "\n")
    return int(any(outcome.verdict == "WRONG" for outcome in outcomes))


def _apart(given: Loaded, number: int, seconds: float) -> Outcome:
    """A query in a process of its own, which has a copy of the database and is ended when its time is over."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_report, args=(theirs, given, number))
    process.start()
    theirs.close()
    outcome = Outcome(given.corpus.name, number, wrong=f"not done after {seconds:.0f} s")
    if ours.poll(seconds):
        try:
            outcome = ours.recv()
        except EOFError:
            outcome.wrong = "the process ended without an answer"
    process.kill()
    process.join()
    return outcome


def _report(pipe: Connection, given: Loaded, number: int) -> None:
    try:
        outcome = measured(given, number)
    except Exception as error:
        outcome = Outcome(given.corpus.name, number, wrong=f"{type(error).__name__}: {error}")
    pipe.send(outcome)


def line(outcome: Outcome) -> str:
    """A row of the table."""
    times = [f"{value * 1000:,.2f}" if value else "" for value in (outcome.batch_seconds, outcome.duckdb_seconds)]
    reason = (outcome.refused or outcome.wrong).replace("\n", " ").replace("|", "\\|")[:200]
    first = f"| {outcome.corpus} {outcome.number} | {outcome.verdict} | {outcome.blocks} | {outcome.rows or ''} "
    return f"{first}| {' | '.join(times)} | {reason} |"


def summary(outcomes: list[Outcome]) -> list[str]:
    """How many of each corpus are right, and the reasons why others are refused."""
    lines = []
    for name in dict.fromkeys(outcome.corpus for outcome in outcomes):
        verdicts = Counter(outcome.verdict for outcome in outcomes if outcome.corpus == name)
        lines.append(f"{name}: {verdicts.total()} queries, {', '.join(f'{n} {word}' for word, n in verdicts.items())}")
    reasons = Counter(outcome.refused.partition(" (line")[0] for outcome in outcomes if outcome.refused)
    return lines + [f"  {count} refused: {reason}" for reason, count in reasons.most_common()]


if __name__ == "__main__":
    sys.exit(main())
