"""Databases with views that marks maintain: promises of tables, sets, reasons, changes; on every backend."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.database import Database
from ivme.errors import DataError
from ivme.query.parse import parse
from tests import oracle
from tests.databases import BACKENDS, make_database, rows_of
from tests.example_counts import examples
from tests.random_queries import contents, rule_texts, updates

PATH = "SELECT a, r.b, s.c, d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c"


@pytest.fixture(params=BACKENDS)
def db(request: pytest.FixtureRequest) -> Database:
    made = make_database(request.param)
    for table, columns in {"r": "ab", "s": "bc", "t": "cd"}.items():
        made.create_table(table, dict.fromkeys(columns, "int"), append_only=True)
    return made


def test_a_join_of_append_only_tables_is_kept_by_marks(db: Database) -> None:
    view = db.create_view("v", PATH)
    assert view.explain().strategy == "marks"
    assert str(view.explain().update) == "O(1) amortised"
    db.insert("r", [(1, 2), (1, 2), (3, 4)])
    db.insert("t", [(5, 6)])
    assert list(view) == []
    db.insert("s", [(2, 5)])
    assert list(view) == [(1, 2, 5, 6)] * 2
    assert view.multiplicity((1, 2, 5, 6)) == 2
    assert view.multiplicity((3, 4, 5, 6)) == 0
    assert (3, 4, 5, 6) not in view
    view.verify()


def test_a_delete_from_an_append_only_table_is_refused_by_name(db: Database) -> None:
    view = db.create_view("v", PATH)
    db.insert("r", [(1, 2)])
    for change in (
        partial(db.delete, "r", [(1, 2)]),
        partial(db.delete, "R", [(1, 2)], strict=False),
        partial(db.apply, "r", [(1, 2)], [-1]),
    ):
        with pytest.raises(DataError, match="table r is append-only"):
            change()
    assert view.count() == 0
    db.insert("s", [(2, 3)])
    db.insert("t", [(3, 4)])
    assert view.count() == 1


def test_a_static_table_is_loaded_once(db: Database) -> None:
    db.create_table("fixed", {"a": "int", "z": "int"}, static=True)
    view = db.create_view("v", "SELECT DISTINCT z FROM fixed JOIN r ON fixed.a = r.a")
    db.insert("fixed", [(1, 10), (1, 11), (2, 20)])
    for change in (partial(db.insert, "fixed", [(3, 30)]), partial(db.delete, "fixed", [(1, 10)])):
        with pytest.raises(DataError, match="table fixed is static"):
            change()
    db.insert("r", [(1, 0)])
    assert rows_of(view) == [(10,), (11,)]


def test_a_hard_query_is_in_cqap0_given_its_static_tables(db: Database) -> None:
    """R(A), S(A, B), T(B): whichever side is static, an order with the other side on top updates in O(1)."""
    for name, static in (("left", True), ("right", False)):
        db.create_table(name, {"x": "int"}, static=static)
    db.create_table("pair", {"x": "int", "y": "int"})
    for first, second in (("left", "right"), ("right", "left")):
        text = f"SELECT COUNT(*) FROM {first} f JOIN pair p ON f.x = p.x JOIN {second} g ON p.y = g.x"
        explained = db.create_view(f"v_{first}", text).explain()
        assert str(explained.update) == "O(1)"
        assert explained.dynamic_width == 0
        assert any("with left static, hence a constant, the query is in CQAP0" in note for note in explained.notes)


@pytest.mark.parametrize("strategy", ["marks", "view-tree", "classical"])
def test_as_a_set_each_row_comes_once_whatever_the_strategy(db: Database, strategy: str) -> None:
    view = db.create_view("v", "SELECT r.a FROM r JOIN s ON r.b = s.b", semantics="set", strategy=strategy)
    with view.changes() as feed:
        db.insert("r", [(1, 2), (1, 3), (1, 2)])
        db.insert("s", [(2, 5), (3, 5), (2, 6)])
        assert list(view.items()) == [((1,), 1)]
        assert view.multiplicity((1,)) == 1
        assert list(feed) == [{(1,): 1}]
    view.verify()


def test_views_on_views_of_marks_follow_them(db: Database) -> None:
    first = db.create_view("first", "SELECT DISTINCT r.a, s.c FROM r JOIN s ON r.b = s.b", strategy="marks")
    second = db.create_view("second", "SELECT c, COUNT(*) AS n FROM first GROUP BY c")
    db.insert("r", [(1, 2), (4, 2), (1, 3)])
    db.insert("s", [(2, 5), (3, 5)])
    assert rows_of(first) == [(1, 5), (4, 5)]
    assert rows_of(second) == [(5, 2)]


def test_reasons_name_the_tuples_and_what_has_no_partner(db: Database) -> None:
    view = db.create_view("v", PATH)
    db.insert("r", [(1, 2)])
    db.insert("s", [(2, 3)])
    assert str(view.why_not((1, 2, 3, 4))) == "(1, 2, 3, 4) is not in v:\n  t has nothing at c = 3, d = 4"
    db.insert("t", [(3, 4)])
    assert str(view.why((1, 2, 3, 4))) == "\n".join(
        ["(1, 2, 3, 4) is in v:", "  s has (2, 3)", "  ├─ r has (1, 2)", "  └─ t has (3, 4)"]
    )


def test_reasons_follow_bound_variables_down_the_join_tree(db: Database) -> None:
    view = db.create_view("v", "SELECT DISTINCT a FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c")
    db.insert("r", [(1, 2), (1, 3), (1, 4), (1, 5), (1, 6)])
    db.insert("s", [(2, 7)])
    assert str(view.why_not((1,))) == "\n".join(
        [
            "(1) is not in v:",
            "  r has (1, 2) at a = 1, but",
            "  └─ s has (2, 7) at b = 2, but",
            "     └─ t has nothing at c = 7",
            "  r has (1, 3) at a = 1, but",
            "  └─ s has nothing at b = 3",
            "  r has (1, 4) and 2 more at a = 1, but",
            "  └─ s has nothing at b = 4",
        ]
    )
    assert str(view.why_not((9,))) == "(9) is not in v:\n  r has nothing at a = 9"


def test_reasons_are_for_joins_and_for_the_right_question(db: Database) -> None:
    view = db.create_view("v", PATH)
    with pytest.raises(DataError, match=r"\(1, 2, 3, 4\) is not in view v; v.why_not\(row\) says why"):
        view.why((1, 2, 3, 4))
    with pytest.raises(DataError, match="has 4 columns"):
        view.why_not((1, 2))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_whatever_is_chosen_for_append_only_tables_answers_like_the_oracle(data: Any) -> None:
    text = data.draw(rule_texts(max_atoms=4, max_variables=5))
    assume("()" not in text)
    inferred = parse(text, ())
    databases = [make_database(backend) for backend in BACKENDS]
    semantics = data.draw(st.sampled_from(["bag", "set"]))
    for made in databases:
        for table in inferred.tables:
            made.create_table(table.name, dict.fromkeys(table.column_names, "int"), append_only=True)
        made.create_view("v", text, semantics=semantics)
    steps = data.draw(updates(inferred, domain=3, max_size=20, deletes=False))
    for relation, row, weight in steps:
        for made in databases:
            made.apply(relation, [row], [weight])
    database: dict[str, Counter[Any]] = contents(steps)
    values = dict.fromkeys(inferred.parameters, 1)
    expected = oracle.rows(inferred, database, values)
    for made in databases:
        found = Counter(dict(made.view("v").items(**values)))
        assert Counter(expected if semantics == "bag" else dict.fromkeys(expected, 1)) == found
        made.view("v").verify()


def test_a_view_that_only_grows_is_append_only_to_the_views_on_it(db: Database) -> None:
    db.create_view("joined", "SELECT r.a, r.b, s.c FROM r JOIN s ON r.b = s.b")
    db.create_view("counted", "SELECT a, COUNT(*) AS c FROM r GROUP BY a")
    hard = "SELECT t.c, t.d, s.b, r.a, x.c AS e FROM t JOIN s ON t.c = s.c JOIN r ON s.b = r.b JOIN {} x ON r.a = x.a"
    assert db.create_view("v", hard.format("joined")).explain().strategy == "marks"
    assert db.create_view("w", hard.format("counted")).explain().strategy == "view-tree"
