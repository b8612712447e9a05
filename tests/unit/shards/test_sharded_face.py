"""What the conformance suite says that shards lack."""

from __future__ import annotations

from ivme.shards.database import ShardedDatabase
from tests.sharded_face import LACKING


def test_what_is_said_to_be_lacking_is() -> None:
    assert [] == [name for name in LACKING if hasattr(ShardedDatabase, name)]
