"""A failing case as a script of its own: only ivme is needed to run it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fuzz.cases import AnyCase
from tests.fuzz.sharded_engine import ENDING
from tests.fuzz.steps import Change, CreateView, DropView, Follow, Op, Reopen, Step, Unfollow, Verify

_HEADER = """\
# {what}
# The case of seed {seed}, shrunk: `python -m {program} --case {seed}` runs the whole of it.
import datetime
import tempfile
from datetime import date
from decimal import Decimal

import ivme

inf = float("inf")
nan = float("nan")
"""


def script(case: AnyCase, what: str, program: str = "tests.fuzz") -> str:
    """A Python script that does what the case does, and prints what the views hold in the end."""
    shown = "\n# ".join(what.splitlines())
    lines = [_HEADER.format(what=shown, seed=case.seed, program=program)]
    lines += _opening(case)
    for table in case.tables:
        schema = {c.name: str(c.type) for c in table.columns}
        promises = f", primary_key={list(table.primary_key)}" if table.primary_key else ""
        promises += ", append_only=True" * table.append_only + ", static=True" * table.static
        lines.append(f"db.create_table({table.name!r}, {schema}{promises})")
    lines += [line for step in case.steps for line in _step(case, step)]
    made = {step.name for step in case.steps if isinstance(step, CreateView)}
    made -= {step.name for step in case.steps if isinstance(step, DropView)}
    for view in (view for view in case.views if view.name in made):
        asked = f"  # give {', '.join(p.name for p in view.parameters)}" if view.parameters else ""
        reading = "" if view.parameters else f"print({view.name!r}, list(db.view({view.name!r}).items()))"
        lines.append(f"{reading}{asked}  # expected: {view.duck_text()}" if reading else f"# {view.name}{asked}")
    return "\n".join(lines) + "\n"


def _opening(case: AnyCase) -> Iterator[str]:
    engine = case.engines[0]
    if case.few != 16:
        yield "from ivme.engine.expression import by_code"
        yield "from ivme.engine.runtime import batch, open_read, reader, rebalance, runtime"
        yield f"batch.MOST_SINGLE_ROWS = runtime.MOST_SINGLE_ROWS = {case.few}"
        yield "rebalance.SMALLEST_PIECE, open_read.FIRST_ROWS, open_read.BLOCK = 3, 2, 5"
        yield "reader.MANY, by_code._MANY = 7, 2"
    if engine.startswith("pure"):
        yield "from ivme import definitions"
        yield "from ivme.engine.codes.domains import Domains"
        yield "from ivme.engine.reference.backend import PureBackend"
        yield "from ivme.engine.runtime.runtime import Runtime"
        yield "definitions.new_runtime = lambda: Runtime(PureBackend(), Domains())"
    if engine.endswith("on disk"):
        yield "path = tempfile.mkdtemp()"
    if engine.endswith(ENDING):
        yield "from tests.sharded_databases import local_database"
        yield "path = tempfile.mkdtemp()"
        yield f"db = local_database(path, {engine.removesuffix(ENDING)})"
        return
    yield f"db = ivme.Database({'path' if engine.endswith('on disk') else ''})"


def _step(case: AnyCase, step: Step) -> Iterator[str]:
    match step:
        case Change(ops, batched):
            if not batched:
                yield from (f"db.{_op(op)}" for op in ops)
                return
            yield "with db.batch() as batch:"
            yield from (f"    batch.{_op(op)}" for op in ops)
        case CreateView(name):
            view = case.view(name)
            options = "".join(f", {option}={value!r}" for option, value in view.options)
            yield f"db.create_view({name!r}, {view.text()!r}{options})"
        case DropView(name):
            yield f"db.drop_view({name!r})"
        case Follow(name):
            yield f"feed_{name} = db.view({name!r}).changes()"
        case Unfollow(name):
            yield f"feed_{name}.close()"
        case Verify(name):
            yield f"db.view({name!r}).verify()"
        case Reopen(checkpoint):
            if case.engines[0].endswith(ENDING):
                yield from ["db._coordinator.compact(db._oldest_wanted, now=True)"] * checkpoint
                yield "db = local_database(path, None)"
            if case.engines[0].endswith("on disk"):
                yield from ["db.checkpoint()"] * checkpoint
                yield "db.close()"
                yield "db = ivme.Database(path)"


def _op(op: Op) -> str:
    rows: Any = list(op.rows)
    form = f"  # as {op.form}" if op.form != "list" else ""
    if op.method == "insert":
        return f"insert({op.table!r}, {rows}){form}"
    if op.method == "apply":
        return f"apply({op.table!r}, {rows}, {list(op.weights)}){form}"
    strict = "" if op.method == "delete" else ", strict=False"
    return f"delete({op.table!r}, {rows}{strict}){form}"
