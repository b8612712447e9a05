"""How large the workloads are: for a test, for a quick look, and for the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Rows of the workloads, rounds of each, and the seconds after which a contender stops, if it had five turns.

    Rounds of one row are taken `turn` at a time by one contender, so that caches are cold for the first of them only;
    those of batches `batch_turn` at a time, and all of them `again` and again.

    `graph` is the name of a real graph, used where its file is there, and `edges` what is made up otherwise.
    """

    name: str
    join_rows: int
    scale: str
    graph: str
    edges: int
    hub_rows: int
    access_rows: int
    web: str
    web_edges: int
    batch: int
    rounds: int
    again: int
    batch_turn: int
    single_rounds: int
    turn: int
    seconds: float
    sales: tuple[int, ...]
    spark_edges: int
    spark_batch: int
    spark_state: int

    def turns(self, rows: int) -> int:
        """How many rounds of so many rows a contender takes before the next one."""
        return self.turn if rows == 1 else self.batch_turn

    def times(self, rows: int) -> int:
        """How often the rounds of so many rows are gone through."""
        return 1 if rows == 1 else self.again


FULL = Sizes(
    name="full",
    join_rows=1_000_000,
    scale="0.1",
    graph="wiki-vote",
    edges=100_000,
    hub_rows=100_000,
    access_rows=1_000_000,
    web="college-msg",
    web_edges=4_000,
    batch=1000,
    rounds=22,
    again=4,
    batch_turn=4,
    single_rounds=1002,
    turn=50,
    seconds=10,
    sales=(1_000_000, 10_000_000),
    spark_edges=1_000_000,
    spark_batch=100_000,
    spark_state=1_000_000,
)
QUICK = Sizes(
    name="quick",
    join_rows=20_000,
    scale="0.01",
    graph="",
    edges=10_000,
    hub_rows=9_000,
    access_rows=20_000,
    web="",
    web_edges=2_000,
    batch=200,
    rounds=12,
    again=2,
    batch_turn=2,
    single_rounds=52,
    turn=10,
    seconds=3,
    sales=(50_000,),
    spark_edges=20_000,
    spark_batch=5_000,
    spark_state=50_000,
)
TINY = Sizes(
    name="tiny",
    join_rows=300,
    scale="0.001",
    graph="",
    edges=200,
    hub_rows=300,
    access_rows=200,
    web="",
    web_edges=100,
    batch=20,
    rounds=8,
    again=1,
    batch_turn=1,
    single_rounds=8,
    turn=1,
    seconds=1,
    sales=(500,),
    spark_edges=200,
    spark_batch=50,
    spark_state=500,
)
SIZES = {each.name: each for each in (FULL, QUICK, TINY)}
