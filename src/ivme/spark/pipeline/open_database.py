"""The database in a pipeline's state: the engine beside the driver, or shards on Spark's hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ivme.database import Database
from ivme.errors import PipelineError
from ivme.pipeline.journal import RunJournal
from ivme.pipeline.model import Pipeline, Sharded
from ivme.pipeline.state_database import StateDatabase

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ivme.shards.state import ShardedState

SOURCE = "pipeline"
"""The name under which the database keeps the number of the last batch."""

_ENGINE = "engine"
"""The fact that says which engine the state was made with: none, or the identity of the shards' checkpoint."""

_EMBEDDED = "without shards"


def open_database(
    spark: SparkSession, pipeline: Pipeline, journal: RunJournal, memory_limit: int | str | None
) -> tuple[StateDatabase, ShardedState | None]:
    """The database of the state, and the same if it is over shards; refuses an engine that is not the state's."""
    noted = journal.fact(_ENGINE)
    if noted is None and (pipeline.state / "database").exists():
        noted = _EMBEDDED
    if noted is not None and (noted == _EMBEDDED) != (pipeline.engine is None):
        was, says = ("without", "with") if noted == _EMBEDDED else ("with", "without")
        raise PipelineError(
            f"{pipeline.file}: the state in {pipeline.state} was made {was} shards, and the file says {says} shards; "
            "say it as it was, or use another state"
        )
    if pipeline.engine is not None:
        found = _open_shards(spark, pipeline, pipeline.engine, noted, memory_limit)
        journal.note(_ENGINE, found.shards.checkpoint.identity)
        return found, found
    path = pipeline.state / "database"
    database = Database(path, durability="sync", memory_limit=memory_limit, functions=pipeline.functions)
    database.definitions.warns_of_clock = False  # the watermarks of its sources move it
    journal.note(_ENGINE, _EMBEDDED)
    return database, None


def _open_shards(
    spark: SparkSession, pipeline: Pipeline, engine: Sharded, noted: str | None, memory_limit: int | str | None
) -> ShardedState:
    """The shards of the checkpoint, as many as the file says; `noted` is the identity that it must have."""
    from ivme.shards.state import ShardedState
    from ivme.spark.shards.database import SparkDatabase
    from ivme.store.checkpoint_store import open_checkpoint_store

    if memory_limit is not None:
        raise PipelineError(
            f"{pipeline.file}: a memory limit applies to the engine in the driver's process, and this pipeline has "
            "shards; leave it out, and limit the memory of Spark's executors"
        )
    is_there = open_checkpoint_store(pipeline.checkpoint).read("database.json") is not None
    if noted is not None and not is_there:
        raise PipelineError(
            f"{pipeline.file}: there is no checkpoint in {pipeline.checkpoint}, and the state in {pipeline.state} was "
            "made with one; bring it back, or use another state"
        )
    wanted = None if is_there else engine.shards
    shards = SparkDatabase(spark, wanted, pipeline.checkpoint, hosts=engine.hosts, tls=engine.tls)
    try:
        if noted not in (None, shards.checkpoint.identity):
            raise PipelineError(
                f"{pipeline.file}: the checkpoint in {pipeline.checkpoint} is not the one that the state in "
                f"{pipeline.state} was made with; say where that is, or use another state"
            )
        state = ShardedState(shards, pipeline.functions, SOURCE)
        shards.reshard(engine.shards)  # the state keeps the changes that sinks may lack
    except BaseException:
        shards.close()
        raise
    return state
