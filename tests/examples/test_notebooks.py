"""The notebooks of examples/, run cell by cell in one namespace; what they show is what is kept in the file.

No kernel of Jupyter is needed: a notebook is JSON, and its cells here are plain Python. A cell shows what it prints,
and the value of its last line unless that ends in a semicolon, as Jupyter has it. After a change on purpose,
`python -m tests.examples.test_notebooks` writes the outputs anew.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.ipynb"))


def outputs_of(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What a cell shows, as a notebook keeps it."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    shown: list[dict[str, Any]] = []
    if printed.getvalue():
        shown.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": _lines(repr(value))}
        shown.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return shown


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run(notebook: dict[str, Any]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The cells of code, each with what it shows now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [(cell, outputs_of("".join(cell["source"]), names, at)) for at, cell in enumerate(cells, start=1)]


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.name))
def test_a_notebook_shows_what_is_kept_in_it(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["nbformat"] == 4
    ran = run(notebook)
    for number, (cell, shown) in enumerate(ran, start=1):
        assert cell["execution_count"] == number
        assert cell["outputs"] == shown, f"{path.name}, cell {number}"
    assert any(cell["outputs"] for cell, _ in ran)
    assert path.stat().st_size < 20_000, "outputs are to stay small"


def test_a_semicolon_hides_a_value_and_a_value_is_shown_after_what_is_printed() -> None:
    names: dict[str, Any] = {}
    assert outputs_of("x = 1\nx + 1;", names, 1) == []
    printed, value = outputs_of("print(x)\nx + 1", names, 2)
    assert (printed["text"], value["data"]) == (["1\n"], {"text/plain": ["2"]})


if __name__ == "__main__":
    for each in NOTEBOOKS:
        read = json.loads(each.read_text("utf-8"))
        for place, (code, now) in enumerate(run(read), start=1):
            code["outputs"], code["execution_count"] = now, place
        each.write_text(json.dumps(read, indent=1, ensure_ascii=False) + "\n", "utf-8")
        sys.stdout.write(f"{each.name} is written\n")
