"""One text has one answer: as a view, asked once, with parameters, and in a script of `ivme sql`."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import ivme.cli.sql
from ivme.database import Database
from ivme.errors import IvmeError
from ivme.statements.result import Result
from tests.fuzz.engines import run
from tests.fuzz.model import Model
from tests.fuzz.steps import Change
from tests.select.cases import SelectCase, SelectView, make_case, shape
from tests.select.running import _comparable

Answer = tuple[tuple[str, ...], list[Any]] | str
"""The columns and rows, or the message of a refusal."""


def filled(case: SelectCase, path: Path) -> Database:
    """A database with the tables of a case and the rows that its stream leaves in them."""
    db, model = Database(path), Model(case.tables)
    columns = {table.name: table.columns for table in case.tables}
    for table in case.tables:
        schema = {column.name: str(column.type) for column in table.columns}
        db.create_table(table.name, schema, primary_key=list(table.primary_key) or None)
    for step in case.steps:
        if isinstance(step, Change) and not model.apply(step):
            with db.batch() as batch:
                for op in step.ops:
                    run(batch, op, columns[op.table])
    return db


def answer(text: str, rows: Any, columns: Any) -> Answer:
    """Rows to compare: as a bag, or in their order where the text says one by columns that it shows."""
    listed, order = [_comparable(row) for row in rows], shape(text).order
    bag = sorted(Counter(listed).items(), key=repr)
    return tuple(columns), [bag, [[row[place] for place in order] for row in listed] if order else None]


def as_view(db: Database, view: SelectView, text: str, given: dict[str, Any]) -> Answer:
    try:
        made = db.create_view("made", text)
    except IvmeError as error:
        return _said(error)
    try:
        return answer(view.sql, list(made(**given)), made.columns)
    except IvmeError as error:
        return _said(error)
    finally:
        db.drop_view("made")


def asked_once(db: Database, view: SelectView, text: str, given: dict[str, Any]) -> Answer:
    try:
        found = db.sql(text, **given)
    except IvmeError as error:
        return _said(error)
    return answer(view.sql, found.rows(), found.columns)


def _said(error: IvmeError) -> str:
    """The message without its place and text: a script has others before it."""
    return str(getattr(error, "message", error)).split(" (line ")[0].replace("made", "query").splitlines()[0]


def in_a_script(path: Path, view: SelectView, monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """The answers of the view that a script makes, and of the text itself in the script."""
    told: list[Result] = []
    monkeypatch.setattr(ivme.cli.sql, "show_result", lambda result, _: told.append(result))
    script = path.with_suffix(".sql")
    found: list[Answer] = []
    for text in (f"CREATE VIEW made AS {view.sql}; SELECT * FROM made; DROP VIEW made", f"-- alone\n{view.sql};"):
        script.write_text(text)
        told.clear()
        try:
            ivme.cli.sql.run_sql(str(path), [script], None, Console(quiet=True))
        except IvmeError as error:
            found.append(_said(error.__cause__ if isinstance(error.__cause__, IvmeError) else error))
        else:
            result = next(each for each in told if each.is_query)
            found.append(answer(view.sql, result.rows(), result.columns))
    return found


def check(seed: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compares the doors for the texts of a case; how many were answered."""
    case, path = make_case(seed), folder / f"case{seed}"
    tables = {table.name for table in case.tables}
    answered = 0
    for view in (each for each in case.views if each.relations <= tables):
        with filled(case, path) as db:
            given = {f"p{n}": db.sql(f"SELECT {text} AS x").scalar() for n, text in enumerate(view.literals)}
            plain = as_view(db, view, view.sql, {})
            once = asked_once(db, view, view.sql, {})
            valued = asked_once(db, view, view.text(), given) if given else once
            parameterised = as_view(db, view, view.text(), given) if given else plain
        scripted = in_a_script(path, view, monkeypatch)
        assert [plain] * 3 == [once, *scripted], (seed, view.sql)
        if not isinstance(parameterised, str):
            assert plain == parameterised, (seed, view.text())
        if not isinstance(plain, str):
            assert plain == valued, (seed, view.text())
            answered += 1
        for file in (path, path.with_suffix(".sql")):
            _remove(file)
    return answered


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def test_a_text_has_one_answer_by_every_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sum(check(seed, tmp_path, monkeypatch) for seed in range(500, 504)) >= 2


@pytest.mark.long
def test_many_texts_have_one_answer_by_every_door(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = int(os.environ.get("IVME_FUZZ_SEED", time.time_ns() // 10**9 % 10**6)) * 1000
    end = time.process_time() + float(os.environ.get("IVME_FUZZ_SECONDS", "150"))
    answered = 0
    while time.process_time() < end:
        answered += check(seed, tmp_path, monkeypatch)
        seed += 1
    assert answered
