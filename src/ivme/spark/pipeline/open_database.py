"""The database in a pipeline's state: the engine beside the driver, or shards on Spark's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.database import Database
from ivme.errors import PipelineError
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.model import Pipeline
from ivme.pipeline.state_database import StateDatabase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivme.shards.state import ShardedState

SOURCE = "pipeline"
"""The name under which the database keeps the number of the last batch."""

_ENGINE = "engine"
_EMBEDDED = "without shards"


def refuse_other_engine(pipeline: Pipeline, journal: RunJournal) -> None:
    """Refuses a file that says another engine than the state was made with, and notes it for a new state."""
    wanted, noted = _told(pipeline), journal.fact(_ENGINE)
    if noted is None and (pipeline.state / "database").exists():
        noted = _EMBEDDED
    if noted not in (None, wanted):
        raise PipelineError(
            f"{pipeline.file}: the state in {pipeline.state} was made {noted}, and the file says {wanted}; "
            "say it as it was, or use another state"
        )
    journal.note(_ENGINE, wanted)


def _told(pipeline: Pipeline) -> str:
    return _EMBEDDED if pipeline.engine is None else f"with shards in {pipeline.checkpoint}"


def open_database(
    spark: SparkSession, pipeline: Pipeline, memory_limit: int | str | None
) -> tuple[StateDatabase, ShardedState | None]:
    """The database of the state, and the same if it is over shards."""
    if pipeline.engine is None:
        path = pipeline.state / "database"
        found = Database(path, durability="sync", memory_limit=memory_limit, functions=pipeline.functions)
        return found, None
    if memory_limit is not None:
        raise PipelineError(
            f"{pipeline.file}: a memory limit is one of the engine beside the driver, and this pipeline has shards; "
            "leave it out, and limit the memory of Spark's executors"
        )
    from ivme.shards.state import ShardedState
    from ivme.spark.shards.database import SparkDatabase
    from ivme.store.checkpoint_store import open_checkpoint_store

    engine, store = pipeline.engine, open_checkpoint_store(pipeline.checkpoint)
    wanted = None if store.read("database.json") is not None else engine.shards
    shards = SparkDatabase(spark, wanted, pipeline.checkpoint, hosts=engine.hosts, tls=engine.tls)
    try:
        shards.reshard(engine.shards)
        state = ShardedState(shards, pipeline.functions, SOURCE)
    except BaseException:
        shards.close()
        raise
    return state, state
