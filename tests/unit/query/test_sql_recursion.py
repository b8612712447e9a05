from __future__ import annotations

from dataclasses import replace

import pytest

from ivme.errors import UnknownNameError, UnsupportedError
from ivme.query.expression import ColumnRef
from ivme.query.model import table
from ivme.query.sql import parse_sql

TABLES = [table("edge", ["src", "dst", "weight"]), table("person", ["id", "name"])]
LINEAR = "SELECT r.x, e.dst FROM r JOIN edge e ON r.y = e.src"


def recursive(step: str, outer: str = "SELECT x, y FROM r", base: str = "SELECT src, dst FROM edge") -> str:
    return f"WITH RECURSIVE r(x, y) AS ({base} UNION {step}) {outer}"


@pytest.mark.parametrize(
    "step",
    [
        LINEAR,
        "SELECT x, dst FROM r, edge WHERE src = y",
        "SELECT r.x AS p, e.dst AS q FROM edge AS e INNER JOIN r ON (e.src = r.y)",
        "SELECT r.x, e.dst FROM r CROSS JOIN edge e WHERE e.src = r.y",
        "SELECT e.src, r.y FROM edge e JOIN r ON e.dst = r.x",
        "SELECT DISTINCT e.src, r.y FROM r, edge e WHERE r.x = e.dst",
        "SELECT p.x, q.y FROM r p JOIN r q ON p.y = q.x",
        "SELECT q.x, p.y FROM r p, r q WHERE p.x = q.y",
    ],
)
def test_every_spelling_of_reachability_is_a_closure(step: str) -> None:
    query = parse_sql(recursive(step), TABLES)
    (atom,) = query.atoms
    assert str(query) == "Q(x, y | .) = closure(edge)(x, y)"
    assert atom.columns == (ColumnRef("src"), ColumnRef("dst"))


@pytest.mark.parametrize(
    "outer",
    [
        "SELECT DISTINCT x, y FROM r",
        "SELECT x, y FROM r GROUP BY x, y",
        "SELECT x, MAX(y), COUNT(DISTINCT y) FROM r GROUP BY x",
    ],
)
def test_union_all_is_the_closure_where_repeated_rows_do_not_show(outer: str) -> None:
    assert parse_sql(recursive(f"ALL {LINEAR}", outer), TABLES) == replace(
        parse_sql(recursive(LINEAR, outer), TABLES), text=recursive(f"ALL {LINEAR}", outer)
    )


@pytest.mark.parametrize(
    "outer",
    [
        "SELECT x, y FROM r",
        "SELECT x, COUNT(*) FROM r GROUP BY x",
        "SELECT DISTINCT x, MAX(y), COUNT(y) FROM r GROUP BY x",
        "SELECT p.name FROM r JOIN person p ON p.id = r.y",
    ],
)
def test_union_all_is_refused_where_it_would_count_paths(outer: str) -> None:
    with pytest.raises(UnsupportedError, match="UNION ALL would give a row for each path") as raised:
        parse_sql(recursive(f"ALL {LINEAR}", outer), TABLES)
    assert raised.value.position == recursive(f"ALL {LINEAR}", outer).index("UNION ALL")


def test_columns_are_named_by_the_base_without_a_list() -> None:
    step = "SELECT r.start, e.dst FROM r JOIN edge e ON r.finish = e.src"
    text = f"WITH RECURSIVE r AS (SELECT e.src AS start, e.dst finish FROM edge e UNION {step}) SELECT finish FROM r"
    assert str(parse_sql(text, TABLES)) == "Q(finish | .) = closure(edge)(start, finish)"


def test_a_closure_may_run_against_the_edges() -> None:
    text = recursive("SELECT r.x, e.src FROM r JOIN edge e ON r.y = e.dst", base="SELECT dst, src FROM edge")
    assert parse_sql(text, TABLES).atoms[0].columns == (ColumnRef("dst"), ColumnRef("src"))


def test_a_closure_joins_with_tables_and_takes_parameters() -> None:
    outer = "SELECT p.name FROM r JOIN person p ON p.id = r.y WHERE r.x = :start"
    query = parse_sql(recursive(LINEAR, outer), TABLES)
    assert str(query) == "Q(name | x) = closure(edge)(x, y), person(y, name)"
    assert query.parameters == ("start",)


def test_a_closure_may_occur_twice_and_beside_its_edges() -> None:
    query = parse_sql(
        recursive(LINEAR, "SELECT a.x, b.y FROM r a JOIN r b ON a.y = b.x JOIN edge ON src = b.y"), TABLES
    )
    assert [(atom.relation, atom.closure) for atom in query.atoms] == [("edge", True), ("edge", True), ("edge", False)]


def test_a_predicate_on_a_closure_is_over_the_columns_of_its_edges() -> None:
    (atom,) = parse_sql(recursive(LINEAR, "SELECT y FROM r WHERE x = 3 AND y > x"), TABLES).atoms
    assert str(atom.where) == "(src = 3) AND (dst > src)"


def test_aggregates_and_cycles_of_a_closure() -> None:
    assert str(parse_sql(recursive(LINEAR, "SELECT x, COUNT(*) FROM r GROUP BY x"), TABLES)) == (
        "Q(x, COUNT | .) = closure(edge)(x, y)"
    )
    assert str(parse_sql(recursive(LINEAR, "SELECT x FROM r WHERE x = y"), TABLES)) == "Q(x | .) = closure(edge)(x, x)"


def test_the_edges_may_be_undeclared() -> None:
    (found,) = parse_sql(recursive(LINEAR)).tables
    assert found.column_names == ("src", "dst")


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("SELECT r.x, e.dst FROM r JOIN edge e ON r.x = e.src", "the step does not extend paths end to end"),
        ("SELECT e.dst, r.x FROM r JOIN edge e ON r.y = e.src", "the step does not extend paths end to end"),
        ("SELECT r.x, r.y FROM r JOIN edge e ON r.y = e.src", "the step does not extend paths end to end"),
        (LINEAR + " WHERE e.weight > 3", "the step must have one condition, an equality"),
        ("SELECT r.x, e.dst FROM r, edge e", "the step must have one condition, an equality"),
        ("SELECT r.x, e.dst FROM r JOIN edge e ON r.y < e.src", "the step must have one condition, an equality"),
        ("SELECT r.x, e.dst FROM r LEFT JOIN edge e ON r.y = e.src", "an outer join is not supported here"),
        ("SELECT r.x, p.id FROM r JOIN person p ON r.y = p.id", "the step reads person, the base edge"),
        (
            "SELECT a.x, c.y FROM r a, r b, r c WHERE a.y = b.x AND b.y = c.x",
            "the step must join two tables, the recursive one among them",
        ),
        ("SELECT src, dst FROM edge", "the step must join two tables, the recursive one among them"),
        ("SELECT r.x, e.dst + 1 FROM r JOIN edge e ON r.y = e.src", "a recursive query selects plain columns only"),
        ("SELECT r.x FROM r", "a part of the recursion must select two columns of tables"),
        (LINEAR + " GROUP BY 1", "GROUP BY is not supported here"),
        ("SELECT x, y FROM (SELECT * FROM r)", "a recursive query reads plain tables only"),
    ],
)
def test_any_other_step_is_refused(step: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        parse_sql(recursive(step), TABLES)
    assert raised.value.message == message
    assert "only reachability is recognised" in raised.value.instead
    assert raised.value.position is not None


def test_a_recursion_over_another_table_than_it_starts_from_is_told_its_rewrite() -> None:
    with pytest.raises(UnsupportedError) as raised:
        parse_sql(recursive("SELECT r.x, p.id FROM r JOIN person p ON r.y = p.id"), TABLES)
    assert "make the closure of person a view, join it with edge" in raised.value.instead
    assert '"Who may read what" in docs/gallery.md' in raised.value.instead


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("SELECT src, dst FROM edge WHERE weight > 1", "WHERE is not supported here"),
        ("SELECT src, dst, 0 AS depth FROM edge", "a part of the recursion must select two columns of tables"),
        ("SELECT src, src AS again FROM edge", "edges need a source and a target column"),
        ("SELECT e.src, f.dst FROM edge e, edge f", "a join is not supported here"),
        ("SELECT 1, 2", "a part of the recursion must select two columns of tables"),
    ],
)
def test_any_other_base_is_refused(base: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as raised:
        parse_sql(recursive(LINEAR, base=base), TABLES)
    assert raised.value.message == message


def test_expressions_over_a_closure_are_refused() -> None:
    for outer in ("SELECT x + 1 AS z FROM r", "SELECT y FROM r WHERE x + 1 = :p"):
        with pytest.raises(UnsupportedError, match="an expression over the columns of a recursive query"):
            parse_sql(recursive(LINEAR, outer), TABLES)


def test_unknown_columns_in_a_recursion_are_refused() -> None:
    with pytest.raises(UnknownNameError, match=r"the column e\.weight is not an end of an edge or of a path"):
        parse_sql(recursive("SELECT r.x, e.weight FROM r JOIN edge e ON r.y = e.src"), TABLES)
    with pytest.raises(UnknownNameError, match="is not a column of edge"):
        parse_sql(recursive(LINEAR, base="SELECT src, target FROM edge"), TABLES)
