"""Shards for tests that hold for every database: those that need what shards lack are skipped, by its name."""

from __future__ import annotations

from typing import Any

import pytest

from ivme.errors import PlanError
from ivme.shards.batch import ShardedBatch
from ivme.shards.database import ShardedDatabase
from ivme.shards.state import ShardedTable

LACKING = {
    "_runtime": "looks into the engine",
    "definitions": "looks into the engine",
    "entries": "counts the entries of one engine",
    "checkpoint_to": "copies a directory",
    "sql": "statements need rows at hand",
    "drop_column": "columns of tables stay",
    "rename_column": "columns of tables stay",
    "create_ies": "its tables are DuckDB's",
    "set_table_options": "promises of tables stay",
}
"""The methods of `ivme.Database` that shards lack, and why."""

REFUSED = ("semantics='ring'", "its payloads are Python objects")
"""Refusals of views that only shards make, by what they say."""

DIFFERENT = {
    "test_insert_then_delete_is_the_identity": "asks for the maps of one engine",
    "test_a_view_that_is_recomputed_is_refused_when_it_is_read": "a view that was followed once stays so",
    "test_a_sum_of_infinities_of_both_signs_is_one_row_that_comes_and_goes": "compares NaN by identity",
    **dict.fromkeys(
        (
            "test_views_of_other_epsilons_and_strategies_agree_over_the_same_tables",
            "test_the_first_insert_into_an_empty_database_is_a_major_rebalancing",
            "test_a_key_rises_at_three_halves_of_the_threshold_and_falls_below_one_half",
            "test_a_batch_that_fails_restores_the_base_and_the_heavy_keys",
            "test_a_batch_is_netted_and_cut_where_a_value_comes_too_often",
        ),
        "looks into the heavy and light parts of one engine",
    ),
}
"""Tests of the conformance suite that shards do not pass, and why: errors in other places or words, no other rows."""


class ShardedFace:
    """A `ShardedDatabase`; asking for what it lacks skips the test, and so does a view that only shards refuse."""

    def __init__(self, database: ShardedDatabase) -> None:
        self.database = database

    def __enter__(self) -> ShardedFace:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def __getattr__(self, name: str) -> Any:
        if name in LACKING:
            pytest.skip(f"shards have no {name}: {LACKING[name]}")
        return getattr(self.database, name)

    def batch(self, *arguments: Any, **options: Any) -> Any:
        return BatchFace(self.database.batch(*arguments, **options))

    def table(self, name: str) -> ShardedTable:
        """A table to read; that method of `SparkDatabase` gives a DataFrame."""
        return ShardedTable(self.database, self.database.relation(name))

    def create_view(self, *arguments: Any, **options: Any) -> Any:
        try:
            return self.database.create_view(*arguments, **options)
        except PlanError as error:
            if any(reason in str(error) for reason in REFUSED):
                pytest.skip(str(error))
            raise


class BatchFace:
    """The same for a batch."""

    def __init__(self, batch: ShardedBatch) -> None:
        self._batch = batch

    def __enter__(self) -> BatchFace:
        self._batch.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._batch.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        if name in LACKING and not hasattr(self._batch, name):
            pytest.skip(f"batches of shards have no {name}: {LACKING[name]}")
        return getattr(self._batch, name)
