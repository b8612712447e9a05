"""Pages that must agree with the code and fit their width: view trees, guarantees, functions, words, lines of code.

IVME_UPDATE_GOLDEN=1 writes the pictures of docs/pictures/ anew.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import ivme
from ivme.query import spellings
from ivme.query.functions import listed

ROOT = Path(__file__).parent.parent
PICTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "view-tree": ("Q(A, B, C) = R(A, B), S(A, C)", {}),
    "access": ("Q(| A, B, C) = R(A, B), S(B, C), T(C, A)", {}),
    "heavy-and-light": ("Q(COUNT) = R(A, B), S(B, C), T(C, A)", {}),
    "marks": ("Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)", {"append_only": ["R", "S", "T"]}),
}
GUARANTEE = re.compile(r"^\| .* \| `([\w.]+)` \| `([\w/]+\.py)::(\w+)` \|$", re.MULTILINE)
ROWS = GUARANTEE.findall((ROOT / "docs" / "guarantees.md").read_text("utf-8"))


@pytest.mark.parametrize("name", PICTURES)
def test_a_drawn_view_tree_is_what_ivme_draws_today(name: str) -> None:
    path = ROOT / "docs" / "pictures" / f"{name}.svg"
    query, options = PICTURES[name]
    drawn = ivme.explain(query, **options).svg()
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        path.write_text(drawn, "utf-8")
    assert drawn == path.read_text("utf-8"), f"run IVME_UPDATE_GOLDEN=1 pytest {__file__}"


def code_lines(path: Path) -> list[tuple[int, str, str]]:
    """The lines of a page's fenced blocks: number, language, text."""
    found, language = [], None
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if fence := re.match(r"\s*```(\w*)", line):
            language = fence.group(1) if language is None else None
        elif language is not None:
            found.append((number, language, line))
    return found


SHOWN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXPLAINED = {"explain.md": ("text", "console"), "sql.md": ("text",)}
"""Pages with blocks that show what explain() writes, which is up to 98 columns wide."""


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_code_fits_the_width_of_a_page(path: Path) -> None:
    written = EXPLAINED.get(path.name, ())
    wide = [number for number, language, line in code_lines(path) if len(line) > (98 if language in written else 88)]
    assert not wide, f"{path.name}: wrap the lines {wide} at 88 columns"


NAMES = {"ivme", "to come", "why this cost", "make it a view"}
"""Words in italics that are names, or are written on the page of the server."""


@pytest.mark.parametrize("path", SHOWN, ids=lambda path: path.name)
def test_a_word_in_italics_is_in_the_glossary(path: Path) -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8").lower()
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL))
    words = {
        word.lower().strip(".,:;") for word in re.findall(r"(?<![*\w])\*(?![*\s])([^*\n]{2,60}?)(?<!\s)\*(?!\*)", text)
    }
    missing = [word for word in words - NAMES if word.rstrip("sed") not in glossary]
    assert not missing, f"{path.name}: define {missing} in docs/glossary.md"


def test_every_picture_is_shown_and_every_shown_picture_is_checked() -> None:
    shown = re.findall(r"\(pictures/([\w-]+)\.svg\)", (ROOT / "docs" / "how_it_works.md").read_text("utf-8"))
    assert sorted(PICTURES) == sorted(set(shown))
    assert sorted(PICTURES) == sorted(path.stem for path in (ROOT / "docs" / "pictures").glob("*.svg"))


@pytest.mark.parametrize(("module", "file", "test"), ROWS, ids=[test for _, _, test in ROWS])
def test_a_guarantee_names_a_module_and_a_test_that_exist(module: str, file: str, test: str) -> None:
    assert importlib.util.find_spec(module) is not None, module
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{file} has no {test}"


def test_every_row_of_the_guarantees_names_a_module_and_a_test() -> None:
    page = (ROOT / "docs" / "guarantees.md").read_text("utf-8")
    page = re.sub(r"<!-- families -->.*<!-- end of families -->", "", page, flags=re.DOTALL)  # tests/test_families.py
    page = re.sub(r"<!-- counted -->.*<!-- end of counted -->", "", page, flags=re.DOTALL)  # benchmarks/exponents.py
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| guarantee")]
    assert len(ROWS) == len(rows) > 20


def test_the_list_of_aggregates_is_the_table_of_spellings() -> None:
    path = ROOT / "docs" / "sql_functions.md"
    page = path.read_text("utf-8")
    (shown,) = re.findall(r"^\| aggregate \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        path.write_text(page.replace(shown, spellings.listed() + "\n"), "utf-8")
    assert spellings.listed() + "\n" == shown, f"run IVME_UPDATE_GOLDEN=1 pytest {__file__}"


def test_the_list_of_functions_is_the_table_of_functions() -> None:
    path = ROOT / "docs" / "sql_functions.md"
    page = path.read_text("utf-8")
    (shown,) = re.findall(r"^\| written \|.*?\n\n", page, re.MULTILINE | re.DOTALL)
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        path.write_text(page.replace(shown, listed() + "\n"), "utf-8")
    assert listed() + "\n" == shown, f"run IVME_UPDATE_GOLDEN=1 pytest {__file__}"


def _release_notes(version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "scripts/release-notes", version], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_the_notes_of_a_release_are_those_of_its_version() -> None:
    assert "### Added" in _release_notes("Unreleased").stdout
    refused = _release_notes("99.0")
    assert (1, "") == (refused.returncode, refused.stdout)
    assert "CHANGELOG.md has no section '## 99.0'" in refused.stderr


def test_workflows_run_scripts_and_pages_that_exist() -> None:
    """They cannot be run here, so at least their paths are checked."""
    lines = [
        step["run"]
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    named = [
        word for line in lines for word in line.split() if re.fullmatch(r"(\.ci|docs|scripts|tests)/[\w./-]+", word)
    ]
    assert len(named) > 5
    assert [] == [word for word in named if not (ROOT / word).exists()]


def test_windows_gets_the_switches_of_its_own_build_tool() -> None:
    """MSBuild refuses ninja's -j, and with it every build on Windows."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["scikit-build"]
    (windows,) = (each for each in settings["overrides"] if each["if"] == {"platform-system": "^win32"})
    assert all(not argument.startswith("-j") for argument in windows["build"]["tool-args"])
