"""What `import ivme` and a first database load: a process that starts often pays for every module."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAVY = {
    "asyncio",
    "difflib",
    "duckdb",
    "fastapi",
    "matplotlib",
    "pandas",
    "polars",
    "pyspark",
    "rich",
    "sqlglot",
    "ssl",
    "typer",
    "yaml",
}
_ARROW = {"numpy", "pyarrow"}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "heavy"), [("", _HEAVY | _ARROW), ("ivme.Database()", _HEAVY)])
def test_what_is_not_needed_yet_is_not_imported(code: str, heavy: set[str]) -> None:
    script = f"import sys, ivme; {code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert set() == heavy & set(ran.stdout.split())


_LATER = {
    "ivme.closure",
    "ivme.compile",
    "ivme.engine.read.recompute",
    "ivme.engine.reference",
    "ivme.definitions.installing",
    "ivme.views.ordered_view",
    "ivme.plan.assemble.assemble",
    "ivme.plan.explain",
    "ivme.plan.order",
    "ivme.plan.strategy",
    "ivme.planning",
    "ivme.query.parse",
    "ivme.views.ring_view",
    "ivme.statements",
    "ivme.store.store",
    "ivme.structure",
    "ivme.view",
    "pyarrow.compute",
}
"""The compiler and what only some databases need: loaded with the first view, the first rows, the first statement, a
directory."""


def test_a_first_database_loads_no_compiler() -> None:
    script = "import sys, ivme; ivme.Database(); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    assert "ivme.engine.runtime.runtime" in loaded
    assert set() == _LATER & loaded


_FEW = {"ivme", "ivme.errors"}
"""All that is loaded of ivme before something of it is used."""


def test_an_import_loads_nothing_but_the_names() -> None:
    script = "import sys, ivme; print(*(name for name in sys.modules if name.split('.')[0] == 'ivme'))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert _FEW == set(ran.stdout.split())
