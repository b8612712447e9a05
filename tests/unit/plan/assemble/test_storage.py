"""Which maps there are: equal leaves are stored once, and reads declare their indexes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ivme.plan.assemble.blueprint import Blueprint, IndicatorLeaf, Leaf, Reading, StoredView
from ivme.plan.assemble.catalog import catalog_of
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.assemble.storage import Storage
from ivme.plan.ir.program import Index, Read
from ivme.query.model import Query, table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def storage(query: Query | str) -> Storage:
    query = parse_rule(query) if isinstance(query, str) else query
    return Storage(catalog_of({"": Blueprint(leaves_of(query, fracture(cqap_of(query))), (), (), Reading((), ()))}))


def are_shared(query: Query | str) -> bool:
    """Whether the whole leaves of the query's two atoms are one map."""
    found = storage(query)
    one, other = (Leaf(label, source.schema) for label, source in found.catalog.sources.items())
    return found.declare(one) == found.declare(other)


def test_a_leaf_is_shared_whatever_the_atoms_call_their_variables() -> None:
    assert are_shared("Q(A, B) = E(A, B), E(B, A)")
    assert are_shared("Q(A, B, C, D) = E(A, B), E(C, D)")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Q(A, B) = E(A, 1), E(B, 2)", id="constants"),
        pytest.param("Q(A, B, C) = E(A, B), E(C, C)", id="repeated variables"),
        pytest.param("Q(A, B, C) = E(A, B), E(B, C)", id="variables that may be NULL"),
        pytest.param("Q(SUM(A)) = E(A, B), E(B, A)", id="lifts"),
        pytest.param("Q(A, B) = E(A, B), F(A, B)", id="relations"),
    ],
)
def test_a_leaf_is_not_shared_where_rows_are_read_differently(text: str) -> None:
    assert not are_shared(text)


@pytest.mark.parametrize(
    ("predicates", "shared"),
    [
        ("x.c > 3 AND y.c > 3", True),
        ("x.c > 3 AND y.c > 4", False),
        ("x.c > 3 AND y.c < 3", False),
        ("x.c > 3", False),
    ],
)
def test_a_leaf_is_shared_only_under_the_same_predicate(predicates: str, shared: bool) -> None:
    tables = [table("t", {"a": "int", "b": "int", "c": "int"})]
    text = f"SELECT x.a, x.b FROM t x JOIN t y ON x.a = y.b AND x.b = y.a WHERE {predicates}"
    assert shared == are_shared(parse_sql(text, tables))


def test_a_leaf_is_not_shared_where_a_column_is_computed() -> None:
    tables = [table("t", {"a": "int", "b": "int"})]
    assert not are_shared(parse_sql("SELECT x.a FROM t x JOIN t y ON x.a = y.b + 1", tables))
    assert are_shared(parse_sql("SELECT x.b, y.b AS c FROM t x JOIN t y ON x.a = y.a", tables))


def test_sums_of_a_leaf_are_maps_of_their_own_and_named_apart() -> None:
    found = storage("Q(A) = E(A, B), E(A, C)")
    assert found.declare(Leaf("E#1", ("A", "B"))) == "E"
    assert found.declare(Leaf("E#1", ("A",))) == "E.2"
    assert found.declare(Leaf("E#2", ("A",))) == "E.2"
    assert found.declare(Leaf("E#2", ("C",))) == "E.3"
    assert found.declare(Leaf("E#2", ("A", "C"))) == "E"
    assert [declared.schema for declared in found.maps()] == [("A", "B"), ("A",), ("C",)]


def test_an_indicator_on_all_variables_reads_the_leaf_itself() -> None:
    found = storage("Q(A, B, X) = R(A, B, X)")
    whole = IndicatorLeaf("R", ("A", "B", "X"))
    assert found.declare(Leaf("R", ("A", "B", "X"))) == found.declare(whole)
    assert [declared.role for declared in found.maps()] == ["leaf"]
    assert not found.read(whole, ("A", "B", "X"), ()).payload


def test_an_indicator_on_fewer_variables_is_a_support_beside_the_summed_leaf() -> None:
    found = storage("Q(A, B, SUM(X)) = R(A, B, X)")
    assert found.declare(IndicatorLeaf("R", ("A", "B"))) == "∃R"
    assert found.declare(Leaf("R", ("A", "B"))) == "R"
    assert [(declared.role, declared.sums) for declared in found.maps()] == [("support", False), ("leaf", True)]


def test_an_indicator_bounds_sizes_by_its_own_variables() -> None:
    found = storage("Q(A, B, C) = R(A, B, X), S(B, C), T(C, A)")
    view = StoredView("V", ("A", "B", "C"), "view", ("S", "T"), (("R", ("A", "B")),))
    assert Fraction(3, 2) == found.sizes.exponent(found.edges(view), "ABC")
    assert Fraction(2) == found.sizes.exponent(found.edges(StoredView("V", ("A", "B", "C"), "view", ("S", "T"))), "ABC")


def test_a_read_declares_the_index_that_yields_its_new_variables() -> None:
    found = storage("Q(A, B, C) = R(A, B, C)")
    node = Leaf("R", ("A", "B", "C"))
    assert Read("R", ("A", "B", "C")) == found.read(node, ("A",), ("B", "C"))
    assert (Index((0,), (1, 2)),) == found.maps()[0].indexes
    found.read(node, ("A",), ("B", "C"))
    assert len(found.maps()[0].indexes) == 1


def test_a_read_with_variables_left_open_asks_for_presence_in_a_projection() -> None:
    found = storage("Q(A, B, C) = R(A, B, C)")
    assert Read("R", ("A", "B", None), payload=False) == found.read(Leaf("R", ("A", "B", "C")), ("A",), ("B",))
    assert (Index((0,), (1,)),) == found.maps()[0].indexes


def test_look_ups_and_whole_scans_need_no_index() -> None:
    found = storage("Q(A, B, C) = R(A, B, C)")
    node = Leaf("R", ("A", "B", "C"))
    found.read(node, ("A", "B", "C"), ())
    found.read(node, (), ("A", "B", "C"))
    assert found.maps()[0].indexes == ()


def test_a_projection_with_nothing_known_needs_an_index_without_a_key() -> None:
    found = storage("Q(A, B, C) = R(A, B, C)")
    found.read(Leaf("R", ("A", "B", "C")), (), ("A",))
    assert (Index((), (0,)),) == found.maps()[0].indexes


def test_min_and_max_want_an_ordered_index_and_count_distinct_a_plain_one() -> None:
    found = storage("Q(A, MIN(X), COUNT(DISTINCT X)) = R(A, X)")
    node = Leaf("R", ("A", "X"))
    found.extreme("min", "X", node)
    assert ((), (Index((0,), (1,)),)) == (found.maps()[0].indexes, found.maps()[0].sorted_by)
    found.extreme("count_distinct", "X", node)
    assert (Index((0,), (1,)),) == found.maps()[0].indexes
