"""Shards beside a Spark session: in child processes of the driver, and rows of DataFrames sent by Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ivme.shards.catalog import ShardCatalog
from ivme.shards.coordinator import PutPlace
from ivme.shards.flight_cluster import FlightCluster
from ivme.spark.shards.frames import place_frame

if TYPE_CHECKING:
    from ivme.query.model import Table


class SparkCluster(FlightCluster):
    """A `FlightCluster` that takes DataFrames."""

    def place_frame(
        self, catalog: ShardCatalog, table: Table, frame: Any, weight: int | str, transaction: str, name: str
    ) -> list[PutPlace]:
        for shard in range(self.checkpoint.shards):
            self._entry(shard)  # tasks do not wait for a host that is being started again
        return place_frame(self.checkpoint, catalog, table, frame, weight, transaction, name)

    def is_frame(self, rows: Any) -> bool:
        return hasattr(rows, "mapInArrow")
