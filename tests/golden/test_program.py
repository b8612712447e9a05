"""The programs that strategies compile to, printed.

A file holds a query with its source and strategy, a line `---`, and the program. Run with IVME_UPDATE_GOLDEN=1 to
write the programs anew, and read the difference before you commit it. What must be true of every file, whatever it
prints, is asserted below.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
import yaml

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.ir.program import Program
from ivme.plan.strategy.strategies import plan_with
from ivme.query.model import Query
from ivme.query.rule import parse_rule
from tests import oracle
from tests.programs import rows

FOLDER = Path(__file__).parent / "program"
FILES = sorted(FOLDER.glob("*.txt"))
SEPARATOR = "---\n"
EACH = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read_golden(path: Path) -> tuple[str, Query, Program, str]:
    """The head as written, the query, its program, and the text that the file expects."""
    head, _, expected = path.read_text("utf-8").partition(SEPARATOR)
    case = yaml.safe_load(head)
    query = parse_rule(case["query"])
    return head, query, plan_with(case["strategy"], query).program, expected


@EACH
def test_the_program_of_a_query_is_what_its_file_shows(path: Path) -> None:
    head, _, program, expected = read_golden(path)
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        path.write_text(f"{head}{SEPARATOR}{program}\n", "utf-8")
    else:
        assert expected == f"{program}\n"


@EACH
def test_the_program_of_a_golden_file_answers_like_the_oracle(path: Path) -> None:
    """All rows over two values, each twice: every join finds partners."""
    _, query, program, _ = read_golden(path)
    kernel = Interpreter(program)
    database = {table.name: Counter[tuple[int, ...]]() for table in query.tables}
    for table in query.tables:
        for number in range(2 ** len(table.columns)):
            row = tuple(number >> i & 1 for i in range(len(table.columns)))
            kernel.apply(table.name, {row: 2})
            database[table.name][row] += 2
    inputs = dict.fromkeys(query.parameters, 1)
    expected = oracle.rows(query, database, inputs)
    assert expected == dict(rows(query, kernel, inputs))
    assert expected


def test_there_is_a_golden_program_for_each_strategy() -> None:
    found = {path.stem for path in FILES}
    strategies = ("view-tree", "factorised", "classical", "recursive", "recompute")
    assert {f"000-triangle-{strategy}" for strategy in strategies} <= found


def test_the_reference_shows_the_golden_program_of_example_4_6() -> None:
    page = (Path(__file__).parents[2] / "docs" / "program.md").read_text("utf-8")
    _, _, program, _ = read_golden(FOLDER / "003-4.6.txt")
    assert f"```text\n{program}\n```" in page
