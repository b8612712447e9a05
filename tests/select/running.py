"""Runs a case: ivme refuses a SELECT by name, or has DuckDB's rows after each change."""

from __future__ import annotations

import atexit
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from ivme.errors import IvmeError, PlanError, UnsupportedError
from tests.fuzz.engines import Engine, limits, run
from tests.fuzz.model import Model
from tests.fuzz.oracle import MOST_ROWS, Oracle, TooLarge
from tests.fuzz.running import Difference
from tests.fuzz.sharded_engine import open_engine
from tests.fuzz.steps import Change, CreateView, DropView, Follow, Reopen, Step, Unfollow, Verify
from tests.fuzz.values import Row, canonical
from tests.select.cases import SelectCase, SelectView, shape
from tests.select.reasons import reason_of
from tests.select.time_limits import cpu_limit

SLOWEST = 60
"""The CPU seconds after which a case counts as one that never ends."""


MACROS = (
    "CREATE OR REPLACE TEMP MACRO collect_list(x) AS COALESCE(list_sort(list(x) FILTER (WHERE x IS NOT NULL)), [])",
    "CREATE OR REPLACE TEMP MACRO collect_set(x) AS list_distinct(collect_list(x)).list_sort()",
)
"""Spark's aggregates that DuckDB lacks."""


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all cases, since opening one takes longer than most queries; each case has a cursor of its own."""
    opened = duckdb.connect(config={"threads": 1})
    atexit.register(opened.close)
    return opened


class SelectOracle(Oracle):
    """DuckDB with Spark's order of NULLs, and what it says about whole SELECTs."""

    def __init__(self) -> None:
        self.connection = _duckdb().cursor()
        self.connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")
        self.connection.execute("SET order_by_non_integer_literal = true")
        for macro in MACROS:
            self.connection.execute(macro)

    def declare(self, view: SelectView) -> None:
        """Lets later views read this one."""
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {view.sql}")

    def rows(self, sql: str) -> list[Row]:
        found: list[Row] = self.connection.execute(sql).fetchmany(MOST_ROWS + 1)
        listed = sum(len(value) for row in found for value in row if isinstance(value, list))
        if len(found) + listed > MOST_ROWS:
            raise TooLarge
        return found

    def plain_rows(self, sql: str) -> list[Row]:
        """What DuckDB answers without its optimizer: 2.0.0 loses rows of `a FULL JOIN b ON TRUE JOIN c ON ...`."""
        self.connection.execute("PRAGMA disable_optimizer")
        try:
            return self.rows(sql)
        finally:
            self.connection.execute("PRAGMA enable_optimizer")


class SelectRunner:
    """One case while it runs."""

    def __init__(self, case: SelectCase, folder: Path, covered: Counter[str]) -> None:
        self.case = case
        self.folder = folder
        self.covered = covered
        self.model = Model(case.tables)
        self.oracle = SelectOracle()
        self.engines: list[Engine] = []
        self.views: dict[str, SelectView] = {}
        self.expected: dict[str, list[Row]] = {}
        self.columns = {table.name: table.columns for table in case.tables}

    def run(self) -> None:
        try:
            self.engines = [open_engine(name, self.folder) for name in self.case.engines]
            for engine in self.engines:
                for table in self.case.tables:
                    schema = {c.name: str(c.type) for c in table.columns}
                    engine.database.create_table(table.name, schema, primary_key=list(table.primary_key) or None)
            self._state(self.columns)
            for number, step in enumerate(self.case.steps):
                self._step(step)
                self._check(number)
                if not self.views and not any(isinstance(each, CreateView) for each in self.case.steps[number:]):
                    break
        except TooLarge:
            self.covered["case ended: too many rows"] += 1
        except duckdb.Error as error:
            self.covered[f"case ended: DuckDB: {str(error).splitlines()[0][:60]}"] += 1
        finally:
            for engine in self.engines:
                engine.close()
            self.oracle.close()

    def _state(self, changed: Any) -> None:
        for name in changed:
            self.oracle.set(name, self.columns[name], self.model.contents[name].elements())
        self.expected = {view.name: self.oracle.rows(view.sql) for view in self.views.values()}

    # Steps

    def _step(self, step: Step) -> None:
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
                        self.covered["verified"] += 1
            case Reopen(checkpoint):
                for engine in self.engines:
                    if engine.is_kept:
                        engine.reopen(checkpoint=checkpoint)
                        self.covered["reopened"] += 1

    def _change(self, change: Change) -> None:
        before = dict(self.model.contents)
        refused = self.model.apply(change)
        if not refused:
            self._state([name for name in self.columns if before[name] is not self.model.contents[name]])
        for engine in self.engines:
            try:
                self._apply(engine, change)
            except IvmeError as error:
                if not refused:
                    raise Difference("refused batch", f"{engine.name} refuses a good batch: {error}") from error
            else:
                if refused:
                    raise Difference("accepted batch", f"{engine.name} takes a batch in which {refused}")

    def _apply(self, engine: Engine, change: Change) -> None:
        if not change.batched:
            for op in change.ops:
                run(engine.database, op, self.columns[op.table])
            return
        with engine.database.batch() as batch:
            for op in change.ops:
                run(batch, op, self.columns[op.table])

    def _create(self, view: SelectView) -> None:
        if view.name in self.views or not view.relations <= {*self.columns, *self.views}:
            return
        self.oracle.declare(view)
        expected = self.oracle.rows(view.sql)
        self.covered["views"] += 1
        self.covered.update(f"drawn {rule}" for rule in view.rules)
        refusals = [self._refusal(engine, view) for engine in self.engines]
        if len(set(map(bool, refusals))) > 1:
            raise Difference("create", f"one engine takes {view.name}, another refuses it: {refusals}")
        if refusals and refusals[0]:
            self.covered[f"refused: {refusals[0]}"] += 1
            return
        self.views[view.name] = view
        self.expected[view.name] = expected
        self.covered["accepted"] += 1
        self.covered.update(f"accepted {rule}" for rule in view.rules)

    def _refusal(self, engine: Engine, view: SelectView) -> str:
        """Why the view is refused; empty if it is not. Only a refusal that names what is unsupported is one."""
        try:
            made = engine.database.create_view(view.name, view.text())
        except (UnsupportedError, PlanError) as error:
            return reason_of(error)
        except IvmeError as error:
            if "is ambiguous" in str(error):  # to Spark, too, where DuckDB takes the column of USING
                return reason_of(error)
            raise Difference(f"create: {type(error).__name__} {reason_of(error)}", f"{view.name}: {error}") from error
        explanation = made.explain()
        str(explanation)
        explanation.to_dict()
        explanation.svg()
        return ""

    def _drop(self, name: str) -> None:
        """Views that others read stay."""
        if name not in self.views or any(name in view.relations for view in self.views.values()):
            return
        for engine in self.engines:
            engine.database.drop_view(name)
            engine.feeds.pop(name, None)
        del self.views[name], self.expected[name]

    def _follow(self, name: str) -> None:
        if name not in self.views or self.views[name].literals:
            return
        for engine in self.engines:
            if name not in engine.feeds:
                engine.feeds[name] = (engine.database.view(name).changes(), Counter(self._rows(engine, name)))
                self.covered["followed"] += 1

    def _rows(self, engine: Engine, name: str) -> Iterator[Row]:
        """What a view holds: DuckDB's rows; ivme's own, where ties at a LIMIT leave a choice."""
        is_limited = shape(self.views[name].sql).unlimited
        return map(_comparable, engine.database.view(name) if is_limited else self.expected[name])

    # What is there

    def _check(self, number: int) -> None:
        for engine in self.engines:
            for view in self.views.values():
                self._check_view(engine, view, number)
                self._check_feed(engine, view.name)

    def _check_view(self, engine: Engine, view: SelectView, number: int) -> None:
        made = engine.database.view(view.name)
        expected = [_comparable(row) for row in self.expected[view.name]]
        request = self._request(view, made.parameters)
        found = [_comparable(row) for row in made(**request)]
        self.covered["compared rows"] += len(expected)
        places = shape(view.sql).order
        if shape(view.sql).unlimited:
            whole = Counter(map(_comparable, self.oracle.rows(shape(view.sql).unlimited)))
            _same(f"the number of rows of {view.name}", len(expected), len(found))
            _same(f"rows of {view.name} that its query without LIMIT does not have", {}, dict(Counter(found) - whole))
        else:
            if Counter(expected) != Counter(found):
                self.expected[view.name] = self.oracle.plain_rows(view.sql)
                expected = [_comparable(row) for row in self.expected[view.name]]
                self.covered["asked DuckDB again without its optimizer"] += 1
            _same(f"{engine.name}: {view.name}", Counter(expected), Counter(found))
            _same(f"{view.name}.count()", len(expected), made.count(**request))
            if number % 2:
                listed = Counter(_comparable(tuple(row.values())) for row in _listed(made.to_arrow(**request)))
                _same(f"{view.name}.to_arrow()", Counter(expected), listed)
        if places:
            _same(f"the order of {view.name}", _keys(expected, places), _keys(found, places))

    def _request(self, view: SelectView, taken: Sequence[str]) -> dict[str, Any]:
        """The values of the view's parameters; what is in a CTE that nothing reads is none."""
        if not view.literals:
            return {}
        values = self.oracle.rows(f"SELECT {', '.join(view.literals)}")[0]
        return {f"p{n}": value for n, value in enumerate(values) if f"p{n}" in taken}

    def _check_feed(self, engine: Engine, name: str) -> None:
        """Changes summed up are the view."""
        if name not in engine.feeds:
            return
        feed, total = engine.feeds[name]
        for change in feed:
            for row, weight in change.items():
                key = _comparable(row)
                total[key] = total.get(key, 0) + weight
        expected = Counter(self._rows(engine, name))
        _same(f"the changes of {name} summed up", expected, Counter({row: n for row, n in total.items() if n}))


def _listed(table: Any) -> list[dict[str, Any]]:
    """An Arrow table's rows; its columns have distinct names."""
    return list(table.to_pylist())


def _comparable(row: Row) -> Row:
    return tuple(map(canonical, row))


def _keys(rows: Sequence[Row], places: Sequence[int]) -> list[Row]:
    return [tuple(row[place] for place in places) for row in rows]


def _same(what: str, expected: Any, found: Any) -> None:
    if expected != found:
        kind = next((word for word in ("order", "number", "changes", "count", "arrow") if word in what), "rows")
        raise Difference(f"{kind} differ", f"{what}: expected {_short(expected)}, found {_short(found)}")


def _short(found: Any) -> str:
    if isinstance(found, dict):
        plain = {tuple(v if v is None else v[1] for v in row): n for row, n in found.items()}
        return str(dict(sorted(plain.items(), key=repr)))[:1200]
    return str(found)[:1200]


def run_case(case: SelectCase, covered: Counter[str] | None = None) -> Difference | None:
    """Runs a case; the first difference, or None. An error that is not ivme's is a difference, too."""
    counted: Counter[str] = Counter()
    try:
        with tempfile.TemporaryDirectory(prefix="ivme-select-") as folder, limits(case.few), cpu_limit(SLOWEST):
            SelectRunner(case, Path(folder), counted).run()
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
