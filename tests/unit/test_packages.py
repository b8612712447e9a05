"""The flow of the compiler is the folder tree: imports point down it, and never back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
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


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a module imports when it is loaded or run, but not what only its annotations name; the private attributes
    that it takes of something other than itself; and the names that it defines: functions and methods, variables, and
    attributes of `self`."""

    imports: tuple[str, ...]
    private: tuple[str, ...]
    own: frozenset[str]


@cache
def _facts(path: Path) -> _Facts:
    """Found in one walk over the tree of a module, and once for all tests of this process."""
    imports: list[str] = []
    private: list[str] = []
    own: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    for node in waiting:
        inner = ast.iter_child_nodes(node)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            inner = iter(node.orelse)
        waiting.extend(inner)
        match node:
            case ast.ImportFrom(module=str(module)):
                imports += (_imported(module, name.name) for name in node.names)
            case ast.Import():
                imports += (name.name for name in node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                own.add(node.name)
            case ast.Name(ctx=ast.Store()):
                own.add(node.id)
            case ast.Attribute(ctx=ast.Store()):
                own.add(node.attr)
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            of_itself = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            private += () if of_itself else (node.attr,)
    return _Facts(tuple(imports), tuple(private), frozenset(own))


def _imported(module: str, name: str) -> str:
    inner = f"{module}.{name}"
    found = _HOME.joinpath(*inner.split(".")[1:])
    return inner if found.is_dir() or found.with_suffix(".py").exists() else module


@pytest.mark.parametrize(("module", "path"), [each for each in _modules() if each[0] not in _LATER])
def test_imports_point_down(module: str, path: Path) -> None:
    layer = _LEVELS[_package(module)]
    up = [
        name
        for name in _facts(path).imports
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
        module: {name for name in _facts(path).imports if name.startswith(planner)}
        for module, path in _modules()
        if module.startswith("ivme.engine.")
    }
    assert _DATA_OF_PLANS == {module: names for module, names in found.items() if names}


def test_no_module_is_longer_than_400_lines() -> None:
    lengths = {module: len(path.read_text().splitlines()) for module, path in _modules()}
    assert {} == {module: length for module, length in lengths.items() if length > 400}


@pytest.mark.slow
def test_only_the_spark_package_imports_pyspark() -> None:
    found = {module for module, path in _modules() if any(n.split(".")[0] == "pyspark" for n in _facts(path).imports)}
    assert [] == sorted(module for module in found if not module.startswith("ivme.spark."))


_FOREIGN = {"_gateway", "_jsc", "_jsparkSession", "_jvm", "_exit"}
"""Private names of pyspark, as there is no other way to its virtual machine, and os._exit."""


def test_no_package_reaches_into_private_names_of_another() -> None:
    packages: dict[str, dict[str, _Facts]] = {}
    for module, path in _modules():
        package = "" if module in _LATER else _package(module)
        packages.setdefault(package, {})[module] = _facts(path)
    for modules in packages.values():
        allowed = _FOREIGN.union(*(facts.own for facts in modules.values()))
        for module, facts in modules.items():
            taken = [name for name in facts.private if name not in allowed]
            assert not taken, f"{module} uses {', '.join(taken)}, which its package does not define"
