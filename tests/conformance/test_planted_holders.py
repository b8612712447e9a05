"""A holder of codes that nobody asks is found: each fault makes the scene of its holder fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from ivme.closure.group import ClosureGroup
from ivme.database import Database
from ivme.engine.codes.dictionary import Dictionary
from ivme.engine.ingest.row_batch import RowBatch
from ivme.engine.reference.backend import PureBackend
from ivme.engine.runtime.batch import Batch
from ivme.engine.runtime.catalog import Catalog
from ivme.engine.runtime.following import FollowedGroups
from ivme.engine.runtime.gradual import GradualRebalancer
from ivme.engine.runtime.open_read import OpenRead
from ivme.errors import StorageError
from tests import scenes_of_codes as scenes
from tests.databases import BACKENDS, make_database


def nothing(*_: Any) -> list[Any]:
    return []


FAULTS: list[tuple[Any, type, str]] = [
    (scenes.results_by_code, Catalog, "forget_constants"),
    (scenes.a_batch_that_is_not_committed, Batch, "_encode_anew"),
    (scenes.an_iterator, OpenRead, "held_codes"),
    (scenes.a_block_that_is_being_decoded, OpenRead, "held_codes"),
    (scenes.the_nodes_of_a_closure, ClosureGroup, "held_codes"),
    (scenes.keys_on_their_way_to_the_other_side, GradualRebalancer, "held_codes"),
    (scenes.a_change_that_waits, RowBatch, "held_codes"),
    (scenes.rows_that_are_kept, FollowedGroups, "held_codes"),
]


REDUNDANT = (
    ("pure", scenes.results_by_code),  # in plain Python expressions remember nothing
    ("native", scenes.an_iterator),  # the kernel's cursor holds its maps as they were, and these are swept
)

CASES = [
    pytest.param(backend, *fault, id=f"{fault[0].__name__}-{backend}")
    for fault in FAULTS
    for backend in BACKENDS
    if (backend, fault[0]) not in REDUNDANT
]


@pytest.mark.parametrize(("backend", "scene", "owner", "method"), CASES)
def test_a_holder_that_is_not_asked_is_found(
    backend: str, scene: Any, owner: type, method: str, tmp_path: Path
) -> None:
    scene(make_database(backend), tmp_path)
    with patch.object(owner, method, nothing), pytest.raises((AssertionError, KeyError, IndexError)):
        scene(make_database(backend), tmp_path)


def test_rows_of_a_snapshot_that_are_not_asked_are_found(tmp_path: Path) -> None:
    with (
        Database(tmp_path / "db", durability="async") as db,
        patch.object(RowBatch, "held_codes", nothing),
        pytest.raises((AssertionError, KeyError, StorageError)),
    ):
        scenes.rows_on_their_way_to_a_snapshot(db, tmp_path)


@pytest.mark.parametrize("skipped", ["table people", "g"])
def test_a_map_that_is_not_asked_is_found(skipped: str) -> None:
    """In the plain-Python twin: the table's own map, or those of views."""
    sweep_codes = PureBackend.sweep_codes

    def without(backend: PureBackend, dictionaries: list[Dictionary], held: Any) -> None:
        maps = backend.kernel.maps
        backend.kernel.maps = {name: stored for name, stored in maps.items() if not name.startswith(skipped)}
        try:
            sweep_codes(backend, dictionaries, held)
        finally:
            backend.kernel.maps = maps

    def scene(db: Database) -> None:
        scenes.people(db)
        loud = db.create_view("loud", "SELECT upper(name) AS shout, COUNT(*) AS n FROM people GROUP BY upper(name)")
        db.insert("people", [("kept", 1)])
        scenes.replace_all(db, [], scenes.names("new"))
        assert ("KEPT", 1) in list(loud)
        assert "kept" in db.contents("people")[0].column(0).to_pylist()

    scene(make_database("pure"))
    with patch.object(PureBackend, "sweep_codes", without), pytest.raises((AssertionError, KeyError, IndexError)):
        scene(make_database("pure"))
