"""Sizes of a view's nodes, against the join of the atoms below each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from ivme.database import Database
from ivme.plan.ir.program import Program
from ivme.plan.order.view_tree import ViewNode
from ivme.serve.sizes import view_stats
from ivme.view import View
from tests.serve.running import serving

Tuple = dict[str, int]
Rows = dict[str, set[tuple[int, int]]]

TREES = {
    "path": "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D)",
    "star": "Q(A, B, C) = R(A, B), S(A, C)",
    "star_again": "P(X, Y, Z) = R(X, Y), S(X, Z)",
    "loop": "Q(A, B, C) = R(A, B), R(B, C)",
    "triangle": "Q(A, B, C) = R(A, B), S(B, C), T(C, A)",
    "given": "Q(B | A, C) = R(A, B), S(B, C)",
}


def join(program: Program, labels: tuple[str, ...], rows: Rows) -> Iterator[Tuple]:
    """The natural join of some atoms, the plain way."""
    if not labels:
        yield {}
        return
    source = program.source(labels[0])
    for rest in join(program, labels[1:], rows):
        for row in rows[source.atom.relation]:
            mine = dict(zip(source.schema, row, strict=True))
            if all(rest.get(variable, value) == value for variable, value in mine.items()):
                yield {**rest, **mine}


def size_of(program: Program, node: ViewNode, rows: Rows) -> int:
    labels = (*node.atoms, *(label for label, _ in node.indicators))
    return len({tuple(each[variable] for variable in node.schema) for each in join(program, labels, rows)})


@pytest.fixture(scope="module")
def filled() -> Iterator[tuple[Database, Rows]]:
    chosen = random.Random(7)
    rows = {name: {(chosen.randrange(9), chosen.randrange(9)) for _ in range(30)} for name in "RST"}
    with Database() as db:
        for name in "RST":
            db.create_table(name, {"x": "int", "y": "int"})
        for name, query in TREES.items():
            db.create_view(name, query, strategy="view-tree")
        for name, found in rows.items():
            db.insert(name, sorted(found))
        yield db, rows


def tree_sizes(view: View, rows: Rows) -> list[tuple[str, int, int | None]]:
    """For each node of the trees that is stored: its text, what the join has, and what the view says."""
    from ivme.plan.assemble.stored import stored_map

    found, said = view.explain(), view_stats(view)["maps"]
    assert found.program is not None
    nodes = [node for tree in found.view_trees for node in tree.walk()]
    stored = [(node, stored_map(found.program, node)) for node in nodes]
    return [(str(node), size_of(found.program, node, rows), said[name]) for node, name in stored if name is not None]


@pytest.mark.parametrize("name", TREES)
def test_a_stored_node_has_as_many_entries_as_its_join_has_tuples(filled: tuple[Database, Rows], name: str) -> None:
    db, rows = filled
    sizes = tree_sizes(db.definitions.map_view(name), rows)
    assert sizes
    assert [(text, wanted, wanted) for text, wanted, _ in sizes] == sizes


def test_a_view_that_is_followed_says_the_same_or_that_it_keeps_something_else(filled: tuple[Database, Rows]) -> None:
    db, rows = filled
    for name in TREES:
        with db.definitions.map_view(name).changes():
            assert all(said in (wanted, None) for _, wanted, said in tree_sizes(db.definitions.map_view(name), rows))


def test_sizes_stay_right_while_views_come_and_go_that_share_maps() -> None:
    rows: Rows = {"R": {(1, 2), (1, 3), (2, 4)}, "S": {(1, 5), (2, 6), (3, 7)}}
    with Database() as db:
        for name, found in rows.items():
            db.create_table(name, {"x": "int", "y": "int"})
            db.insert(name, sorted(found))
        for name in ("one", "two", "three"):
            db.create_view(name, TREES["star"], strategy="view-tree")
            for known in db.views:
                assert all(wanted == said for _, wanted, said in tree_sizes(db.definitions.map_view(known), rows))
        for gone in ("one", "three"):
            db.drop_view(gone)
            assert all(wanted == said for _, wanted, said in tree_sizes(db.definitions.map_view("two"), rows))
            db.create_view(gone, "Q(A, B) = R(A, B)")


@pytest.mark.parametrize(
    ("query", "tables"), [("Q(B, C) = R(A, B), S(A, C)", "RS"), ("Q(COUNT) = R(A, B), S(B, C), T(C, A)", "RST")]
)
def test_the_parts_of_a_table_add_up_to_it_and_name_their_sides(query: str, tables: str) -> None:
    with Database() as db:
        for name in tables:
            db.create_table(name, {"x": "int", "y": "int"})
        view = db.create_view("v", query, strategy="skew", epsilon=0.5)
        for name in tables:
            db.insert(name, [(0, i) for i in range(50)] + [(i, i + 1) for i in range(1, 40)])
        stats = view_stats(view)
        total: Counter[str] = Counter()
        for part in stats["parts"]:
            total[part["relation"]] += part["rows"]
        assert dict.fromkeys(tables, 89) == total
        assert any(side["heavy"] for part in stats["parts"] for side in part["sides"] if part["rows"] >= 40)
        assert view.stats()["partitions"] == stats["partitions"]
        assert stats["n"] == sum(total.values())


def test_parts_in_a_tree_have_their_own_sizes() -> None:
    """A leaf of light tuples was once said to be stored where the heavy ones are."""
    with Database() as db:
        for name in "RS":
            db.create_table(name, {"x": "int", "y": "int"})
        view = db.create_view("v", "Q(B, C) = R(A, B), S(A, C)", strategy="skew", epsilon=0.5)
        db.insert("R", [(0, i) for i in range(50)] + [(i, 0) for i in range(1, 31)])
        db.insert("S", [(0, i) for i in range(50)] + [(i, 0) for i in range(1, 21)])
        sizes = view_stats(view)["maps"]
        leaves = {
            node["name"]: sizes[node["map"]]
            for tree in view.explain().to_dict()["view_trees"]
            for node in walk(tree)
            if node["kind"] == "atom"
        }
        assert {"R[A→H]": 50, "S[A→H]": 50, "R[A→L]": 30, "S[A→L]": 20} == leaves


def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node["children"]:
        yield from walk(child)


def test_the_nodes_of_mark_trees_name_their_maps() -> None:
    with Database() as db:
        for name in "RS":
            db.create_table(name, {"x": "int", "y": "int"}, append_only=True)
        view = db.create_view("v", "Q(A, C) = R(A, B), S(B, C)", strategy="marks", semantics="set")
        db.insert("R", [(1, 2), (2, 2), (3, 9)])
        db.insert("S", [(2, 5)])
        sizes = view_stats(view)["maps"]
        nodes = [node for tree in view.explain().to_dict()["mark_trees"] for node in walk(tree)]
        assert all(node["map"] in sizes for node in nodes if node["stored"])
        assert {"∃R(A, B)": 3, "∃S(B, C)": 1}.items() <= {
            node["name"]: sizes[node["map"]] for node in nodes if node["stored"]
        }.items()


def test_a_closure_is_served_like_any_view() -> None:
    """Its figures have no maps, on which /stats failed once."""
    with Database() as db:
        db.create_table("E", {"a": "int", "b": "int"})
        db.create_view("reach", "Q(X, Y) = closure(E)")
        db.insert("E", [(1, 2), (2, 3)])
        with serving(db) as address, httpx.Client(base_url=address, timeout=30) as client:
            found = client.get("/views/reach/stats").json()
            assert ("closure", 3, {}, []) == (found["strategy"], found["pairs"], found["maps"], found["parts"])
            (view,) = client.get("/stats").json()["views"]
            assert {} == view["maps"]
            assert "closure/digraph" == client.get("/views/reach/explain").json()["query_class"]


def test_sizes_are_asked_for_over_http(steady: httpx.Client, steady_db: Database) -> None:
    found = steady.get("/views/all_flights/stats").json()
    assert [3] == list(found["maps"].values())
    assert found["maps"].keys() == {m["name"] for m in steady.get("/views/all_flights/explain").json()["maps"]}
    assert 404 == steady.get("/views/nobody/stats").status_code
    plain = steady.get("/stats", params={"_maps": "false"}).json()
    assert [{}] * len(steady_db.views) == [{"maps": 0} if "maps" in view else {} for view in plain["views"]]
    assert 422 == steady.get("/stats", params={"_maps": "perhaps"}).status_code
