"""Drawings: trees for the terminal, Mermaid text, and SVG that a browser takes."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import ivme
from ivme.plan.explain.draw import Box, mermaid, text_tree
from ivme.plan.explain.svg import svg

SPACE = "{http://www.w3.org/2000/svg}"
QUERIES = (
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, D), U(D, A), W(A, C)",
    "Q(. | A, B, C) = R(A, B), S(B, C), T(C, A)",
)


def test_a_long_label_wraps_under_itself_and_keeps_the_branches_together() -> None:
    tree = Box("V(" + ", ".join(["column"] * 4) + ")", "view", True, (Box("R(A)", "atom", False),))
    expected = ["● V(column, column,", "│   column, column)", "└─ ○ R(A)"]
    assert expected == text_tree(tree, 26)


def test_mermaid_names_each_node_once_and_escapes_labels() -> None:
    tree = Box('V("x" # <y>)', "view", True, (Box("R", "atom", True), Box("S", "atom", False)))
    lines = mermaid([tree]).split("\n")
    assert lines[0] == "flowchart TD"
    assert '    n0["V(#quot;x#quot; #35; #lt;y#gt;)"]' in lines
    assert [line for line in lines if "---" in line] == ["    n0 --- n1", "    n0 --- n2"]
    assert lines[-2:] == ["    class n0,n1 stored", "    class n2 passed"]


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_picture_is_xml_with_a_box_for_each_node(query: str) -> None:
    found = ivme.explain(query)
    root = ElementTree.fromstring(found.svg())
    labels = [text.text for text in root.iter(f"{SPACE}text") if text.get("text-anchor") == "middle"]
    assert [box.label for tree in found.picture() for box in tree.walk()] == labels
    assert query == root.findtext(f"{SPACE}title")


@pytest.mark.parametrize("query", QUERIES)
def test_boxes_lie_within_the_picture_and_apart_from_each_other(query: str) -> None:
    root = ElementTree.fromstring(ivme.explain(query).svg())
    rows: dict[float, list[tuple[float, float]]] = defaultdict(list)
    for box in root.iter(f"{SPACE}rect"):
        if box.get("rx") == "6":
            left, width = float(box.attrib["x"]), float(box.attrib["width"])
            rows[float(box.attrib["y"])].append((left, left + width))
    assert max(rows) < float(root.attrib["height"])
    for spans in rows.values():
        spans.sort()
        assert spans[0][0] >= 0
        assert spans[-1][1] <= float(root.attrib["width"])
        assert all(right < left for (_, right), (left, _) in pairwise(spans))


@pytest.mark.parametrize("strategy", ["skew", "recursive", "classical"])
@pytest.mark.parametrize("query", ["Q(.) = R(A, B), S(B, C), T(C, A)", "Q(.) = R(A, B), S(B, C), T(C, D), U(D, A)"])
def test_plans_without_trees_have_lines_and_fit_a_page(query: str, strategy: str) -> None:
    found = ivme.explain(query, strategy=strategy)
    root = ElementTree.fromstring(found.svg())
    assert float(root.attrib["width"]) <= 1000
    edges = [each for each in root.iter() if each.get("class") == "edge"]
    assert sum(1 for tree in found.picture() for _ in tree.walk()) == len(edges) + len(found.picture())
    assert found.program is not None
    drawn = {box.map for tree in found.picture() for box in tree.walk()}
    assert {declared.name for declared in found.program.maps} == drawn


def test_a_long_title_and_trees_that_do_not_fit_go_below_each_other() -> None:
    trees = [Box(f"V_{n}(" + "a, " * 30 + "b)", "view", True, (Box("R(a)", "atom", True),)) for n in range(3)]
    wide = Box("W", "view", True, tuple(trees))
    root = ElementTree.fromstring(svg([*trees, wide], "a title " * 60))
    assert float(root.attrib["width"]) <= 1000
    tops = [box.attrib["y"] for box in root.iter(f"{SPACE}rect") if box.get("rx") == "6"]
    assert len(set(tops)) == len(tops) == 13


def test_signs_of_labels_are_in_the_legend() -> None:
    picture = svg([Box("R[a→H](a)", "leaf", True), Box("∃S(b)", "indicator", True)], "t")
    assert "those whose a" not in picture
    for meaning in ("x→H: the rows", "∃R(x): whether"):
        assert meaning in picture
    assert "H_x" not in picture


@pytest.mark.parametrize(
    "query",
    [
        "SELECT e.src FROM edge e, edge f WHERE e.dst = f.src",
        "SELECT src, RANK() OVER (ORDER BY dst) AS place FROM edge",
        "SELECT COUNT(*) AS n FROM edge e, edge f, edge g WHERE e.dst = f.src AND f.dst = g.src AND g.dst = e.src",
    ],
)
def test_every_sign_of_a_plan_is_in_the_legend_of_its_picture(query: str) -> None:
    picture = ivme.explain(query, {"edge": {"src": "int", "dst": "int"}}).svg()
    labels = "".join(re.findall(r'text-anchor="middle">([^<]*)<', picture))
    legend = "".join(re.findall(r'class="small"[^>]*>([^<]*)<', picture))
    assert set(re.sub(r"[\w\s(),.\[\]]", "", labels)) <= set(legend)
    assert ("V_" in labels) <= ("V_x" in legend)


def test_a_picture_escapes_what_xml_cannot_hold() -> None:
    root = ElementTree.fromstring(svg([Box("V(<&\x01>)", "view", True)], "a < b & c\x00"))
    assert root.findtext(f"{SPACE}title") == "a < b & c\ufffd"


def test_a_view_that_is_passed_through_is_dashed() -> None:
    root = ElementTree.fromstring(svg([Box("V", "view", True, (Box("W", "view", False), Box("R", "atom", True)))], "t"))
    kinds = [box.get("class") for box in root.iter(f"{SPACE}rect") if box.get("rx") == "6"]
    assert kinds == ["stored", "passed", "leaf"]
