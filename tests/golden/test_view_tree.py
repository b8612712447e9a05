"""The view trees of the worked examples, over the orders that the search chooses.

A file holds a query with its source, a line `---`, the orders and their trees. Run with IVME_UPDATE_GOLDEN=1 to write
them anew, and read the difference before you commit it. That the trees are the source's own is asserted in
unit/plan/order/test_view_tree.py, over the orders of the source's figures.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from ivme.plan.assemble.plan import Plan
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule

FOLDER = Path(__file__).parent / "view_tree"
FILES = sorted(FOLDER.glob("*.txt"))
SEPARATOR = "---\n"
EACH = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def read_golden(path: Path) -> tuple[str, Plan, str]:
    head, _, expected = path.read_text("utf-8").partition(SEPARATOR)
    case = yaml.safe_load(head)
    return head, plan_with(case.get("strategy", "view-tree"), parse_rule(case["query"])), expected


def drawn(plan: Plan) -> str:
    """The orders, then the trees, children indented below their parents."""

    def lines(node: ViewNode, depth: int) -> list[str]:
        return ["  " * depth + str(node), *(line for child in node.children for line in lines(child, depth + 1))]

    trees = [line for tree in plan.trees for line in lines(tree, 0)]
    return "\n".join(["order", *map(str, plan.orders), "", "view trees", *trees, ""])


@EACH
def test_the_view_trees_of_a_query_are_what_its_file_shows(path: Path) -> None:
    head, plan, expected = read_golden(path)
    if os.environ.get("IVME_UPDATE_GOLDEN"):
        path.write_text(f"{head}{SEPARATOR}{drawn(plan)}", "utf-8")
    else:
        assert expected == drawn(plan)


@EACH
def test_a_view_has_the_variables_that_its_children_join_on_and_no_others(path: Path) -> None:
    """Definition 2.23: the join of its children, or one child with variables summed away."""
    _, plan, _ = read_golden(path)
    for tree in plan.trees:
        for node in tree.walk():
            below = {variable for child in node.children for variable in child.schema}
            assert not node.children or set(node.schema) <= below
            if len(node.children) > 1:
                assert set(node.schema) == below


def test_there_are_golden_view_trees() -> None:
    assert len(FILES) >= 8
