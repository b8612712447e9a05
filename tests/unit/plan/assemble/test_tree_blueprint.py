"""How changes climb view trees, and how rows are read off them."""

from __future__ import annotations

from ivme.plan.assemble.blueprint import Blueprint, IndicatorLeaf, Leaf, Node, Reference, StoredView
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.assemble.tree_blueprint import tree_blueprint
from ivme.plan.order.search import best_order
from ivme.plan.order.view_tree import view_trees
from ivme.query.rule import parse_rule
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of

TRIANGLE = "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"
EXAMPLE_4_2 = "Q(B, C, D, E | A) = R(A, B, C), S(A, B, D), T(A, E)"


def drawn(text: str, ordered: str = "", extremes: tuple[str, ...] = ()) -> Blueprint:
    query = parse_rule(text)
    broken = fracture(cqap_of(query, frozenset(ordered)))
    leaves = leaves_of(query, broken)
    roots = view_trees(best_order(broken.whole).order, broken.whole, leaves.schemas)
    return tree_blueprint(roots, broken.whole, leaves, extremes)


def named(node: Node) -> str:
    assert not isinstance(node, Reference)
    label = node.name if isinstance(node, StoredView) else node.label
    return f"{'∃' if isinstance(node, IndicatorLeaf) else ''}{label}({','.join(node.schema)})"


def climbs(blueprint: Blueprint) -> dict[str, list[str]]:
    """For each use, its rules as `view <- origin sibling sibling`."""
    return {
        named(propagation.use): [
            f"{named(r.view)} <- {' '.join(map(named, (r.origin, *r.siblings)))}" for r in propagation.rules
        ]
        for propagation in blueprint.propagations
    }


def test_a_change_climbs_to_the_root_and_joins_the_siblings_on_its_way() -> None:
    """Example 4.10: δR joins V'_C, and the change of its indicator joins S and T, then R."""
    found = climbs(drawn(TRIANGLE))
    assert found["R(A,B)"] == ["V_B(A,B) <- R(A,B) V'_C(A,B)", "V_A(A) <- V_B(A,B)"]
    climb = [
        "V_C(A,B,C) <- ∃R(A,B) S(B,C) T(C,A)",
        "V'_C(A,B) <- V_C(A,B,C)",
        "V_B(A,B) <- V'_C(A,B) R(A,B)",
        "V_A(A) <- V_B(A,B)",
    ]
    assert climb == found["∃R(A,B)"]


def test_the_indicators_of_an_atom_are_propagated_right_after_it() -> None:
    assert list(climbs(drawn(TRIANGLE))) == ["R(A,B)", "∃R(A,B)", "S(B,C)", "T(C,A)"]


def test_a_tree_over_one_atom_is_the_atom_summed() -> None:
    """Example 4.2: V'_C is R summed to A_1 and B, and the whole tree of T needs no view."""
    found = climbs(drawn(EXAMPLE_4_2))
    assert found["R(A_1,B,C)"] == ["V_B(A_1,B) <- R(A_1,B) S(A_1,B)", "V_A_1(A_1) <- V_B(A_1,B)"]
    assert found["T(A_2,E)"] == []


def test_definitions_come_bottom_up() -> None:
    definitions = [(named(d.view), [named(child) for child in d.children]) for d in drawn(TRIANGLE).definitions]
    expected = [
        ("V_C(A,B,C)", ["S(B,C)", "T(C,A)", "∃R(A,B)"]),
        ("V'_C(A,B)", ["V_C(A,B,C)"]),
        ("V_B(A,B)", ["V'_C(A,B)", "R(A,B)"]),
        ("V_A(A)", ["V_B(A,B)"]),
    ]
    assert expected == definitions


def read(blueprint: Blueprint) -> tuple[list[tuple[str, str]], list[str]]:
    reading = blueprint.reading
    return [(named(i.node), "".join(i.new)) for i in reading.iterations], [named(n) for n in reading.factors]


def test_the_iterators_of_example_4_8_are_nested_from_the_top() -> None:
    """it_VB(B | A1), it_R(C | A1, B), it_S(D | A1, B), it_T(E | A2); the payload is the product of the three atoms."""
    iterations = [("V_B(A_1,B)", "B"), ("R(A_1,B,C)", "C"), ("S(A_1,B,D)", "D"), ("T(A_2,E)", "E")]
    assert (iterations, ["R(A_1,B,C)", "S(A_1,B,D)", "T(A_2,E)"]) == read(drawn(EXAMPLE_4_2))


def test_a_chain_of_free_variables_is_read_by_its_lowest_view() -> None:
    assert read(drawn("Q(A, B) = R(A, B)")) == ([("R(A,B)", "AB")], ["R(A,B)"])


def test_indicators_are_no_factors_of_the_payload() -> None:
    assert read(drawn(TRIANGLE)) == ([("V_B(A,B)", "B"), ("V_C(A,B,C)", "C")], ["V_C(A,B,C)", "R(A,B)"])


def test_an_indicator_beside_factors_is_none() -> None:
    """Free variables hang below each corner, so that the view over the triangle is no factor and its children are."""
    _, factors = read(drawn("Q(A, B, C, D, E, F | .) = R(A, B), S(B, C), T(C, A), U(A, D), V(B, E), W(C, F)"))
    assert sorted(factors) == ["R(A,B)", "S(B,C)", "T(C,A)", "U(A,D)", "V(B,E)", "W(C,F)"]


def test_a_tree_without_free_variables_is_its_root() -> None:
    assert read(drawn("Q(. | .) = R(A, B), S(B, C), T(C, A)")) == ([], ["V'_A()"])


def test_a_check_that_a_factor_makes_anyway_is_left_out() -> None:
    """All variables are inputs: three look-ups, no iterator."""
    iterations, factors = read(drawn("Q(.|A,B,C) = R(A,B), S(B,C), T(C,A)"))
    assert iterations == []
    assert sorted(factors) == ["R(A_1,B_1)", "S(B_2,C_1)", "T(C_2,A_2)"]


def test_the_groups_of_an_ordered_variable_are_under_the_free_ones() -> None:
    found = drawn("Q(A, MIN(Y), MAX(Y)) = R(A, B), S(B, Y)", ordered="Y", extremes=("min", "max"))
    groups = [(function, variable, named(node)) for function, variable, node in found.reading.extremes]
    assert groups == [("min", "Y", "V_Y(A,Y)"), ("max", "Y", "V_Y(A,Y)")]


def test_an_indicator_at_two_places_is_one_use_whose_paths_follow_each_other() -> None:
    """The square with a diagonal (section 4.1.3): W filters both triangles, so that both change with it."""
    found = drawn("Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, D), U(D, A), W(A, C)")
    uses = [propagation for propagation in found.propagations if isinstance(propagation.use, IndicatorLeaf)]
    assert [IndicatorLeaf("W", ("A", "C"))] == [propagation.use for propagation in uses]
    starts = [named(rule.view) for rule in uses[0].rules if isinstance(rule.origin, IndicatorLeaf)]
    assert sorted(starts) == ["V_B(A,C,B)", "V_D(A,C,D)"]


def test_every_leaf_of_a_propagation_is_of_its_own_atom() -> None:
    for propagation in drawn(EXAMPLE_4_2).propagations:
        origins = [rule.origin for rule in propagation.rules if isinstance(rule.origin, Leaf)]
        assert {propagation.use.label} >= {origin.label for origin in origins}
