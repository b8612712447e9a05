"""The flow of the compiler is the folder tree: imports point down it, and never back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import ivme

_HOME = Path(ivme.__file__).parent

_LAYERS = (
    ("errors", "extras", "_kernel", "budget", "shown_table"),
    ("algebra", "query", "structure", "schemas", "site", "tables", "rings"),
    ("plan.ir",),
    ("plan.order",),
    ("plan.assemble",),
    ("plan.strategy",),
    ("plan.explain",),
    ("plan", "planning", "compile", "compile_script", "compiled_blocks"),
    ("engine.codes",),
    ("engine.expression",),
    ("engine.ingest",),
    ("engine",),
    ("engine.reference",),
    ("engine.runtime",),
    ("engine.read", "changes"),
    ("closure", "view", "views"),
    ("database", "definitions", "statements", "store"),
    ("client", "pipeline", "serve", "shards"),
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


_DATA_OF_PLANS = {
    "ivme.engine.read.why": {"ivme.plan.order.mark_tree", "ivme.plan.order.templates"},
}
"""What the engine reads of the planner: `why` walks the mark trees that a plan carries, and chooses nothing."""


def test_the_engine_never_plans() -> None:
    """It executes what `compile` returns. It may assemble again what is installed, when a view goes or is followed."""
    planner = ("ivme.plan.strategy", "ivme.plan.order", "ivme.structure", "ivme.compile", "ivme.planning")
    found = {
        module: {name for name in _imports(path) if name.startswith(planner)}
        for module, path in _modules()
        if module.startswith("ivme.engine.")
    }
    assert _DATA_OF_PLANS == {module: names for module, names in found.items() if names}


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {module: len(path.read_text().splitlines()) for module, path in _modules()}
    assert {} == {module: length for module, length in lengths.items() if length > 400}


@pytest.mark.slow
def test_only_the_spark_package_imports_pyspark() -> None:
    found = {module for module, path in _modules() if any(n.split(".")[0] == "pyspark" for n in _imports(path))}
    assert [] == sorted(module for module in found if not module.startswith("ivme.spark."))


_FOREIGN = {"_gateway", "_jsc", "_jsparkSession", "_jvm", "_exit"}
"""Private names of pyspark, as there is no other way to its virtual machine, and os._exit."""


def _private(tree: ast.AST) -> Iterator[str]:
    """The private attributes that a module takes of something other than itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            yield from () if of_itself else (node.attr,)


def _own(trees: Iterable[ast.AST]) -> set[str]:
    """The private names that modules define: functions and methods, variables, and attributes of `self`."""
    found: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def test_no_package_reaches_into_private_names_of_another() -> None:
    packages: dict[str, dict[str, ast.AST]] = {}
    for module, path in _modules():
        package = "" if module in _LATER else _package(module)
        packages.setdefault(package, {})[module] = ast.parse(path.read_text())
    for trees in packages.values():
        allowed = _own(trees.values()) | _FOREIGN
        for module, tree in trees.items():
            taken = [name for name in _private(tree) if name not in allowed]
            assert not taken, f"{module} uses {', '.join(taken)}, which its package does not define"
