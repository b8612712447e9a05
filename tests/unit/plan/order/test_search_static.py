"""Static tables are constants to the search for orders: no update fixes their variables."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ivme.plan.order.search import best_order
from ivme.plan.order.variable_order import is_access_top, order_of
from ivme.plan.order.widths import widths, with_indicators
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of
from tests.brute_force import cqap, every_elimination_order
from tests.random_queries import queries

HARD = cqap("Q(. | .) = R(A), S(A, B), T(B)")


@pytest.mark.parametrize(("static", "dynamic"), [("", 1), ("R", 0), ("T", 0), ("S", 1), ("RT", 0), ("RST", 0)])
def test_a_query_that_is_hard_over_changing_tables_may_be_easy_given_static_ones(static: str, dynamic: int) -> None:
    """With R or T static the variable of the other goes on top; with S static one of R and T is still below."""
    assert best_order(HARD, static=frozenset(static)).widths.dynamic == dynamic


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_order_has_smaller_widths_given_the_static_tables(data: st.DataObject) -> None:
    """Against all orders, which elimination orders are up to their dependency sets."""
    whole = fracture(cqap_of(data.draw(queries(max_atoms=4, max_variables=4)))).whole
    assume(0 < len(whole.variables) <= 6)
    static = frozenset(edge.label for edge in whole.hypergraph.edges if data.draw(st.booleans()))
    found = best_order(whole, static=static)
    assert found.exact
    every = (order_of(whole, parents) for parents in every_elimination_order(whole))
    access_top = (with_indicators(order, whole) for order in every if is_access_top(order, whole))
    least = min(widths(order, whole, static) for order in access_top)
    assert least == found.widths


def test_with_all_tables_static_only_the_static_width_counts() -> None:
    """A cycle of six: the least static width is 2, and there is an order that has it."""
    cycle = cqap("Q(A, D | .) = R(A,B), S(B,C), T(C,D), U(D,E), V(E,F), W(F,A)")
    labels = frozenset(edge.label for edge in cycle.hypergraph.edges)
    found = best_order(cycle, static=labels).widths
    assert (found.dynamic, found.static) == (Fraction(0), Fraction(2))


def test_more_static_tables_never_make_it_harder() -> None:
    for first, second in product(("", "R", "S", "T"), repeat=2):
        fewer = best_order(HARD, static=frozenset(first)).widths.dynamic
        assert best_order(HARD, static=frozenset(first + second)).widths.dynamic <= fewer
