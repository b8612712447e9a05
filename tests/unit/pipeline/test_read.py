"""Pipeline files: what they say, and where messages about them point."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.errors import PipelineError
from ivme.pipeline import read_pipeline

GOOD = """\
name: flights
tables:
  routes:
    columns: {no: string, src: int, dst: int}
    load: {format: csv, path: routes.csv, options: {sep: ";"}}
    changes: {directory: changes, format: csv, operation: op, files_per_batch: 3}
  airports:
    columns: {id: int, city: string}
    primary_key: id
    load: {format: jdbc, options: {url: "jdbc:x"}}
views:
  per_city:
    sql: |
      SELECT a.city, COUNT(*) AS n
      FROM routes r JOIN airports a ON r.src = a.id
      GROUP BY a.city
  pairs:
    rule: "Q(N | A, B) = routes(N, A, B)"
    strategy: classical
sinks:
  out: {view: per_city, format: parquet, path: out}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "p.yml"
    path.write_text(text, "utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PipelineError) as caught:
        read_pipeline(write(folder, text))
    return str(caught.value).removeprefix(str(folder / "p.yml"))


def test_a_file_says_tables_sources_views_and_sinks(tmp_path: Path) -> None:
    pipeline = read_pipeline(write(tmp_path, GOOD))
    routes = pipeline.table("routes")
    assert "flights" == pipeline.name
    assert ("no", "src", "dst") == routes.table.column_names
    assert routes.load is not None
    assert str(tmp_path / "routes.csv") == routes.load.path
    assert (("sep", ";"),) == routes.load.options
    assert routes.changes is not None
    assert ("directory", "op", 3) == (routes.changes.kind, routes.changes.operation, routes.changes.files_per_batch)
    assert (("strategy", "classical"),) == pipeline.views[1].options
    assert "changes" == pipeline.sinks[0].mode
    assert tmp_path / "flights.state" == pipeline.state


@pytest.mark.parametrize(
    ("old", "new", "pointed", "told"),
    [
        ("format: csv, path: routes.csv,", "format: csv, pth: routes.csv,", "routes.csv,", "did you mean path?"),
        ("src: int, dst", "src: number, dst", "number", "unknown type 'number'"),
        ("primary_key: id", "primary_key: code", "columns: {id", "no column 'code'"),
        ("a.city, COUNT", "a.town, COUNT", "town,", "town"),
        ("routes(N, A, B)", "route(N, A, B)", '"Q(N', "route"),
        ('"Q(N | A, B) = routes(N, A, B)"', "Q(N) = route(N, A, B)", "route(N", "route"),
        ("view: per_city", "view: per_town", "per_town", "no view per_town"),
        ("operation: op,", "operation: op, weight: w,", "w,", "not both"),
        (
            "directory: changes,",
            "",
            "{ format: csv, operation",
            "needs one of directory, stream, frame, delta, iceberg, view",
        ),
        ("format: parquet, path: out", "format: parquet", "{view: per_city", "needs a path"),
        ("format: parquet, path: out", "format: kafka", "kafka", "duplicates: accepted"),
        ("format: parquet, path: out", "format: parqet, path: out", "parqet", "no format parqet; did you mean parquet"),
        ("format: csv, operation", "format: jsonl, operation", "jsonl", "did you mean json? Known are parquet, delta"),
        (
            "city: string}",
            "city: string, p: decimal(8, 2)}",
            "decimal(8",
            'p is decimal(8, cut off at a comma: put the type in quotes, as in p: "decimal(8, 2)"',
        ),
        ("format: parquet, path: out", "format: memory", "memory", "from streams only"),
        ("view: per_city,", "view: pairs, what: rows,", "pairs, what", "has parameters"),
        ("strategy: classical", "strategy: magic", '"Q(N', "magic"),
        ("files_per_batch: 3", "files_per_batch: 0", "0}", "from 1 on"),
        ("name: flights", "name: [flights", ":\n  routes", "not YAML"),
        ("  airports:\n", "  routes:\n", "routes:\n    columns: {id", "given twice"),
        ("    primary_key: id\n", "    primary_key: id\n    static: perhaps\n", "perhaps", "true or false"),
    ],
)
def test_a_message_points_at_the_line_and_column(tmp_path: Path, old: str, new: str, pointed: str, told: str) -> None:
    text = GOOD.replace(old, new)
    assert (1, 1) == (GOOD.count(old), text.count(pointed))
    before = text[: text.index(pointed)].split("\n")
    message = refusal(tmp_path, text)
    assert message.startswith(f":{len(before)}:{len(before[-1]) + 1}: "), message
    assert told in message


def test_a_static_table_takes_no_changes(tmp_path: Path) -> None:
    changed = GOOD.replace("    load: {format: csv", "    static: true\n    load: {format: csv")
    assert "cannot have changes" in refusal(tmp_path, changed)


def test_an_empty_file_is_told_what_a_pipeline_has(tmp_path: Path) -> None:
    assert "tables, views and sinks" in refusal(tmp_path, "# nothing\n")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"there is no file .*nowhere\.yml"):
        read_pipeline(tmp_path / "nowhere.yml")


def test_the_query_of_a_view_may_be_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pairs.sql").write_text("SELECT no FROM routes WHERE src = :a", "utf-8")
    text = GOOD.replace('rule: "Q(N | A, B) = routes(N, A, B)"', "sql: pairs.sql")
    assert "SELECT no" in read_pipeline(write(tmp_path, text)).views[1].query


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("per_city:", r'"per\ud800":', "has a lone surrogate"),
        ("  routes:\n", '  "routes\\n":\n', "has a control character or a line break"),
        ("{id: int,", '{id: int, "a\\0": int,', "has a control character or a line break"),
        ("per_city:", "a" * 300 + ":", "has 300 characters"),
        ("name: flights", r'name: "\ud800"', "has a character that no text has"),
        ("path: out}", r'path: "out\0"}', "has a character that no text has"),
        ("files_per_batch: 3", "files_per_batch: " + "9" * 5000, "is not a value"),
        ("files_per_batch: 3", "files_per_batch: 2024-99-99", "is not a value"),
        ("strategy: classical", "strategy: skew\n    epsilon: 1.0e+16000000", "epsilon must be a number from 0 to 1"),
        ("strategy: classical", "strategy: skew\n    epsilon: " + "9" * 4000, "epsilon must be a number from 0 to 1"),
        ("name: flights", "name: \x01", "this is not YAML"),
        ("name: flights", "name: " + "[" * 5000, "this is not YAML"),
    ],
    ids=range(12),
)
def test_names_and_numbers_that_are_none_are_refused_with_their_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in GOOD
    refused = refusal(tmp_path, GOOD.replace(old, new, 1))
    assert message in refused
    assert len(refused) < 1000


FUNCTIONS = """\
functions:
  root: {call: "math:isqrt", arguments: [int], returns: int}
  size: {call: "builtins:len", arguments: [string], returns: int, called_with_null: false}
views:
  roots: {sql: "SELECT root(src) AS r, size_of(no) AS n FROM routes"}
"""


def test_a_file_names_the_functions_that_views_call(tmp_path: Path) -> None:
    text = GOOD.replace("views:\n", FUNCTIONS.replace("  size:", "  size_of:"), 1)
    pipeline = read_pipeline(write(tmp_path, text))
    assert ["root(int) -> int", "size_of(string) -> int"] == [str(each.signature()) for each in pipeline.functions]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("math:isqrt", "math:nothing", "cannot be imported"),
        ("returns: int}", "returns: number}", "unknown type 'number'"),
        ("  root:", "  sqrt:", "choose another name"),
        ('call: "math:isqrt", ', "", "needs"),
        ("arguments: [int]", "arguments: [string]", "is of type int"),
    ],
)
def test_a_function_that_cannot_be_called_is_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    text = GOOD.replace("views:\n", FUNCTIONS.replace("  size:", "  size_of:").replace(old, new, 1), 1)
    assert told in refusal(tmp_path, text)


_KEYED = """\
tables:
  t:
    columns: {{id: int, city: string}}
    {table}
    changes: {{directory: changes, format: json{changes}}}
views:
  v:
    sql: SELECT city, COUNT(*) AS n FROM t GROUP BY city
  w:
    sql: SELECT city FROM t
sinks:
  s: {sink}
"""

_MERGE = "{view: v, mode: merge, format: delta, path: out}"


def _keyed(folder: Path, changes: str, table: str = "primary_key: id", sink: str = _MERGE) -> Path:
    return write(folder, _KEYED.format(changes=changes, table=table, sink=sink))


def test_changes_by_key_and_a_merge_are_read(tmp_path: Path) -> None:
    more = ", upsert: true, sequence_by: [ts, id], sequence_type: [timestamp, int]"
    pipeline = read_pipeline(_keyed(tmp_path, more))
    changes = pipeline.table("t").changes
    assert changes is not None
    assert changes.is_keyed
    assert (("ts", "id"), ["timestamp", "int"]) == (changes.sequence_by, [str(t) for t in changes.sequence_types])
    assert ("merge", ()) == (pipeline.sinks[0].mode, pipeline.sinks[0].key)


@pytest.mark.parametrize(
    ("changes", "table", "sink", "told"),
    [
        (", upsert: true", "append_only: true", _MERGE, "needs a primary_key"),
        (", upsert: true", "primary_key: id\n    append_only: true", _MERGE, "append-only"),
        (", sequence_by: lsn", "primary_key: id", _MERGE, "say `upsert: true`"),
        (", upsert: true, sequence_type: int", "primary_key: id", _MERGE, "needs sequence_by"),
        (", upsert: true, weight: w", "primary_key: id", _MERGE, "leave weight out"),
        (", envelope: maxwell", "primary_key: id", _MERGE, "must be debezium"),
        (", envelope: debezium, operation: op", "primary_key: id", _MERGE, "leave operation out"),
        (", snapshot: replace, upsert: true", "primary_key: id", _MERGE, "leave upsert out"),
        (", snapshot: append", "primary_key: id", _MERGE, "must be replace"),
        ("", "primary_key: id", "{view: w, mode: merge, format: delta, path: out}", "needs a key"),
        ("", "primary_key: id", "{view: w, mode: merge, key: id, format: delta, path: out}", "no column id"),
        ("", "primary_key: id", "{view: v, mode: merge, format: parquet, path: out}", "say format: delta"),
        ("", "primary_key: id", "{view: v, mode: rows, key: city, format: delta, path: out}", "is for mode: merge"),
        ("", "primary_key: id", "{view: v, mode: rows, what: rows, format: delta, path: out}", "leave what out"),
        ("", "primary_key: id", "{view: v, call: 'no_such_module:f'}", "cannot be imported"),
        ("", "primary_key: id", "{view: v, call: 'json:dumps', path: x}", "leave format and path out"),
    ],
)
def test_what_does_not_go_together_is_refused_at_its_place(
    tmp_path: Path, changes: str, table: str, sink: str, told: str
) -> None:
    with pytest.raises(PipelineError, match=r"p\.yml:\d+:\d+|\.yml:\d+:\d+") as caught:
        read_pipeline(_keyed(tmp_path, changes, table, sink))
    assert told in str(caught.value)


_JDBC = """\
tables:
  orders:
    columns: {id: int, day: date}
    primary_key: id
    load: {format: csv, path: orders.csv}
    changes:
      jdbc: {url: "jdbc:x", dbtable: orders}
      cursor: version
      delay: 30 seconds
      upsert: true
views:
  v:
    sql: SELECT day, COUNT(*) AS n FROM orders GROUP BY day
sinks:
  s: {view: v, mode: merge, format: jdbc, table: v, options: {url: "jdbc:x"}}
"""


def test_rows_of_jdbc_are_new_by_a_cursor(tmp_path: Path) -> None:
    changes = read_pipeline(write(tmp_path, _JDBC)).tables[0].changes
    assert changes is not None
    assert ("jdbc", "version", "30 seconds") == (changes.kind, changes.cursor, changes.delay)
    assert (("url", "jdbc:x"), ("dbtable", "orders")) == changes.rows.options


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (", dbtable: orders", "", "needs dbtable"),
        ("      cursor: version\n", "", "needs the field cursor"),
        ("30 seconds", "soon", "a delay is a number of"),
        ("      upsert: true\n", "", "leave load out"),
        ("      upsert: true\n", "      envelope: debezium\n", "neither a format nor an envelope"),
        ("table: v,", "table: v, key: [n],", "nothing says that n is a key"),
        (', options: {url: "jdbc:x"}', "", "format: jdbc, a table, and the url"),
    ],
)
def test_rows_of_jdbc_that_cannot_be_are_refused(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert told in refusal(tmp_path, _JDBC.replace(old, new))


@pytest.mark.parametrize(
    ("table", "column", "start", "end", "told"),
    [
        ("order", "day", "2026-11-01", "2026-11-02", "has no table order"),
        ("orders", "id", "2026-11-01", "2026-11-02", "not a column of dates"),
        ("orders", "day", "2026-11-02", "2026-11-02", "starts before it ends"),
        ("orders", "day", "yesterday", "2026-11-02", "'yesterday' is not a date"),
    ],
)
def test_a_range_that_cannot_be_loaded_again_is_refused(
    tmp_path: Path, table: str, column: str, start: str, end: str, told: str
) -> None:
    pytest.importorskip("pyspark")
    from ivme.spark.pipeline.backfill import read_range

    pipeline = read_pipeline(write(tmp_path, _JDBC))
    with pytest.raises(PipelineError, match=told):
        read_range(pipeline, table, column, start, end)
