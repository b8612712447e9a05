"""Runs a case: each step on each engine, and after each step everything that can be read beside what must be there."""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ivme.errors import IvmeError, PlanError
from ivme.query.types import Type
from tests.fuzz import oracle
from tests.fuzz.cases import Case
from tests.fuzz.engines import Engine, limits, run
from tests.fuzz.known import is_avoided
from tests.fuzz.model import Model
from tests.fuzz.oracle import Oracle, TooLarge, comparable
from tests.fuzz.reading import Readings
from tests.fuzz.refusals import expected_refusal
from tests.fuzz.sharded_engine import open_engine
from tests.fuzz.steps import Change, CreateView, DropView, Follow, Reopen, Step, Unfollow, Verify
from tests.fuzz.values import Row
from tests.fuzz.views import ViewSpec


class Difference(Exception):  # noqa: N818
    """A database does something else than it must; `kind` tells differences apart while one is shrunk."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class Runner:
    """One case while it runs."""

    case: Case
    folder: Path
    covered: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.model = Model(self.case.tables)
        self.oracle = Oracle()
        self.engines: list[Engine] = []
        self.views: dict[str, ViewSpec] = {}
        self.joined: dict[str, list[Row]] = {}
        self.columns = {table.name: table.columns for table in self.case.tables}

    def run(self) -> None:
        try:
            self.engines = [open_engine(name, self.folder) for name in self.case.engines]
            for engine in self.engines:
                self._declare(engine)
            self._state()
            for number, step in enumerate(self.case.steps):
                self._step(step)
                self._check(number)
        except TooLarge:
            self.covered["case:ended because it grew too large"] += 1
        finally:
            for engine in self.engines:
                engine.close()
            self.oracle.close()

    def _declare(self, engine: Engine) -> None:
        for table in self.case.tables:
            schema = {c.name: str(c.type) for c in table.columns}
            key = list(table.primary_key) or None
            engine.database.create_table(
                table.name, schema, primary_key=key, append_only=table.append_only, static=table.static
            )
            for promise in ("primary_key", "append_only", "static"):
                self.covered[f"table:{promise}"] += bool(getattr(table, promise))
            self.covered.update(f"column:{column.type.kind}" for column in table.columns)
        self.covered[f"engine:{engine.name}"] += 1

    # Steps

    def _step(self, step: Step) -> None:
        self.covered[f"step:{type(step).__name__}"] += 1
        match step:
            case Change():
                self._change(step)
            case CreateView(name):
                self._create(self.case.view(name))
            case DropView(name):
                self._drop(name)
            case Follow(name):
                self._follow(name)
            case Unfollow(name):
                for engine in self.engines:
                    if name in engine.feeds:
                        engine.feeds.pop(name)[0].close()
            case Verify(name):
                for engine in self.engines:
                    if name in self.views:
                        engine.database.view(name).verify()
            case Reopen(checkpoint):
                for engine in self.engines:
                    if engine.is_kept:
                        engine.reopen(checkpoint=checkpoint)
                        self.covered[f"reopened {'with' if checkpoint else 'without'} a checkpoint"] += 1

    def _change(self, change: Change) -> None:
        before = dict(self.model.contents)
        refused = self.model.apply(change)
        if refused:
            self.covered[f"refused:{refused}"] += 1
        else:
            self._state(before)
        self.covered.update(f"change:{op.method} of {op.form}" for op in change.ops)
        self.covered["change:batch of several tables"] += len({op.table for op in change.ops}) > 1
        for engine in self.engines:
            try:
                self._apply(engine, change)
            except IvmeError as error:
                if "does not fit its type" in str(error) and is_avoided("float sums"):
                    raise TooLarge from error
                if not refused:
                    raise Difference("refused", f"{engine.name} refuses a good batch: {error}") from error
            else:
                if refused:
                    raise Difference("accepted", f"{engine.name} takes a batch in which {refused}")

    def _apply(self, engine: Engine, change: Change) -> None:
        if not change.batched:
            for op in change.ops:
                run(engine.database, op, self.columns[op.table])
            return
        with engine.database.batch() as batch:
            for op in change.ops:
                run(batch, op, self.columns[op.table])

    def _create(self, view: ViewSpec) -> None:
        known = {*self.columns, *self.views}
        if view.name in self.views or not view.relations <= known:
            return
        self._expect(view)
        outcomes = []
        for engine in self.engines:
            try:
                made = engine.database.create_view(view.name, view.text(), **dict(view.options))
            except IvmeError as error:
                outcomes.append(str(error))
                self._check_refusal(view, error)
            except ValueError as error:
                if "at least one leaf" in str(error) and is_avoided("skew beside a product"):
                    raise TooLarge from error
                raise
            else:
                outcomes.append("")
                self.covered[f"strategy:{made.explain().strategy}"] += 1
        if len({bool(outcome) for outcome in outcomes}) > 1:
            raise Difference("create", f"one engine takes {view.name}, another refuses it: {outcomes}")
        if outcomes and not outcomes[0]:
            self._made(view)

    def _made(self, view: ViewSpec) -> None:
        self.views[view.name] = view
        self.covered.update(view.features())
        self.covered["view:accepted"] += 1
        on_views = [self.views[name] for name in view.relations if name in self.views]
        if on_views:
            self.covered["view:on views"] += 1
            self.covered["view:on views on views"] += any(set(each.relations) & set(self.views) for each in on_views)
        if dict(view.options).get("strategy"):
            self.covered[f"forced:{dict(view.options)['strategy']}"] += 1
        self._materialise(view)

    def _check_refusal(self, view: ViewSpec, error: IvmeError) -> None:
        why = expected_refusal(view, error)
        if why is None:
            raise Difference("create", f"{view.name} is refused: {error}") from error
        self.covered[f"refused view:{why}"] += 1

    def _drop(self, name: str) -> None:
        if name not in self.views:
            return
        needed = any(name in view.relations for view in self.views.values())
        for engine in self.engines:
            try:
                engine.database.drop_view(name)
            except PlanError as error:
                if not needed:
                    raise Difference("drop", f"{engine.name} does not drop {name}: {error}") from error
                continue
            if needed:
                raise Difference("drop", f"{engine.name} drops {name}, which others read")
            engine.feeds.pop(name, None)
        if not needed:
            del self.views[name]

    def _follow(self, name: str) -> None:
        view = self.views.get(name)
        if view is None:
            return
        expected = comparable(view, oracle.whole(view, self.joined[name]), inputs=True)
        for engine in self.engines:
            if view.parameters and view.aggregates:
                try:
                    engine.database.view(name).changes()
                except PlanError:
                    continue
                raise Difference("follow", f"{name} has parameters and aggregates and is followed")
            if name not in engine.feeds:
                engine.feeds[name] = (engine.database.view(name).changes(), Counter(expected))

    # What must be there

    def _state(self, before: dict[str, Any] | None = None) -> None:
        """Tells the oracle what the tables hold, and computes what the views must."""
        changed = {name for name in self.columns if before is None or before[name] is not self.model.contents[name]}
        for name in changed:
            self.oracle.set(name, self.columns[name], self.model.contents[name].elements())
        for view in self.views.values():
            if view.relations & changed:
                changed.add(view.name)
                self._expect(view)
                self._materialise(view)

    def _expect(self, view: ViewSpec) -> None:
        self.joined[view.name] = joined = self.oracle.joined(view)
        for row in oracle.whole(view, joined):
            for item, value in zip(view.items, row[len(view.parameters) :], strict=True):
                if item.function and not _fits(item.type, value):
                    raise TooLarge

    def _materialise(self, view: ViewSpec) -> None:
        if not view.parameters:
            rows = oracle.answer(view, self.joined[view.name], {})
            if rows.total() > oracle.MOST_ROWS:
                raise TooLarge
            self.oracle.set(view.name, view.columns, rows.elements())

    # What is there

    def _check(self, number: int) -> None:
        for engine in self.engines:
            readings = Readings(engine, self.covered, number)
            for table in self.case.tables:
                readings.check_table(table, self.model.contents[table.name])
            for view in self.views.values():
                readings.check_view(view, self.joined[view.name])
                readings.check_feed(view, self.joined[view.name])


def _fits(type_: Type, value: Any) -> bool:
    """Whether an integer has 64 bits, and a decimal 38 digits."""
    if value is None or type_.kind not in ("int", "decimal"):
        return True
    limit = 2**63 if type_.kind == "int" else 10**38
    return bool(-limit <= value * 10 ** (type_.scale or 0) < limit)


def run_case(case: Case, covered: Counter[str] | None = None) -> Difference | None:
    """Runs a case; the first difference, or None. An error that is not ivme's is a difference, too."""
    counted: Counter[str] = Counter()
    try:
        with tempfile.TemporaryDirectory(prefix="ivme-fuzz-") as folder, limits(case.few):
            Runner(case, Path(folder), counted).run()
    except Difference as difference:
        return difference
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        shown = "".join(traceback.format_exception(error)[-6:])
        return Difference(f"{type(error).__name__} in {where.name}", f"{type(error).__name__}: {error}\n{shown}")
    finally:
        if covered is not None:
            covered.update(counted)
    return None
