"""τ(ω), node by node as the examples of source 003 show it."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

from ivme.plan.order.variable_order import Indicator, OrderNode, VariableOrder, order_of
from ivme.plan.order.view_tree import ViewNode, view_trees
from ivme.plan.order.widths import with_indicators
from tests.brute_force import cqap

TRIANGLE = "Q(B, C | A) = R(A, B), S(B, C), T(C, A)"
TRIANGLE_SCHEMAS = {"R": ("A", "B"), "S": ("B", "C"), "T": ("C", "A")}


def drawn(trees: tuple[ViewNode, ...]) -> str:
    """One line for each node, its children indented below it."""

    def lines(node: ViewNode, depth: int) -> list[str]:
        return ["  " * depth + str(node), *(line for child in node.children for line in lines(child, depth + 1))]

    return "".join(f"{line}\n" for tree in trees for line in lines(tree, 0))


def trees_of(
    text: str, parents: dict[str, str | None], schemas: Mapping[str, tuple[str, ...]], indicators: bool = False
) -> tuple[ViewNode, ...]:
    structure = cqap(text)
    order = order_of(structure, parents)
    return view_trees(with_indicators(order, structure) if indicators else order, structure, schemas)


def test_example_2_24_has_an_auxiliary_view_at_each_variable_with_siblings() -> None:
    expected = """\
        V_A(A)
          V'_B(A)
            V_B(A, B)
              V'_C(A, B)
                V_C(A, B, C)
                  R(A, B, C)
              V'_D(A, B)
                V_D(A, B, D)
                  S(A, B, D)
          V'_E(A)
            V_E(A, E)
              T(A, E)
        """
    text = "Q(B | A) = R(A, B, C), S(A, B, D), T(A, E)"
    parents = {"A": None, "B": "A", "C": "B", "D": "B", "E": "A"}
    schemas = {"R": ("A", "B", "C"), "S": ("A", "B", "D"), "T": ("A", "E")}
    assert dedent(expected) == drawn(trees_of(text, parents, schemas))


def test_example_4_2_has_a_tree_for_each_component_of_the_fracture() -> None:
    """Figure 4.3: V_{A1} sums B out of V_B, V'_C and V'_D are auxiliary; the tree of T is a path."""
    expected = """\
        V_A1(A1)
          V_B(A1, B)
            V'_C(A1, B)
              V_C(A1, B, C)
                R(A1, B, C)
            V'_D(A1, B)
              V_D(A1, B, D)
                S(A1, B, D)
        V_A2(A2)
          V_E(A2, E)
            T(A2, E)
        """
    text = "Q(B, C, D, E | A1, A2) = R(A1, B, C), S(A1, B, D), T(A2, E)"
    parents = {"A1": None, "B": "A1", "C": "B", "D": "B", "A2": None, "E": "A2"}
    schemas = {"R": ("A1", "B", "C"), "S": ("A1", "B", "D"), "T": ("A2", "E")}
    assert dedent(expected) == drawn(trees_of(text, parents, schemas))


def test_example_4_3_sums_one_variable_at_a_time_out_of_the_join() -> None:
    """Figure 4.4: V_B joins R and S; V_D, V_C and V_A follow from it without auxiliary views."""
    expected = """\
        V_A1(A1)
          V_C(A1, C)
            V_D(A1, C, D)
              V_B(A1, C, D, B)
                R(A1, B, C)
                S(A1, B, D)
        """
    text = "Q(D | A1, C) = R(A1, B, C), S(A1, B, D)"
    parents = {"A1": None, "C": "A1", "D": "C", "B": "D"}
    assert dedent(expected) == drawn(trees_of(text, parents, {"R": ("A1", "B", "C"), "S": ("A1", "B", "D")}))


def test_example_4_4_is_the_triangle_without_indicators() -> None:
    expected = """\
        V_A(A)
          V_B(A, B)
            V'_C(A, B)
              V_C(A, B, C)
                S(B, C)
                T(C, A)
            R(A, B)
        """
    assert dedent(expected) == drawn(trees_of(TRIANGLE, {"A": None, "B": "A", "C": "B"}, TRIANGLE_SCHEMAS))


def test_example_4_6_puts_the_indicator_of_R_under_C() -> None:
    expected = """\
        V_A(A)
          V_B(A, B)
            V'_C(A, B)
              V_C(A, B, C)
                S(B, C)
                T(C, A)
                ∃R(A, B)
            R(A, B)
        """
    found = trees_of(TRIANGLE, {"A": None, "B": "A", "C": "B"}, TRIANGLE_SCHEMAS, indicators=True)
    assert dedent(expected) == drawn(found)


def test_a_bound_root_gets_an_auxiliary_view_that_holds_the_answer() -> None:
    (tree,) = trees_of("Q(. | .) = R(A, B)", {"A": None, "B": "A"}, {"R": ("A", "B")})
    assert (tree.kind, tree.schema, tree.name) == ("auxiliary", (), "V'_A")


def test_a_free_root_needs_no_auxiliary_view() -> None:
    (tree,) = trees_of("Q(A | .) = R(A, B)", {"A": None, "B": "A"}, {"R": ("A", "B")})
    assert (tree.kind, tree.schema) == ("view", ("A",))


def test_an_atom_without_variables_is_a_tree_of_its_own() -> None:
    assert (
        drawn(trees_of("Q(. | .) = R(A), S()", {"A": None}, {"R": ("A",), "S": ()}))
        == "V'_A()\n  V_A(A)\n    R(A)\nS()\n"
    )


def test_atoms_below_a_node_leave_out_indicators() -> None:
    (tree,) = trees_of(TRIANGLE, {"A": None, "B": "A", "C": "B"}, TRIANGLE_SCHEMAS, indicators=True)
    (below,) = [node for node in tree.walk() if node.name == "V_C"]
    assert below.atoms == ("S", "T")
    assert below.indicators == (("R", ("A", "B")),)
    assert tree.atoms == ("S", "T", "R")


def test_an_indicator_lists_its_variables_as_its_atom_does() -> None:
    schemas = {**TRIANGLE_SCHEMAS, "R": ("B", "A")}
    (tree,) = trees_of(TRIANGLE, {"A": None, "B": "A", "C": "B"}, schemas, indicators=True)
    assert [str(node) for node in tree.walk() if node.kind == "indicator"] == ["∃R(B, A)"]


def test_an_indicator_is_a_sibling_too() -> None:
    """The view at B joins the indicator on A only, so that B is summed away first."""
    below = OrderNode("B", (), ("R",), frozenset("A"))
    order = VariableOrder((OrderNode("A", (below,), (), frozenset(), (Indicator("S", frozenset("A")),)),))
    trees = view_trees(order, cqap("Q(A | .) = R(A, B), S(A)"), {"R": ("A", "B"), "S": ("A",)})
    assert drawn(trees) == "V_A(A)\n  V'_B(A)\n    V_B(A, B)\n      R(A, B)\n  ∃S(A)\n"
