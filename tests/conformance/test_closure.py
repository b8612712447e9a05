"""Closures as views like any other, on the compiled kernel and on the one in plain Python."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from ivme.database import Database
from ivme.engine.codes.dictionary import FIRST_CODE
from ivme.errors import DataError, PlanError, SchemaError, UnknownNameError, VerificationError
from tests.databases import BACKENDS, in_one_batch, make_database, rows_of
from tests.graphs import closure_of, stream

REACH = (
    "WITH RECURSIVE r(x, y) AS (SELECT src, dst FROM edge UNION SELECT r.x, e.dst FROM r JOIN edge e ON r.y = e.src) "
)


@pytest.fixture(params=BACKENDS)
def db(request: pytest.FixtureRequest) -> Database:
    made = make_database(request.param)
    made.create_table("edge", {"src": "string", "dst": "string"})
    return made


def edges(text: str) -> list[tuple[str, ...]]:
    return [tuple(word) for word in text.split()]


def test_every_access_pattern_of_a_closure(db: Database) -> None:
    db.insert("edge", edges("ab bc ca cd"))
    both = db.create_view("both", "Q(X, Y) = closure(edge)")
    ahead = db.create_view("ahead", REACH + "SELECT y FROM r WHERE x = :src")
    back = db.create_view("back", REACH + "SELECT x FROM r WHERE y = :dst")
    asked = db.create_view("asked", "Q(. | X, Y) = closure(edge)(X, Y)")
    assert sorted((a, b) for a in "abc" for b in "abcd") == rows_of(both)
    assert [("a",), ("b",), ("c",), ("d",)] == rows_of(ahead, src="a")
    assert [("a",), ("b",), ("c",)] == rows_of(back, dst="d")
    assert [[()], [], []] == [list(asked(X=a, Y=b)) for a, b in edges("ad da zz")]
    assert [] == [*ahead(src="d"), *ahead(src="nowhere"), *ahead(src=None)]
    assert (12, 4, 1) == (both.count(), ahead.count(src="b"), asked.count(X="a", Y="a"))
    assert (True, False, 1) == (("a", "d") in both, ("d", "a") in both, ahead.multiplicity(("d",), src="a"))
    assert [("d", "a"), ("d", "b"), ("d", "c")] == sorted(
        tuple(row.values()) for row in back.request_many(dst=["d", None, "nowhere"]).to_pylist()
    )
    assert 2 == asked.request_many(X=["a", "d", "c"], Y=["a", "d", "d"]).num_rows
    assert 12 == both.to_arrow().num_rows
    for view in (both, ahead, back, asked):
        view.verify()


def test_a_closure_of_which_one_end_is_shown(db: Database) -> None:
    db.insert("edge", edges("ab bc"))
    each = db.create_view("each", REACH + "SELECT x FROM r")
    once = db.create_view("once", REACH + "SELECT DISTINCT y FROM r")
    twice = db.create_view("twice", REACH + "SELECT y, x, x AS again FROM r")
    with each.changes() as feed:
        db.insert("edge", edges("cd"))
        assert [{("a",): 1, ("b",): 1, ("c",): 1}] == list(feed)
    assert ([("a",)] * 3 + [("b",)] * 2 + [("c",)], [("b",), ("c",), ("d",)]) == (rows_of(each), rows_of(once))
    assert ("b", "a", "a") == rows_of(twice)[0]


def test_only_a_first_insert_and_a_last_delete_of_an_edge_matter(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    db.insert("edge", edges("ab ab"))
    db.delete("edge", edges("ab"))
    assert [("a", "b")] == rows_of(view)
    in_one_batch(db, ("delete", "edge", edges("ab")), ("insert", "edge", edges("ab bc")))
    assert edges("ab ac bc") == rows_of(view)
    with pytest.raises(DataError, match="not there"):
        db.delete("edge", edges("ab ab"))
    assert edges("ab ac bc") == rows_of(view)


def test_changes_are_the_pairs_that_came_and_went(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    asked = db.create_view("ahead", REACH + "SELECT y FROM r WHERE x = :src")
    with view.changes() as feed, asked.changes() as other:
        db.insert("edge", edges("ab bc"))
        in_one_batch(db, ("delete", "edge", edges("ab")), ("insert", "edge", edges("ac")))
        db.insert("edge", edges("ac"))
        expected = [dict.fromkeys(edges("ab ac bc"), 1), {("a", "b"): -1}]
        assert (expected, expected) == (list(feed), list(other))


@pytest.mark.parametrize("graph", ["digraph", "undirected"])
def test_views_on_a_closure_are_fresh_within_the_batch(db: Database, graph: str) -> None:
    db.create_table("city", {"id": "string", "name": "string"})
    db.insert("city", [(each, each.upper()) for each in "abcd"])
    reach = db.create_view("reach", "Q(X, Y) = closure(edge)", graph=graph)
    fan = db.create_view("fan", "SELECT X, COUNT(*) AS n FROM reach GROUP BY X")
    named = db.create_view(
        "named",
        REACH + "SELECT b.name FROM city a JOIN r ON a.id = r.x JOIN city b ON r.y = b.id WHERE a.name = :name",
        graph=graph,
    )
    loops = db.create_view("loops", "Q(X) = closure(edge)(X, X)", graph=graph)
    fixed = db.create_view("fixed", "Q(Y) = closure(edge)('a', Y)", graph=graph)
    later = db.create_view("later", REACH + "SELECT x, y FROM r WHERE x > 'b'", graph=graph)
    held: Counter[tuple[str, str]] = Counter()
    for batch in stream(graph, 11, 4, 15):
        named_batch = {("abcd"[a], "abcd"[b]): weight for (a, b), weight in batch.items()}
        db.apply("edge", list(named_batch), list(named_batch.values()))
        held.update(named_batch)
        pairs = closure_of([edge for edge, count in held.items() if count], graph)
        assert sorted(Counter(a for a, _ in pairs).items()) == rows_of(fan)
        assert sorted((b.upper(),) for a, b in pairs if a == "a") == rows_of(named, name="A")
        assert sorted((a,) for a, b in pairs if a == b) == rows_of(loops)
        assert sorted((b,) for a, b in pairs if a == "a") == rows_of(fixed)
        assert sorted(pair for pair in pairs if pair[0] > "b") == rows_of(later)
    for view in (reach, fan, named, loops, fixed, later):
        view.verify()


def test_a_batch_that_fails_elsewhere_leaves_the_closure_as_it_was(db: Database) -> None:
    db.create_table("other", {"k": "int"}, primary_key="k")
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    fan = db.create_view("fan", "SELECT X, COUNT(*) AS n FROM reach GROUP BY X")
    db.insert("edge", edges("ab bc"))
    with view.changes() as feed:
        with pytest.raises(DataError, match="primary key"):
            in_one_batch(
                db,
                ("insert", "edge", edges("ca cd")),
                ("delete", "edge", edges("ab")),
                ("insert", "other", [(1,), (1,)]),
            )
        assert (edges("ab ac bc"), [("a", 2), ("b", 1)], []) == (rows_of(view), rows_of(fan), list(feed))
    view.verify()


def test_a_cycle_is_refused_and_named_where_none_may_be(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)", graph="acyclic")
    back = db.create_view("back", "Q(X | Y) = closure(edge)(X, Y)", graph="acyclic")
    db.insert("edge", edges("ab bc"))
    with pytest.raises(DataError, match="cycle 'a' -> 'b' -> 'c' -> 'a'"):
        db.insert("edge", edges("ca"))
    with pytest.raises(DataError, match="cycle"):
        db.insert("edge", edges("dd"))
    in_one_batch(db, ("insert", "edge", edges("ca")), ("delete", "edge", edges("ab")))
    assert [("b",), ("c",)] == rows_of(back, Y="a")
    assert sorted(edges("bc ba ca")) == rows_of(view)
    with pytest.raises(DataError, match="graph='acyclic'"):
        db.insert("edge", edges("ab"))
    db.drop_view("back")
    db.drop_view("reach")
    db.insert("edge", edges("ab"))
    with pytest.raises(DataError, match="cycle"):
        db.create_view("reach", "Q(X, Y) = closure(edge)", graph="acyclic")
    assert () == db.views


def test_paths_and_distances(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    back = db.create_view("back", "Q(X | Y) = closure(edge)(X, Y)")
    db.insert("edge", edges("ab bc cd ad dd"))
    assert (["a", "d"], 1) == (view.path("a", "d"), view.distance("a", "d"))  # type: ignore[attr-defined]
    db.delete("edge", edges("ad"))
    for each in (view, back):
        assert ["a", "b", "c", "d"] == each.path("a", "d")  # type: ignore[attr-defined]
        assert (3, 1, None) == (each.distance("a", "d"), each.distance("d", "d"), each.distance("d", "a"))  # type: ignore[attr-defined]
        assert None is each.path("a", "nowhere")  # type: ignore[attr-defined]


def test_null_joins_with_nothing_as_in_sql(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    ahead = db.create_view("ahead", "Q(Y | X) = closure(edge)(X, Y)")
    db.insert("edge", [("a", None), (None, "a"), ("b", "a")])
    expected = [("a", None), ("b", None), ("b", "a"), (None, None), (None, "a")]
    assert sorted(expected, key=repr) == rows_of(view)
    assert [(None,), ("a",)] == sorted(ahead(X="b"), key=repr)[::-1]
    assert (1, 0) == (view.multiplicity((None, None)), view.multiplicity(("a", "b")))
    for each in (view, ahead):
        each.verify()
    db.delete("edge", [(None, "a")])
    assert sorted([("a", None), ("b", None), ("b", "a")], key=repr) == rows_of(view)


def test_ends_of_any_type_and_of_two_types(db: Database) -> None:
    day = datetime.date(2024, 1, 1)
    db.create_table("days", {"d": "date", "e": "date"})
    db.create_table("mixed", {"i": "int", "f": "decimal(10, 1)", "note": "string"})
    days = db.create_view("dr", "Q(X, Y) = closure(days)")
    mixed = db.create_view(
        "mr",
        "WITH RECURSIVE r AS (SELECT i, f FROM mixed UNION SELECT r.i, m.f FROM r JOIN mixed m ON r.f = m.i) "
        "SELECT i, f FROM r",
    )
    db.insert("days", [(day, day)])
    db.insert("mixed", [(1, 2, "x"), (2, Decimal("2.5"), "y"), (2, 3, "z"), (3, 1, "z")])
    assert [(day, day)] == rows_of(days)
    nodes = tuple(map(Decimal, (1, 2, 3)))
    assert sorted((a, b) for a in nodes for b in (*nodes, Decimal("2.5"))) == rows_of(mixed)
    for each in (days, mixed):
        each.verify()


def test_a_closure_of_a_view(db: Database) -> None:
    db.create_table("flight", {"src": "string", "dst": "string", "open": "bool"})
    db.create_view("open_flight", "SELECT src, dst FROM flight WHERE open")
    view = db.create_view("reach", "Q(X, Y) = closure(open_flight)")
    db.insert("flight", [("a", "b", True), ("b", "c", False)])
    assert edges("ab") == rows_of(view)
    in_one_batch(db, ("delete", "flight", [("b", "c", False)]), ("insert", "flight", [("b", "c", True)]))
    assert edges("ab ac bc") == rows_of(view)
    with pytest.raises(PlanError, match="reach needs it"):
        db.drop_view("open_flight")


def test_a_closure_that_views_join_comes_once_and_goes_with_the_last(db: Database) -> None:
    one = db.create_view("one", "Q(X) = closure(edge)(X, X)")
    db.create_view("two", "Q(Y) = closure(edge)('a', Y)")
    assert ("one", "two") == db.views
    assert ["closure(edge)", "one", "two"] == list(db._runtime.catalog.views)
    with pytest.raises(PlanError, match="cannot drop table edge: one, two need it"):
        db.drop_table("edge")
    with pytest.raises(SchemaError, match="already a view named"):
        db.create_table("closure(edge)", {"x": "int"})
    db.drop_view("two")
    db.insert("edge", edges("aa"))
    assert [("a",)] == rows_of(one)
    db.drop_view("one")
    assert [] == list(db._runtime.catalog.views)
    db.drop_table("edge")


def test_reading_goes_on_with_the_closure_that_it_began_on(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    db.insert("edge", [(f"n{i}", f"n{i + 1}") for i in range(20)])
    rows = view.items()
    first = next(rows)
    db.insert("edge", edges("xy"))
    assert 20 * 21 // 2 == len({first, *rows})


def test_what_a_closure_cannot_do_is_refused(db: Database) -> None:
    for options in ({"strategy": "view-tree"}, {"semantics": "ring"}):
        with pytest.raises(PlanError, match="closure"):
            db.create_view("reach", "Q(X, Y) = closure(edge)", **options)
    with pytest.raises(PlanError, match="graph must be one of"):
        db.create_view("reach", "Q(X, Y) = closure(edge)", graph="tree")
    view = db.create_view("reach", "Q(Y | X) = closure(edge)(X, Y)")
    with pytest.raises(UnknownNameError, match="needs a value for X"):
        list(view())
    with pytest.raises(PlanError, match="has parameters"):
        db.create_view("more", "SELECT * FROM reach")


def test_explain_and_stats_say_what_keeps_a_closure(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)", graph="undirected")
    db.insert("edge", edges("ab bc de"))
    found = view.explain()
    assert ("closure/undirected", "closure") == (found.query_class, found.strategy)
    assert "O(log^2 N) amortised" == str(found.update)
    stats = view.stats()
    assert ("closure", 5, 3, 2, 13) == tuple(stats[n] for n in ("strategy", "nodes", "edges", "components", "pairs"))


def test_verify_finds_a_wrong_pair(db: Database) -> None:
    view = db.create_view("reach", "Q(X, Y) = closure(edge)")
    db.insert("edge", edges("ab"))
    engine = view.state.group.engine  # type: ignore[attr-defined]
    engine.change(np.array([FIRST_CODE + 5]), np.array([FIRST_CODE + 6]), np.array([1]))
    engine.commit()
    db.insert("edge", [("c", "d"), ("e", "f"), ("g", "h")])
    with pytest.raises(VerificationError, match="the pair"):
        view.verify()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_closure_filled_from_a_table_is_the_one_kept_from_the_start(backend: str) -> None:
    db = make_database(backend)
    db.create_table("edge", {"src": "int", "dst": "int"})
    kept = db.create_view("kept", "Q(X, Y) = closure(edge)")
    chance = random.Random(4)
    for _ in range(10):
        db.insert("edge", [(chance.randrange(30), chance.randrange(30)) for _ in range(4)])
    filled = db.create_view("filled", "Q(X, Y) = closure(edge)")
    assert rows_of(kept) == rows_of(filled)
