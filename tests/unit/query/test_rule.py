"""Rule notation: what each form of the grammar means."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from ivme.errors import QueryError, UnknownNameError
from ivme.query.expression import ColumnRef
from ivme.query.model import Aggregate, Constant, HeadColumn, table
from ivme.query.rule import parse_rule
from ivme.query.rule_sql import rule_sql


def test_the_triangle_with_an_input_reads_as_in_the_source() -> None:
    query = parse_rule("Q(B, C | A) = R(A, B), S(B, C), T(C, A)")
    assert query.name == "Q"
    assert query.output == ("B", "C")
    assert query.input == query.parameters == ("A",)
    assert [(atom.relation, atom.terms) for atom in query.atoms] == [
        ("R", ("A", "B")),
        ("S", ("B", "C")),
        ("T", ("C", "A")),
    ]
    assert query.head == (HeadColumn("B", "B"), HeadColumn("C", "C"))
    assert query.text == "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"


@pytest.mark.parametrize("head", ["Q(. | .)", "Q()", "Q(|)", "Q(.)", "Q(.|)", "Q(|.)", "Q(· | ·)"])
def test_dots_and_nothing_both_stand_for_no_variables(head: str) -> None:
    query = parse_rule(f"{head} = R(A)")
    assert (query.output, query.input, query.head) == ((), (), ())


@pytest.mark.parametrize(
    ("head", "output", "inputs"),
    [("Q(A)", ("A",), ()), ("Q(A | .)", ("A",), ()), ("Q(.|A)", (), ("A",)), ("Q(|A)", (), ("A",))],
)
def test_one_side_of_the_bar_may_be_empty(head: str, output: tuple[str, ...], inputs: tuple[str, ...]) -> None:
    query = parse_rule(f"{head} = R(A)")
    assert (query.output, query.input) == (output, inputs)


@pytest.mark.parametrize("end", ["", ".", ";", " \n. \n"])
@pytest.mark.parametrize("equals", ["=", ":-", "\n=\n"])
def test_datalog_punctuation_and_white_space_make_no_difference(equals: str, end: str) -> None:
    assert parse_rule(f"Q(A|B){equals}R(A,B){end}") == parse_rule("Q(A | B) = R(A, B)")


def test_constants_have_the_types_that_their_spelling_says() -> None:
    atom = parse_rule("Q() = R(3, -4, 1.50, 1.5e2, 'it''s', TRUE, false)").atoms[0]
    expected = [3, -4, Decimal("1.50"), 150.0, "it's", True, False]
    values = [term.value for term in atom.terms if isinstance(term, Constant)]
    assert values == expected
    assert [type(value) for value in values] == [type(value) for value in expected]


def test_constants_take_the_types_of_known_columns() -> None:
    schema = {"f": "float", "d": "decimal(10, 2)", "day": "date", "at": "timestamp", "s": "string", "b": "bool"}
    rule = "Q() = R(0.1, 2, '2024-02-29', '2024-02-29 12:30:00', 'x', TRUE)"
    values = [
        term.value for term in parse_rule(rule, [table("R", schema)]).atoms[0].terms if isinstance(term, Constant)
    ]
    noon = datetime.datetime(2024, 2, 29, 12, 30)
    assert values == [0.1, Decimal(2), datetime.date(2024, 2, 29), noon, "x", True]
    assert isinstance(values[1], Decimal)


@pytest.mark.parametrize(
    ("kind", "constant"),
    [("int", "'3'"), ("int", "3.0"), ("int", "TRUE"), ("decimal(5, 2)", "1e2"), ("date", "'soon'"), ("binary", "'x'")],
)
def test_a_constant_of_another_type_than_its_column_is_refused(kind: str, constant: str) -> None:
    with pytest.raises(QueryError, match="column a has type") as refused:
        parse_rule(f"Q() = R({constant})", [table("R", {"a": kind})])
    assert refused.value.position == len("Q() = R(")


def test_a_variable_may_repeat_within_an_atom_and_a_relation_within_the_body() -> None:
    query = parse_rule("Q(A) = R(A, A), R(A, B), R(B, _)")
    assert [atom.variables for atom in query.atoms] == [("A",), ("A", "B"), ("B", "_1")]
    assert query.has_self_joins
    assert len(query.tables) == 1


def test_each_anonymous_variable_is_a_new_one_and_clashes_with_none() -> None:
    query = parse_rule('Q(_2) = R(_, _2, _), S(_, "_3")')
    assert query.atoms[0].terms == ("_1", "_2", "_4")
    assert query.atoms[1].terms == ("_5", "_3")


def test_the_quoted_underscore_is_an_ordinary_variable() -> None:
    assert parse_rule('Q(A) = R(A, "_"), S("_")').variables == ("A", "_")


def test_aggregates_stand_among_the_outputs_in_any_case_and_order() -> None:
    query = parse_rule(
        "Q(A, sum(X), count, Count(X), COUNT(DISTINCT X), avg(X), MIN(X), Max(B), C | B) = R(A, B, C, X)"
    )
    assert query.output == ("A", "C")
    assert query.input == ("B",)
    assert query.aggregates == (
        Aggregate("sum", "X"),
        Aggregate("count"),
        Aggregate("count", "X"),
        Aggregate("count_distinct", "X"),
        Aggregate("avg", "X"),
        Aggregate("min", "X"),
        Aggregate("max", "B"),
    )
    assert [column.name for column in query.head][:3] == ["A", "SUM(X)", "COUNT"]
    assert query.head[-1] == HeadColumn("C", "C")


def test_count_and_count_star_are_one_aggregate() -> None:
    assert parse_rule("Q(COUNT) = R(A)").head == parse_rule("Q(COUNT(*)) = R(A)").head


def test_an_aggregate_may_be_over_a_free_variable() -> None:
    query = parse_rule("Q(A, SUM(A)) = R(A)")
    assert (query.output, query.aggregates) == (("A",), (Aggregate("sum", "A"),))


def test_the_names_of_functions_are_variables_where_nothing_is_called() -> None:
    assert parse_rule('Q(sum, "count") = R(sum, "count", min)').output == ("sum", "count")


def test_distinct_stands_before_the_outputs() -> None:
    query = parse_rule("Q(DISTINCT A, B | C) = R(A, B, C)")
    assert query.distinct
    assert query.output == ("A", "B")
    assert not parse_rule("Q(A, B | C) = R(A, B, C)").distinct


def test_the_short_form_of_a_closure_takes_its_variables_from_the_head() -> None:
    assert parse_rule("Q(X, Y) = closure(edge)") == parse_rule("Q(X, Y) = closure(edge)(X, Y)")


def test_a_closure_is_an_atom_among_others() -> None:
    query = parse_rule("Q(Y | X) = CLOSURE(net.edge)(X, Y), edge(Y, X), city(Y)")
    assert [(atom.relation, atom.closure) for atom in query.atoms] == [
        ("net.edge", True),
        ("edge", False),
        ("city", False),
    ]


def test_a_closure_and_its_edges_may_share_a_table() -> None:
    query = parse_rule("Q(X) = closure(edge)(X, Y), edge(Y, X)")
    assert [found.name for found in query.tables] == ["edge"]


def test_a_quoted_closure_is_a_table() -> None:
    assert not parse_rule('Q(X) = "closure"(X, Y, Z)').atoms[0].closure


def test_names_may_be_quoted_or_dotted() -> None:
    query = parse_rule('"the query"("a ""b""" | `x y`) = db.`my table`("a ""b""", `x y`)')
    assert query.name == "the query"
    assert (query.output, query.input) == (('a "b"',), ("x y",))
    assert query.atoms[0].relation == "db.my table"


def test_variables_are_told_apart_by_case_and_relations_are_not() -> None:
    query = parse_rule("Q(a, A) = R(a, A), r(A, a)")
    assert query.variables == ("a", "A")
    assert {atom.relation for atom in query.atoms} == {"R"}


def test_the_variables_stand_for_the_columns_of_a_known_table_by_position() -> None:
    orders = table("Orders", {"id": "int", "customer": "string"}, primary_key="id")
    other = table("other", ["x"])
    query = parse_rule("Q(C) = orders(I, C)", {"Orders": orders, "other": other})
    assert query.tables == (orders,)
    assert query.atoms[0].relation == "Orders"
    assert query.atoms[0].columns == (ColumnRef("id"), ColumnRef("customer"))


def test_tables_that_differ_by_case_are_told_apart_by_exact_spelling() -> None:
    query = parse_rule("Q(A) = r(A), R(A, B)", [table("R", ["x", "y"]), table("r", ["z"])])
    assert [(atom.relation, len(atom.columns)) for atom in query.atoms] == [("r", 1), ("R", 2)]


def test_an_unknown_relation_is_inferred_from_its_atom() -> None:
    (inferred,) = parse_rule("Q(A) = R(A, _, 3)").tables
    assert inferred.inferred
    assert inferred.column_names == ("_1", "_2", "_3")


def test_an_unknown_relation_is_refused_once_tables_are_known() -> None:
    with pytest.raises(UnknownNameError, match="did you mean orders") as refused:
        parse_rule("Q(A) = ordres(A)", [table("orders", ["a"])])
    assert refused.value.position == 7


def test_a_view_may_have_the_name_of_a_known_table() -> None:
    assert parse_rule("R(A) = R(A, _)", [table("R", ["a", "b"])]).atoms[0].relation == "R"


def test_a_table_that_is_called_as_the_head_does_not_change_what_several_rules_mean() -> None:
    rules = "Q(X, Y) = edge(X, Y); Q(X, Z) = Q(X, Y), edge(Y, Z)"
    tables = [table("edge", ["x", "y"]), table("Q", ["x", "y"])]
    assert parse_rule(rules, tables).atoms == parse_rule(rules, tables[:1]).atoms
    assert str(parse_rule("Q(X) = Q(X, Y)", tables)) == "Q(X | .) = Q(X, Y)"


def test_equations_in_any_order_are_read_once_each() -> None:
    chain = ", ".join(f"v{n} = v{n - 1} + 1" for n in range(40, 0, -1))
    found = rule_sql(f"Q(v40) = edge(v0, _), {chain}", [table("edge", {"x": "int", "y": "int"})])
    assert found.select.count("+ 1") == 40


def test_an_expression_that_doubles_with_each_equation_is_refused() -> None:
    chain = ", ".join(f"v{n} = v{n - 1} + v{n - 1}" for n in range(1, 40))
    with pytest.raises(QueryError, match="becomes too long"):
        rule_sql(f"Q(v39) = edge(v0, _), {chain}", [table("edge", {"x": "int", "y": "int"})])
