from __future__ import annotations

import pytest

from ivme.errors import QueryError, UnsupportedError
from ivme.query.expression import Call, ColumnRef, Literal
from ivme.query.model import Aggregate, Query, table
from ivme.query.sql import parse_sql

TABLES = [
    table("r", {"a": "int", "b": "int"}),
    table("s", {"b": "int", "c": "string", "d": "date"}),
    table("item", {"id": "int", "price": "decimal(10, 2)", "discount": "float", "name": "string", "sold": "bool"}),
]


def read(text: str) -> Query:
    return parse_sql(text, TABLES)


def head(query: Query) -> list[tuple[str, str]]:
    return [(column.name, str(column.source)) for column in query.head]


def refusal(text: str) -> str:
    with pytest.raises(QueryError) as raised:
        read(text)
    return raised.value.message


def test_a_selected_column_becomes_an_output_variable() -> None:
    query = read("SELECT b, a AS first FROM r")
    assert (query.output, query.input, query.distinct) == (("b", "a"), (), False)
    assert head(query) == [("b", "b"), ("first", "a")]


def test_an_equality_between_tables_makes_one_variable() -> None:
    assert str(read("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")) == "Q(a, c | .) = r(a, b), s(b, c)"


@pytest.mark.parametrize(
    "body",
    [
        "r, s WHERE r.b = s.b",
        "r INNER JOIN s USING (b)",
        "r CROSS JOIN s WHERE s.b = r.b",
        "r JOIN s ON (r.b = s.b AND TRUE)",
        "r JOIN s WHERE (r.b) = s.b AND 1 = 1",
    ],
)
def test_every_spelling_of_a_join_gives_the_same_query(body: str) -> None:
    assert read(f"SELECT r.a, s.c FROM {body}") == read("SELECT r.a, s.c FROM r JOIN s ON r.b = s.b")


def test_columns_of_different_names_share_the_name_of_the_first_table() -> None:
    assert str(read("SELECT r.a FROM r JOIN item i ON i.id = r.b")) == "Q(a | .) = r(a, b), item(b)"


def test_equal_names_of_different_classes_are_told_apart_by_the_alias() -> None:
    query = read("SELECT x.a, y.a AS other FROM r x JOIN r y ON x.b = y.b")
    assert str(query) == "Q(x_a, y_a | .) = r(x_a, b), r(y_a, b)"
    assert [atom.alias for atom in query.atoms] == ["x", "y"]


def test_names_made_of_alias_and_column_stay_distinct() -> None:
    tables = [table("t", ["a", "x_a"]), table("u", ["a"])]
    query = parse_sql("SELECT x.x_a, x.a AS p, u.a AS q FROM t x, u", tables)
    assert len(set(query.output)) == 3


def test_an_equality_within_a_table_repeats_the_variable() -> None:
    assert str(read("SELECT a FROM r WHERE a = b")) == "Q(a | .) = r(a, a)"


def test_a_column_that_equals_itself_is_not_null() -> None:
    (atom,) = read("SELECT a FROM r WHERE a = a").atoms
    assert atom.where == Call("eq", (ColumnRef("a"), ColumnRef("a")))


def test_predicates_over_one_table_stay_with_its_atom() -> None:
    query = read("SELECT r.a FROM r JOIN s ON r.b = s.b AND s.c LIKE 'x%' WHERE r.a > 3 AND (s.c = 'y' OR s.d IS NULL)")
    assert [str(atom.where) for atom in query.atoms] == ["a > 3", "(c LIKE 'x%') AND ((c = 'y') OR (d IS NULL))"]
    assert [atom.terms for atom in query.atoms] == [("a", "b"), ("b",)]


def test_columns_used_only_in_predicates_have_no_term() -> None:
    (atom,) = read("SELECT a FROM r WHERE b = 3").atoms
    assert (atom.terms, atom.where) == (("a",), Call("eq", (ColumnRef("b"), Literal(3))))


def test_a_boolean_column_is_a_predicate() -> None:
    (atom,) = read("SELECT id FROM item WHERE sold").atoms
    assert atom.where == ColumnRef("sold")


def test_a_parameter_makes_its_column_an_input() -> None:
    query = read("SELECT a FROM r WHERE :key = b")
    assert (query.output, query.input, query.parameters) == (("a",), ("b",), ("key",))


def test_a_selected_input_is_in_the_head_but_not_an_output() -> None:
    query = read("SELECT a, b FROM r WHERE b = :key")
    assert (query.output, query.input, head(query)) == (("a",), ("b",), [("a", "a"), ("b", "b")])


def test_one_parameter_on_two_columns_equates_them() -> None:
    query = read("SELECT r.a FROM r, s WHERE r.b = :p AND s.b = :p")
    assert (str(query), query.parameters) == ("Q(a | b) = r(a, b), s(b)", ("p",))


def test_parameters_are_listed_in_the_order_of_the_text() -> None:
    query = read("SELECT r.a FROM r, s WHERE s.c = :second AND r.b = :first")
    assert (query.parameters, query.input) == (("second", "first"), ("c", "b"))


def test_two_parameters_on_one_variable_are_refused() -> None:
    texts = ["r.b = :p AND r.b = :q", "r.b = :p AND s.b = :q AND r.b = s.b", "r.b = s.b AND r.b = :p AND s.b = :q"]
    for text in texts:
        assert refusal(f"SELECT r.a FROM r, s WHERE {text}") == (
            "the parameters :p and :q are compared with the same column"
        )


def test_an_expression_compared_with_a_parameter_is_a_computed_input() -> None:
    query = read("SELECT c FROM s WHERE LOWER(c) = :city")
    assert query.input == ("lower_c",)
    assert query.atoms[0].columns == (ColumnRef("c"), Call("lower", (ColumnRef("c"),)))


def test_expressions_of_two_tables_join_on_computed_columns() -> None:
    query = read("SELECT r.a FROM r JOIN s ON r.a + 1 = s.b * 2")
    assert [list(map(str, atom.columns)) for atom in query.atoms] == [["a", "a + 1"], ["b * 2"]]
    assert query.atoms[0].terms[1] == query.atoms[1].terms[0]


def test_aggregates_are_over_variables() -> None:
    query = read("SELECT COUNT(*), COUNT(1), COUNT(a) AS n, COUNT(DISTINCT a), SUM(b), AVG(b), MIN(b), MAX(b) FROM r")
    assert [column.source for column in query.head] == [
        *(Aggregate("count"), Aggregate("count"), Aggregate("count", "a"), Aggregate("count_distinct", "a")),
        *(Aggregate(function, "b") for function in ("sum", "avg", "min", "max")),
    ]
    assert [column.name for column in query.head][:4] == ["COUNT(*)", "COUNT(1)", "n", "COUNT(DISTINCT a)"]


def test_an_aggregate_over_an_expression_is_over_a_computed_column() -> None:
    query = read("SELECT name, SUM(price * (1 - 0.1)) AS revenue FROM item GROUP BY name")
    variable = query.head[1].source
    assert isinstance(variable, Aggregate)
    computed = dict(zip(query.atoms[0].terms, query.atoms[0].columns, strict=True))
    assert str(computed[str(variable.variable)]) == "price * (1 - 0.1)"


@pytest.mark.parametrize("key", ["UPPER(c)", "1", "u", "ALL"])
def test_group_by_takes_expressions_positions_aliases_and_all(key: str) -> None:
    query = read(f"SELECT UPPER(c) AS u, COUNT(*) FROM s GROUP BY {key}")
    assert (query.output, query.distinct) == (("upper_c",), False)


def test_group_by_prefers_a_column_to_an_alias() -> None:
    with pytest.raises(UnsupportedError, match="a is neither aggregated nor in GROUP BY"):
        read("SELECT a AS b, a, COUNT(*) FROM r GROUP BY b")


def test_a_group_key_that_is_not_selected_is_an_output() -> None:
    query = read("SELECT SUM(a) FROM r GROUP BY b")
    assert (query.output, head(query)) == (("b",), [("SUM(a)", "SUM(a)")])


def test_a_group_key_that_is_an_input_stays_one() -> None:
    query = read("SELECT b, SUM(a) FROM r WHERE b = :p GROUP BY b")
    assert (query.output, query.input) == ((), ("b",))


def test_an_expression_of_group_keys_may_be_selected() -> None:
    query = read("SELECT a + 1 AS next, COUNT(*) FROM r GROUP BY a")
    assert query.output == ("add_a", "a")


def test_group_by_without_aggregates_is_distinct() -> None:
    assert read("SELECT a FROM r GROUP BY a") == read("SELECT DISTINCT a FROM r")


def test_distinct_over_groups_says_nothing_more() -> None:
    assert read("SELECT DISTINCT a, COUNT(*) FROM r GROUP BY a") == read("SELECT a, COUNT(*) FROM r GROUP BY a")


def test_a_star_lists_the_columns_of_the_tables_in_order() -> None:
    assert [column.name for column in read("SELECT * FROM r, item").head] == [
        *("a", "b", "id", "price", "discount", "name", "sold")
    ]
    assert [column.name for column in read("SELECT s.*, a FROM r JOIN s ON r.b = s.b").head] == ["b", "c", "d", "a"]


def test_a_star_shows_the_columns_of_using_once_and_first() -> None:
    assert [column.name for column in read("SELECT * FROM r JOIN s USING (b)").head] == ["b", "a", "c", "d"]


def test_a_table_without_mentioned_columns_is_an_atom_without_terms() -> None:
    assert str(read("SELECT a FROM r, s")) == "Q(a | .) = r(a), s()"


def test_casts_of_literals_are_done_when_the_query_is_read() -> None:
    (atom,) = read("SELECT b FROM s WHERE d >= CAST('2024-01-31' AS DATE)").atoms
    assert str(atom.where) == "d >= DATE '2024-01-31'"


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("s.c = 5", "c = 5 compares string with int"),
        ("s.c + 1 = 2", "c + 1 computes with a value of type string"),
        ("s.d IN (1, 2)", "d IN (1, 2) compares date with int"),
        ("r.b = s.c", "an equality between int and string would need a conversion"),
        ("r.b", "r.b is of type int; a condition is needed here"),
        ("r.b + 1", "r.b + 1 is not a condition"),
    ],
)
def test_types_that_do_not_fit_are_refused(condition: str, message: str) -> None:
    assert refusal(f"SELECT r.a FROM r, s WHERE {condition}") == message


def test_a_decimal_joins_a_float_by_a_key_of_its_own() -> None:
    query = parse_sql("SELECT x.price, y.discount FROM item x JOIN item y ON x.price = y.discount", TABLES)
    assert str(query) == "Q(price, discount | .) = item(price, discount), item(discount)"
    assert str(query.atoms[0].columns[1]) == "CAST(price AS DOUBLE)"


def test_sums_are_of_numbers() -> None:
    assert refusal("SELECT SUM(name) FROM item") == "SUM(name) adds up values of type string"


def test_the_query_keeps_its_text_and_its_name() -> None:
    query = parse_sql("SELECT a FROM r;", TABLES, name="V")
    assert (query.name, query.text) == ("V", "SELECT a FROM r;")


def test_comments_are_ignored() -> None:
    assert read("SELECT a -- first\nFROM r /* here */ WHERE b = /* p */ :p") == read("SELECT a FROM r WHERE b = :p")


def test_an_error_points_at_its_line_and_column() -> None:
    with pytest.raises(QueryError) as raised:
        read("SELECT a\r\nFROM r\nWHERE a < :p")
    assert (raised.value.line, raised.value.column) == (3, 11)
