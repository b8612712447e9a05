"""Latency of steps, access requests, whole reads and recovery of a `SparkDatabase`, beside an older commit in one run.

    python -m benchmarks.shard_steps [--rows 1000000] [--shards 2 4] [--repeat 20] [--against ../old-worktree]
        [--master spark://127.0.0.1:7077]

A step is `db.insert` of an Arrow table at the driver into a join view, with the checkpoint on the local disk. The older
commit is a worktree of it with an environment of its own (`.venv`); answers of both are compared before times are.
With a master, such as `scripts/standalone start FOLDER` prints, shards are tasks of that cluster, else child processes.
The goals: a step of 1,000 rows at most 20 ms, an access request at most 5 ms, recovery of a shard of 1M rows at most
6 s.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

SIZES = (1, 1_000, 10_000, 100_000)
QUERY = "SELECT R.a, COUNT(*) AS n, SUM(S.c) AS total FROM R JOIN S ON R.a = S.a GROUP BY R.a"
_MARK = "MEASURED "


def table(rows: int, keys: int, seed: int, names: tuple[str, str]) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({names[0]: rng.integers(0, keys, rows), names[1]: rng.integers(0, 10**6, rows)})


def insert(db: Any, tables: list[pa.Table], number: int) -> None:
    db.insert("R", tables[number])


def times(work: Callable[[int], Any], repeat: int) -> list[float]:
    """The median and the 95th percentile, in seconds."""
    found = []
    for number in range(repeat):
        start = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - start)
    return [float(np.percentile(found, 50)), float(np.percentile(found, 95))]


CLUSTER = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.cores": "3",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
}
"""The settings of a session on the cluster of `scripts/standalone`."""


def measure(rows: int, shards: int, repeat: int, master: str) -> dict[str, Any]:
    """All figures of the code that this process imports."""
    import ivme
    from ivme.spark.session.session import open_session

    spark = open_session("shard-steps", master=master, conf={} if master.startswith("local") else CLUSTER)
    folder = Path(tempfile.mkdtemp(prefix="ivme-bench-"))
    keys = max(rows // 10, 1)
    found: dict[str, Any] = {}
    with ivme.SparkDatabase(spark, shards, folder / "checkpoint") as db:
        db.create_table("R", {"a": "int", "b": "int"})
        db.create_table("S", {"a": "int", "c": "int"})
        view = db.create_view("v", QUERY)
        asked = db.create_view("q", "SELECT R.b FROM R WHERE R.a = :a")
        with db.batch() as batch:
            batch.insert("R", table(rows, keys, 1, ("a", "b")))
            batch.insert("S", table(rows // 10, keys, 2, ("a", "c")))
        for size in SIZES:
            inserted = [table(size, keys, 10 + n, ("a", "b")) for n in range(repeat)]
            found[f"step of {size:,} rows"] = times(partial(insert, db, inserted), repeat)
        found["access request"] = times(lambda n: list(asked(a=n)), 5 * repeat)
        found["whole read"] = times(lambda _: view.to_arrow(), 3)
        pid = db.status()[0]["pid"]
        os.kill(pid, signal.SIGKILL)
        start = time.perf_counter()
        whole = view.to_arrow()
        found["recovery of a shard"] = [time.perf_counter() - start] * 2
        found["answer"] = [whole.num_rows, int(np.sum(whole.column("total").to_numpy()))]
        found["entries"] = [sum(status["entries"].values()) for status in db.status()]
    spark.stop()
    shutil.rmtree(folder)
    return found


def measured_by(code: Path, given: argparse.Namespace, shards: int) -> dict[str, Any]:
    """The figures of the code in a worktree."""
    wanted = map(str, (given.rows, shards, given.repeat, given.master))
    command = [str(code / ".venv" / "bin" / "python"), __file__, "--measure", *wanted]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=code)
    lines = [line for line in done.stdout.splitlines() if line.startswith(_MARK)]
    if not lines:
        raise SystemExit(done.stderr[-3000:])
    return dict(json.loads(lines[0].removeprefix(_MARK)))


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        rows, shards, repeat = map(int, sys.argv[2:5])
        print(_MARK + json.dumps(measure(rows, shards, repeat, sys.argv[5])), flush=True)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    for shards in given.shards:
        here = measured_by(Path(__file__).parents[1], given, shards)
        old = measured_by(given.against.absolute(), given, shards) if given.against else None
        assert old is None or old["answer"] == here["answer"], "both have the same rows"
        print(f"{shards} shards, {given.rows:,} rows; ms, p50 and p95; {given.master}; load {os.getloadavg()[0]:.1f}")
        for name in (each for each in here if each not in ("answer", "entries")):
            (middle, high), beside = here[name], ""
            if old is not None:
                beside = f"   before {1000 * old[name][0]:10.1f} {1000 * old[name][1]:10.1f}"
                beside += f"   {old[name][0] / middle:8.1f} times"
            print(f"  {name:<24}{1000 * middle:10.1f} {1000 * high:10.1f}{beside}")
        print(f"  entries by shard: {here['entries']}", flush=True)


if __name__ == "__main__":
    main()
