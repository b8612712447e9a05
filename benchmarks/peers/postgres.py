"""PostgreSQL: a private cluster in a temporary folder, and two ways to have a fresh answer in it.

The cluster listens on a Unix socket in its folder only, runs as a user that is not root (PostgreSQL insists), and is
stopped by its own process id. It need not survive a crash here, as ivme's in-memory database would not either:
fsync, synchronous_commit and full_page_writes are off, which is in its favour. Tables are analysed when they are
loaded; autovacuum is off, since it would run while others are timed.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers.contenders import (
    SINGLE,
    Start,
    column_types,
    delete_row,
    index_statements,
    insert_row,
    parameters_written,
)
from benchmarks.peers.missing import MissingError
from benchmarks.peers.workload import Change, Request, Round, Table, Workload

ROLE = "bench"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "512MB",
    "work_mem": "256MB",
    "maintenance_work_mem": "256MB",
    "jit": "off",
    "max_wal_size": "8GB",
    "autovacuum": "off",
}
PATIENCE = 30.0


def programs() -> Path:
    """The folder of initdb and postgres; Debian does not put them on the path."""
    candidates = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in candidates:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise MissingError("PostgreSQL", "there is no initdb; on Debian: apt-get install postgresql")


def other_user() -> dict[str, Any]:
    """Options of subprocess for a user that is not root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
    raise MissingError("PostgreSQL", "it does not run as root, and there is no user postgres or nobody")


@contextmanager
def cluster() -> Iterator[Path]:
    """The folder of a running cluster's socket; everything is gone afterwards."""
    binaries, who = programs(), other_user()
    with tempfile.TemporaryDirectory(prefix="ivme-pg-") as made:
        folder = Path(made)
        data = folder / "data"
        data.mkdir(mode=0o700)
        if who:
            for path in (folder, data):
                os.chown(path, who["user"], who["group"])
        setup = [str(binaries / "initdb"), "-D", str(data), "-U", ROLE, "-A", "trust", "-E", "UTF8", "--no-sync"]
        done = subprocess.run([*setup, "--locale=C"], cwd=folder, capture_output=True, text=True, check=False, **who)
        if done.returncode:
            raise MissingError("PostgreSQL", f"initdb failed: {done.stderr.strip().splitlines()[-1]}")
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder), *settings]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **who)
        try:
            _await(folder, server)
            yield folder
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(PATIENCE)


def _await(folder: Path, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    started = time.monotonic()
    while True:
        try:
            connect(folder).close()
            return
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() - started > PATIENCE:
                lines = (folder / "log").read_text("utf-8", "replace").strip().splitlines()
                raise MissingError("PostgreSQL", f"it does not start: {lines[-1] if lines else error}") from error
            time.sleep(0.1)


def connect(folder: Path) -> Any:
    import psycopg

    return psycopg.connect(host=str(folder), user=ROLE, dbname="postgres", autocommit=True, prepare_threshold=1)


def server_version(folder: Path) -> str:
    """As the server says it, without Debian's addition."""
    with connect(folder) as connection:
        return str(connection.execute("SHOW server_version").fetchone()[0]).split()[0]


class Postgres:
    """Tables with indexes. The query runs for each request; or a materialised view is refreshed after each round."""

    def __init__(self, folder: Path, refreshed: bool, workload: Workload) -> None:
        self.name = "PostgreSQL, REFRESH" if refreshed else "PostgreSQL, indexed query"
        self.workload, self.refreshed = workload, refreshed
        self.connection = connect(folder)
        self.schema = "refreshed" if refreshed else "queried"
        self._run(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        self._run(f"CREATE SCHEMA {self.schema}")
        self._run(f"SET search_path TO {self.schema}")
        for table in workload.tables:
            self._run(f"CREATE TABLE {table.name} ({column_types(table)})")
            columns = (column.to_pylist() for column in workload.loaded[table.name].columns)
            self._copy(table, zip(*columns, strict=True))
            for statement in index_statements(table):
                self._run(statement)
        self._run("ANALYZE")
        if refreshed:
            self._run(f"CREATE MATERIALIZED VIEW kept AS {workload.sql}")
        self.query = "SELECT * FROM kept" if refreshed else parameters_written(workload.sql, r"%(\1)s")

    def _run(self, statement: str) -> None:
        self.connection.execute(statement)

    def _copy(self, table: Table, rows: Any) -> None:
        with self.connection.cursor() as cursor, cursor.copy(f"COPY {table.name} FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def apply(self, round_: Round) -> None:
        with self.connection.transaction():
            for change in round_.changes:
                self._apply(change, self.workload.table(change.table))
        if self.refreshed:
            self._run("REFRESH MATERIALIZED VIEW kept")

    def _apply(self, change: Change, table: Table) -> None:
        if change.sign > 0 and len(change.tuples) > SINGLE:
            self._copy(table, change.tuples)
            return
        keys = ([row[place] for place in table.places()] for row in change.tuples)
        with self.connection.cursor() as cursor:
            if change.sign > 0:
                cursor.executemany(insert_row(table, "%s"), change.tuples)
            else:
                cursor.executemany(delete_row(table, "%s"), list(keys))

    def answer(self, request: Request) -> Any:
        return self.connection.execute(self.query, dict(request), binary=True).fetchall()

    def close(self) -> None:
        self._run(f"DROP SCHEMA {self.schema} CASCADE")
        self.connection.close()


def postgres_starts(folder: Path, workload: Workload) -> list[Start]:
    """The indexed query, and REFRESH where the view has no parameters."""
    return [partial(Postgres, folder, refreshed) for refreshed in ((False, True) if workload.refreshed else (False,))]
