"""The flow of the compiler is the folder tree: imports point down it, and never back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ivme

_HOME = Path(ivme.__file__).parent

_LAYERS = (
    ("errors", "_kernel", "budget"),
    ("algebra", "query", "structure", "tables", "rings"),
    ("plan.ir",),
    ("plan.order",),
    ("plan.assemble",),
    ("plan.strategy",),
    ("plan.explain",),
    ("plan", "compile"),
    ("engine.codes",),
    ("engine.expression",),
    ("engine.ingest",),
    ("engine",),
    ("engine.reference",),
    ("engine.runtime",),
    ("engine.read",),
    ("closure", "planning", "view", "closure_view", "ies_view", "installing"),
    ("database", "store", "table_columns"),
    ("pipeline", "serve", "shards"),
    ("spark",),
    ("bench", "gallery", "demo", "cli"),
)
"""From the bottom to the top. A package imports from its own layer and from those below it."""

_LEVELS = {name: level for level, names in enumerate(_LAYERS) for name in names}

_LATER = {"ivme", "ivme.__init__"}
"""The public face imports what it shows."""


def _package(module: str) -> str:
    parts = module.removeprefix("ivme.").split(".")
    return next(name for name in (".".join(parts[:n]) for n in (2, 1)) if name in _LEVELS)


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(_HOME.rglob("*.py")):
        yield "ivme." + ".".join(path.relative_to(_HOME).with_suffix("").parts).removesuffix(".__init__"), path


def _imports(path: Path) -> Iterator[str]:
    """What a module imports when it is loaded or run, but not what only its annotations name."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and id(node) not in skipped:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                found = _HOME.joinpath(*inner.split(".")[1:])
                yield inner if found.is_dir() or found.with_suffix(".py").exists() else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize(("module", "path"), [each for each in _modules() if each[0] not in _LATER])
def test_imports_point_down(module: str, path: Path) -> None:
    layer = _LEVELS[_package(module)]
    up = [
        name
        for name in _imports(path)
        if name.startswith("ivme.") and name != "ivme._kernel" and _LEVELS[_package(name)] > layer
    ]
    assert [] == up


@pytest.mark.slow
def test_only_the_spark_package_imports_pyspark() -> None:
    found = {module for module, path in _modules() if any(n.split(".")[0] == "pyspark" for n in _imports(path))}
    assert [] == sorted(module for module in found if not module.startswith("ivme.spark."))
