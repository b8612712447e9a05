"""Plans that change need a new version of the planner: directories hold plans of the old one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from ivme.plan.plan_text import PLANNER_VERSION

FOLDER = Path(__file__).parent
FILE = FOLDER / "planner_version.json"


def digest_of_programs() -> str:
    """A digest of all golden programs, which tests/golden/test_program.py compares with those that are planned."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted((FOLDER / "program").glob("*.txt")):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def test_golden_programs_change_only_with_the_version_of_the_planner() -> None:
    """Raise PLANNER_VERSION, then run with IVME_UPDATE_GOLDEN=1."""
    known, now = json.loads(FILE.read_text()), {"version": PLANNER_VERSION, "programs": digest_of_programs()}
    assert known["version"] <= now["version"]
    if known["version"] < now["version"] and os.environ.get("IVME_UPDATE_GOLDEN"):
        FILE.write_text(json.dumps(now, indent=2) + "\n")
    else:
        assert known == now
