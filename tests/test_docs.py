"""Runs the examples of README.md and docs/, so that they stay true.

The ```python blocks of a page run in one namespace, in order. Where lines of a block end in `# prints X`, the block
must print exactly these. The lines of a ```text block that follows at once must be lines of what it prints, and those
of one behind "`print(name)` shows" lines of that value. In a ```console or ```bash block, each line `$ ivme ...` must
succeed, and the lines shown below it must be lines of what it prints; `...` stands for any lines. Nothing else in a
page is run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which the text starts."""

    language: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of a console block, and the output that the page shows below it."""

    arguments: tuple[str, ...]
    shown: tuple[str, ...]


def blocks_of(page: str, *languages: str) -> list[Block]:
    """The fenced blocks of a page in these languages, in order."""
    found = (Block(m.group(1), m.group(2), page.count("\n", 0, m.start(2)) + 1) for m in FENCED.finditer(page))
    return [block for block in found if block.language in languages]


def commands_of(block: str) -> list[Command]:
    """The `$ ivme` lines of a console block, each with the non-empty lines up to the next prompt."""
    commands = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, *shown = part.replace("\\\n", "").splitlines()
        if line.startswith("ivme "):
            wanted = (text.strip() for text in shown)
            commands.append(Command(tuple(shlex.split(line)[1:]), tuple(t for t in wanted if t and t != "...")))
    return commands


def python_blocks(path: Path) -> list[Block]:
    return blocks_of(path.read_text("utf-8"), "python")


def run_python(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    """What the block prints; errors are reported at their line of the page."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def run_ivme(arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The installed command, as a user runs it, in a wide terminal without colours."""
    installed = Path(sys.executable).with_name("ivme")
    command = [str(installed)] if installed.exists() else [sys.executable, "-m", "ivme.cli"]
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=120
    )


SPARK_PAGES = [
    path for path in PAGES if any("pyspark" in b.text or "ivme.spark" in b.text for b in python_blocks(path))
]
"""Pages whose examples need Spark run on the tests' own session, in tests/spark/test_pages.py."""

PYTHON_PAGES = [path for path in PAGES if python_blocks(path) and path not in SPARK_PAGES]
COMMANDS = [
    pytest.param(command, id=f"{path.relative_to(ROOT)}: ivme {shlex.join(command.arguments)}")
    for path in PAGES
    for block in blocks_of(path.read_text("utf-8"), "console", "bash")
    for command in commands_of(block.text)
]


@pytest.mark.parametrize("path", PYTHON_PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_python_examples_of_a_page_run_and_print_what_they_claim(path: Path) -> None:
    check_page(path)


def check_page(path: Path) -> None:
    """Runs the python blocks of a page, and compares what they print with what they claim."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for block in python_blocks(path):
        printed = run_python(block, path, namespace)
        claimed = re.findall(r"# prints (.*)$", block.text, flags=re.MULTILINE)
        if claimed:
            assert claimed == printed.splitlines(), f"{path.name}, line {block.line}"
        name, shown = shown_behind(path.read_text("utf-8"), block)
        lines = {line.strip() for line in (str(namespace[name]) if name else printed).splitlines()}
        assert [] == [line for line in shown if line not in lines], f"{path.name}, behind line {block.line}"


@pytest.mark.parametrize("block", python_blocks(ROOT / "docs" / "gallery.md"), ids=lambda block: f"line {block.line}")
def test_each_use_in_the_gallery_is_a_script_of_its_own(block: Block) -> None:
    printed = run_python(block, ROOT / "docs" / "gallery.md", {"__name__": "__page__"})
    assert re.findall(r"# prints (.*)$", block.text, flags=re.MULTILINE) == printed.splitlines() != []


SHOWN = re.compile(r"\s*(?:`print\((\w+)\)` shows\s*)?^```text\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def shown_behind(page: str, block: Block) -> tuple[str | None, list[str]]:
    """The lines of output that a page shows behind a block; the name of the value whose lines they are, if any."""
    end = page.index("```", page.index(block.text)) + len("```")
    found = SHOWN.match(page, end)
    if found is None:
        return None, []
    return found.group(1), [line.strip() for line in found.group(2).splitlines() if line.strip() not in ("", "...")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_a_page_succeeds_and_prints_what_is_shown(command: Command) -> None:
    result = run_ivme(command.arguments)
    assert result.returncode == 0, result.stderr
    printed = [line.strip() for line in result.stdout.splitlines()]
    missing = [line for line in command.shown if line not in printed]
    assert not missing, result.stdout


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md"])
def test_the_links_of_a_page_outside_docs_lead_somewhere(name: str) -> None:
    page = ROOT / name
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert not [target for target in targets if not (page.parent / target).exists()]


def test_the_readme_has_an_example_to_run() -> None:
    assert ROOT / "README.md" in PYTHON_PAGES


def test_only_prompts_for_ivme_are_commands_and_dots_stand_for_any_output() -> None:
    text = "$ make test\n12 passed\n$ ivme explain \\\n  'Q(A) = R(A)'\nclass  CQAP0\n...\n\n$ ivme demo\n"
    expected = [Command(("explain", "Q(A) = R(A)"), ("class  CQAP0",)), Command(("demo",), ())]
    assert expected == commands_of(text)


def test_output_is_what_a_text_block_behind_an_example_shows() -> None:
    printed = "```python\nprint(1)\n```\n\n```text\n1\n...\n```\n\n"
    page = printed + "```python\nx = 2\n```\n\n`print(x)` shows\n\n```text\n2\n```\n"
    first, second = blocks_of(page, "python")
    assert (None, ["1"]) == shown_behind(page, first)
    assert ("x", ["2"]) == shown_behind(page, second)
    assert (None, []) == shown_behind("```python\nprint(1)\n```\n\nText.\n\n```text\n1\n```\n", first)


def test_a_text_block_is_not_run() -> None:
    page = "```text\n1 / 0\n```\n\n```python\nx = 1\n```\n"
    assert [Block("python", "x = 1\n", 6)] == blocks_of(page, "python")
