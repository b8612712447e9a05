"""A server under load: readers, subscribers and a writer at once; and access requests alone.

    python -m benchmarks.serve [--seconds 60] [--readers 200] [--subscribers 20] [--updates 10000]

The server, with a durable database (durability="sync"), the writer, the subscribers and the readers are a process each.
The writer posts batches of 500 changes through HTTP as often as it takes; each reader asks about ten times a second;
each subscriber sums up the changes of a view, and what it has at the end must be the view. Every status is checked.
On a machine that others use, times say little; the CPU time that the server takes for a read, and for an update with
its subscribers, is measured first, each without the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measure import parse, show
from ivme.database import Database

CITIES = 1000
BATCH = 500
_HOST = "127.0.0.1"


def make_database(path: Path) -> None:
    """Airports, flights between them, and two views."""
    with Database(path) as db:
        db.create_table("flights", {"no": "int", "src": "int", "dst": "int"})
        db.create_table("airports", {"id": "int", "city": "string"}, primary_key="id")
        db.create_view(
            "search",
            "SELECT f.no FROM flights f JOIN airports a ON f.src = a.id JOIN airports b ON f.dst = b.id "
            "WHERE a.city = :origin AND b.city = :dest",
        )
        db.create_view(
            "per_city", "SELECT a.city, COUNT(*) AS n FROM flights f JOIN airports a ON f.src = a.id GROUP BY a.city"
        )
        db.insert("airports", [(n, f"city {n}") for n in range(CITIES)])
        db.insert("flights", [flight(n) for n in range(10 * CITIES)])


def flight(number: int) -> tuple[int, int, int]:
    return number, number % CITIES, number * 7 % CITIES


@dataclass(slots=True)
class Figures:
    """What the clients have seen."""

    requests: int = 0
    updates: int = 0
    frames: int = 0
    behind: float = 0.0
    errors: list[str] = field(default_factory=list)


class Client:
    """One connection that stays open."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """The status and the body of an answer that says its length."""
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(_HOST, self._port, limit=2**24)
        kind = b"Content-Type: application/json\r\n" if body else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n".encode()
        self._writer.write(head + kind + b"\r\n" + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        lower = answer.lower()
        if b"content-length: " in lower:
            length = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0])
            return int(answer[9:12]), await self._reader.readexactly(length)
        content = b""
        while (size := int(await self._reader.readline(), 16)) > 0:
            content += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return int(answer[9:12]), content

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


async def read(port: int, number: int, until: float, pause: float, figures: Figures) -> None:
    """Asks again and again, with a pause."""
    client, place = Client(port), number
    while time.monotonic() < until:
        origin, dest = place % CITIES, place * 7 % CITIES
        status, body = await client.ask("GET", f"/views/search?origin=city%20{origin}&dest=city%20{dest}")
        if status != 200 or b'"rows"' not in body:
            figures.errors.append(f"read {status} {body[:200]!r}")
        figures.requests += 1
        place += 1
        if pause:
            await asyncio.sleep(pause)
    client.close()


async def write(port: int, updates: int, until: float, figures: Figures) -> None:
    """Half of each batch are new flights, half take the oldest of ours away."""
    client, first = Client(port), 10 * CITIES
    last = first
    pause, due = BATCH / updates, time.monotonic()
    while time.monotonic() < until:
        new = [flight(n) for n in range(last, last + BATCH // 2)]
        old = [flight(n) for n in range(first, first + BATCH // 2)] if last > first + 20 * BATCH else []
        body = json.dumps({"insert": new, "delete": old}).encode()
        status, answer = await client.ask("POST", "/tables/flights/changes", body)
        if status != 200:
            figures.errors.append(f"write {status} {answer[:200]!r}")
        last, first = last + len(new), first + len(old)
        figures.updates += len(new) + len(old)
        due += (len(new) + len(old)) / BATCH * pause
        figures.behind = max(figures.behind, time.monotonic() - due)
        await asyncio.sleep(max(0.0, due - time.monotonic()))
    client.close()


async def subscribe(port: int, figures: Figures, total: Counter[Any]) -> None:
    """Sums up the changes of a view until it is cancelled."""
    reader, writer = await asyncio.open_connection(_HOST, port, limit=2**26)
    writer.write(b"GET /views/per_city/changes HTTP/1.0\r\nHost: localhost\r\n\r\n")
    event = b""
    try:
        while line := await reader.readline():
            if line.startswith(b"event: "):
                event = line[7:].strip()
            elif line.startswith(b"data: "):
                data = json.loads(line[6:])
                if event == b"end":
                    figures.errors.append(f"subscriber ended: {data}")
                for row, weight in data.get("changes") or data.get("rows") or ():
                    total[tuple(row)] += weight
                    if not total[tuple(row)]:
                        del total[tuple(row)]
                figures.frames += event == b"change"
    finally:
        writer.close()


async def follow(port: int, subscribers: int, seconds: float, figures: Figures) -> None:
    """Subscribers, until the time is over and each of them has the view, or does not get it."""
    totals: list[Counter[Any]] = [Counter() for _ in range(subscribers)]
    following = [asyncio.create_task(subscribe(port, figures, total)) for total in totals]
    await asyncio.sleep(seconds)
    client = Client(port)
    wrong = subscribers
    for _ in range(100):
        await asyncio.sleep(0.2)
        _, body = await client.ask("GET", "/views/per_city")
        expected = Counter(map(tuple, json.loads(body)["rows"]))
        wrong = sum(total != expected for total in totals)
        if not wrong:
            break
    client.close()
    figures.errors += [f"{wrong} subscribers do not have the view"] if wrong else []
    for task in following:
        task.cancel()
    await asyncio.gather(*following, return_exceptions=True)


def write_alone(port: int, updates: int, seconds: float) -> Figures:
    """The writer, in a process of its own."""
    figures = Figures()
    asyncio.run(write(port, updates, time.monotonic() + seconds, figures))
    return figures


def follow_alone(port: int, subscribers: int, seconds: float) -> Figures:
    """The subscribers, in a process of their own; their time goes on until the writer has ended."""
    figures = Figures()
    asyncio.run(follow(port, subscribers, seconds, figures))
    return figures


async def together(port: int, options: argparse.Namespace) -> Figures:
    """Everybody at once; there is an error unless every subscriber has the view at the end."""
    figures, seconds = Figures(), options.seconds
    loop, until = asyncio.get_running_loop(), time.monotonic() + seconds
    readers = [read(port, n * 37, until, 0.1, figures) for n in range(options.readers)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        writer = loop.run_in_executor(pool, write_alone, port, options.updates, seconds)
        followers = loop.run_in_executor(pool, follow_alone, port, options.subscribers, seconds)
        written, followed, *_ = await asyncio.gather(writer, followers, *readers)
    assert written is not None
    assert followed is not None
    figures.updates, figures.behind, figures.frames = written.updates, written.behind, followed.frames
    figures.errors += written.errors + followed.errors
    return figures


async def alone(port: int, seconds: float) -> float:
    """Access requests a second, from 32 connections that do not pause."""
    figures = Figures()
    until = time.monotonic() + seconds
    await asyncio.gather(*(read(port, n * 31, until, 0.0, figures) for n in range(32)))
    assert not figures.errors, figures.errors[:3]
    return figures.requests / seconds


def start(path: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A server of a directory, and its port."""
    with socket.socket() as free:
        free.bind((_HOST, 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "ivme.cli", "serve", str(path), "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, "IVME_TOKEN": ""})
    while process.poll() is None:
        try:
            socket.create_connection((_HOST, port), timeout=1).close()
            return process, port
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the server did not start")


def cpu_seconds(process: int) -> float:
    """The CPU time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--subscribers", type=int, default=20)
    parser.add_argument("--updates", type=int, default=10_000)
    options = parse(parser)
    with tempfile.TemporaryDirectory() as name:
        make_database(Path(name) / "db")
        server, port = start(Path(name) / "db")
        try:
            short = min(10.0, options.seconds)
            before = cpu_seconds(server.pid)
            requests = asyncio.run(alone(port, short))
            a_read = (cpu_seconds(server.pid) - before) / (requests * short)
            show("access requests, 32 connections, alone", requests, "per s", "at least 3000")
            show("  CPU of the server for each", a_read * 1e6, "µs")
            before = cpu_seconds(server.pid)
            few = argparse.Namespace(**{**vars(options), "seconds": short, "readers": 0})
            figures = asyncio.run(together(port, few))
            an_update = (cpu_seconds(server.pid) - before) / figures.updates
            show(f"updates, {options.subscribers} subscribers, no readers", figures.updates / short, "per s")
            show("  CPU of the server for each", an_update * 1e6, "µs")
            assert not figures.errors, figures.errors[:3]
            before, mine = cpu_seconds(server.pid), time.process_time()
            figures = asyncio.run(together(port, options))
            used, mine = cpu_seconds(server.pid) - before, time.process_time() - mine
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
    assert not figures.errors, (len(figures.errors), figures.errors[:3])
    show(f"updates beside {options.readers} readers", figures.updates / options.seconds, "per s", "10000")
    show("  the writer was behind by at most", figures.behind, "s")
    show("  reads", figures.requests / options.seconds, "per s")
    show(f"  frames, {options.subscribers} subscribers", figures.frames / options.seconds, "per s")
    show("  CPU of the server", used, "s")
    show("  of which reads and updates alone would take", a_read * figures.requests + an_update * figures.updates, "s")
    show("  CPU of the readers", mine, "s")
    print("no error; every subscriber's changes add up to the view")


if __name__ == "__main__":
    main()
