"""`engine: {shards: n}` in a pipeline file, and what shards cannot do: refused when the file is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ivme.cli.pipeline import flow
from ivme.database import Database
from ivme.errors import PipelineError
from ivme.pipeline import read_pipeline
from ivme.pipeline.model import Sharded
from ivme.pipeline.read import declare_all
from ivme.pipeline.read_engine import explained

FILE = """\
engine: {engine}
{head}tables:
  R:
    columns: {{a: int, b: int, at: timestamp}}
    primary_key: [a, b]
{table}views:
{views}
"""


def read(folder: Path, engine: str = "{shards: 4}", views: str = "", table: str = "", head: str = "") -> object:
    file = folder / "p.yml"
    views = views or "  v: {sql: 'SELECT a, COUNT(*) AS n FROM R GROUP BY a'}"
    file.write_text(FILE.format(engine=engine, views=views, table=table, head=head), "utf-8")
    return read_pipeline(file)


def test_an_engine_has_shards_and_where_its_steps_are(tmp_path: Path) -> None:
    read(tmp_path)
    found = read_pipeline(tmp_path / "p.yml")
    assert Sharded(4) == found.engine
    assert str(found.state / "shards") == found.checkpoint
    assert "4 shards on Spark's hosts" in next(iter(flow(found)))
    read(tmp_path, "{shards: 8, hosts: 2, checkpoint: 's3://bucket/p', tls: true}")
    found = read_pipeline(tmp_path / "p.yml")
    assert Sharded(8, "s3://bucket/p", 2, tls=True) == found.engine
    assert "s3://bucket/p" == found.checkpoint


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "no shards": ({"engine": "{hosts: 2}"}, "engine needs the field shards"),
    "zero shards": ({"engine": "{shards: 0}"}, "engine.shards must be a whole number from 1 on"),
    "too many": ({"engine": "{shards: 5000}"}, "engine.shards is at most 1024"),
    "more hosts than shards": ({"engine": "{shards: 2, hosts: 3}"}, "3 hosts cannot serve 2 shards"),
    "another field": ({"engine": "{shard: 2}"}, "engine has an unknown field shard; did you mean shards?"),
    "a ring": ({"views": "  v: {sql: 'SELECT a FROM R', semantics: ring}"}, "semantics='ring'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_shards_cannot_do_is_refused_by_name_when_the_file_is_read(tmp_path: Path, case: str) -> None:
    given, message = REFUSED[case]
    with pytest.raises(PipelineError, match=r"p\.yml:") as error:
        read(tmp_path, **given)
    assert message in str(error.value)


def test_watermarks_and_views_with_the_time_are_read_and_explained(tmp_path: Path) -> None:
    views = (
        "  v: {sql: 'SELECT a FROM R WHERE at > NOW()'}\n"
        "  w: {sql: 'SELECT a, COUNT(*) AS n FROM R GROUP BY a', expire: 'at + INTERVAL 7 DAY'}\n"
        "  x: {sql: 'SELECT n, COUNT(*) AS m FROM w GROUP BY n'}"
    )
    read(tmp_path, table="    watermark: {column: at, delay: 1 hour}\n", views=views, head="copy: there\n")
    found = read_pipeline(tmp_path / "p.yml")
    with Database() as database:
        declare_all(found, database)
        told = dict(explained(found, database))
    assert all("over 4 shards" in told[name][0] for name in "vwx"), told


def test_explain_says_which_views_are_spread_and_which_are_in_one_shard_and_why(tmp_path: Path) -> None:
    views = "  v: {sql: 'SELECT a, COUNT(*) AS n FROM R GROUP BY a'}\n  w: {rule: 'Q(X, Y) = closure(R)'}"
    (tmp_path / "p.yml").write_text(
        f"engine: {{shards: 4}}\ntables:\n  R:\n    columns: {{a: int, b: int}}\nviews:\n{views}\n", "utf-8"
    )
    found = read_pipeline(tmp_path / "p.yml")
    with Database() as database:
        declare_all(found, database)
        told = dict(explained(found, database))
    assert ("over 4 shards: a: 4",) == told["v"]
    assert "of 4 alone" in told["w"][0]
