"""The theorems of source 003 about structure, on random queries, against brute force."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ivme.plan.order.search import best_order
from ivme.plan.order.variable_order import acc_top, canonical, is_access_top, is_canonical, is_valid, order_of
from ivme.plan.order.widths import widths, with_indicators
from ivme.structure.classify import classify, is_free_connex, is_hierarchical
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph, gyo
from ivme.structure.width import edge_cover, edge_cover_number
from tests.brute_force import cover_number, every_elimination_order, every_forest, least_widths, order_widths
from tests.example_counts import examples


@st.composite
def cqaps(draw: st.DrawFn, variables: int = 7, edges: int = 6, tiers: str = "iobb") -> Cqap:
    """Queries with any access pattern; `tiers` are the kinds a variable may be of (s for ordered)."""
    subsets = [subset for size in range(5) for subset in combinations("ABCDEFG"[:variables], size)]
    count = draw(st.integers(1, edges))
    schemas = draw(st.lists(st.sampled_from(subsets), min_size=count, max_size=count))
    hypergraph = Hypergraph(tuple(Edge(f"R{i}", frozenset(schema)) for i, schema in enumerate(schemas)))
    kinds = {name: draw(st.sampled_from(tiers)) for name in sorted(hypergraph.vertices)}

    def of_kind(kind: str) -> frozenset[str]:
        return frozenset(name for name, given_kind in kinds.items() if given_kind == kind)

    return Cqap(hypergraph, of_kind("o"), of_kind("i"), of_kind("s"))


def renamed(query: Cqap, names: dict[str, str]) -> Cqap:
    def moved(variables: frozenset[str]) -> frozenset[str]:
        return frozenset(names[variable] for variable in variables)

    edges = tuple(Edge(edge.label, moved(edge.variables)) for edge in query.hypergraph.edges)
    return Cqap(Hypergraph(edges), moved(query.output), moved(query.input), moved(query.ordered))


@settings(deadline=None)
@given(cqaps(tiers="iosb"))
def test_the_chosen_order_is_valid_and_access_top_and_has_the_widths_it_claims(query: Cqap) -> None:
    whole = fracture(query).whole
    choice = best_order(whole)
    assert choice.exact
    assert is_valid(choice.order, whole)
    assert is_access_top(choice.order, whole)
    assert choice.order == with_indicators(order_of(whole, choice.order.parents()), whole)
    assert (choice.widths.dynamic, choice.widths.static) == order_widths(whole, choice.order.parents())


@settings(max_examples=examples(100), deadline=None)
@given(cqaps(variables=4, edges=5, tiers="iosbb"))
def test_the_best_order_is_the_best_of_all_forests(query: Cqap) -> None:
    chosen = best_order(query).widths
    assert (chosen.dynamic, chosen.static) == least_widths(query, every_forest(query.variables))


@settings(max_examples=examples(150), deadline=None)
@given(cqaps(variables=5, edges=6))
def test_the_best_order_of_a_fracture_is_the_best_of_all_elimination_orders(query: Cqap) -> None:
    whole = fracture(query).whole
    if len(whole.variables) <= 6:
        chosen = best_order(whole).widths
        assert (chosen.dynamic, chosen.static) == least_widths(whole, every_elimination_order(whole))


@pytest.mark.long
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cqaps(variables=5, edges=6, tiers="iosbb"))
def test_the_best_order_is_the_best_of_all_forests_at_length(query: Cqap) -> None:
    chosen = best_order(query).widths
    assert (chosen.dynamic, chosen.static) == least_widths(query, every_forest(query.variables))


@pytest.mark.long
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cqaps(variables=6, edges=7, tiers="iosbb"))
def test_the_best_order_is_the_best_of_all_elimination_orders_at_length(query: Cqap) -> None:
    chosen = best_order(query).widths
    assert (chosen.dynamic, chosen.static) == least_widths(query, every_elimination_order(query))


@settings(deadline=None)
@given(cqaps(variables=6), st.data())
def test_edge_cover_numbers_are_those_of_the_dual_and_the_cover_proves_them(query: Cqap, data: st.DataObject) -> None:
    variables = (
        frozenset(data.draw(st.sets(st.sampled_from(sorted(query.variables))))) if query.variables else frozenset()
    )
    number = edge_cover_number(query.hypergraph, variables)
    cover = edge_cover(query.hypergraph, variables)
    assert number == cover_number(query.hypergraph, variables)
    assert number == sum(cover.values())
    for variable in variables:
        assert sum(cover.get(label, Fraction(0)) for label in query.hypergraph.edges_of(variable)) >= 1


@settings(deadline=None)
@given(cqaps(tiers="iosb"))
def test_cqap0_is_dynamic_width_zero(query: Cqap) -> None:
    assert classify(query).cqap0 == (best_order(fracture(query).whole).widths.dynamic == 0)


@settings(max_examples=examples(300), deadline=None)
@given(cqaps(variables=6, edges=5))
def test_hierarchical_fractures_have_dynamic_width_w_or_one_less_and_cqap1_is_width_one(query: Cqap) -> None:
    whole = fracture(query).whole
    if is_hierarchical(whole.hypergraph) and whole.variables:
        found = best_order(whole).widths
        assert found.dynamic in (found.static, found.static - 1)
        assert classify(query).cqap1 == (found.dynamic == 1)


@st.composite
def hierarchical_cqaps(draw: st.DrawFn, tiers: str = "iobb") -> Cqap:
    """Queries whose atoms are paths from the root of a random tree, so that all of them are hierarchical."""
    names = "ABCDEF"[: draw(st.integers(1, 6))]
    above = {name: draw(st.sampled_from(names[:index])) if index else None for index, name in enumerate(names)}
    paths: dict[str, frozenset[str]] = {}
    for name in names:
        parent = above[name]
        paths[name] = frozenset({name}) | (paths[parent] if parent is not None else frozenset())
    leaves = [name for name in names if name not in above.values()]
    chosen = leaves + draw(st.lists(st.sampled_from(names), max_size=2))
    hypergraph = Hypergraph(tuple(Edge(f"R{i}", paths[name]) for i, name in enumerate(chosen)))
    kinds = {name: draw(st.sampled_from(tiers)) for name in names}
    pick = {kind: frozenset(name for name in names if kinds[name] == kind) for kind in "ios"}
    return Cqap(hypergraph, pick["o"], pick["i"], pick["s"])


@settings(max_examples=examples(150), deadline=None)
@given(hierarchical_cqaps(tiers="iosbb"))
def test_acc_top_of_a_canonical_order_has_the_least_widths(query: Cqap) -> None:
    order = canonical(query)
    assert is_canonical(order, query.hypergraph)
    lifted = with_indicators(acc_top(order, query), query)
    assert is_access_top(lifted, query)
    found = widths(lifted, query)
    if len(query.variables) <= 5:
        assert (found.dynamic, found.static) == least_widths(query, every_elimination_order(query))
    assert found == best_order(query).widths


@settings(max_examples=examples(300), deadline=None)
@given(hierarchical_cqaps(tiers="iosbb"))
def test_among_hierarchical_fractures_cqap1_is_dynamic_width_one(query: Cqap) -> None:
    whole = fracture(query).whole
    found = best_order(whole).widths
    assert classify(query).cqap1 == (found.dynamic == 1)
    assert found.dynamic in (found.static, found.static - 1)


@settings(deadline=None)
@given(cqaps(tiers="iosb"))
def test_fracturing_twice_changes_nothing(query: Cqap) -> None:
    once = fracture(query)
    assert fracture(once.whole).whole == once.whole
    assert fracture(once.whole).components == once.components


@settings(deadline=None)
@given(cqaps(tiers="iosb"))
def test_no_two_components_of_a_fracture_share_a_variable(query: Cqap) -> None:
    broken = fracture(query)
    seen: frozenset[str] = frozenset()
    for component in broken.components:
        assert not component.variables & seen
        seen |= component.variables
    assert seen == broken.whole.variables
    back = {variable: broken.original(variable) for variable in seen}
    for before, after in zip(query.hypergraph.edges, broken.whole.hypergraph.edges, strict=True):
        assert before == Edge(after.label, frozenset(back[variable] for variable in after.variables))


@settings(deadline=None)
@given(cqaps(tiers="iosb"), st.permutations("ABCDEFG"))
def test_renaming_variables_changes_neither_widths_nor_class(query: Cqap, names: list[str]) -> None:
    other = renamed(query, dict(zip("ABCDEFG", names, strict=True)))
    assert best_order(fracture(query).whole).widths == best_order(fracture(other).whole).widths
    assert replace(classify(query), obstacle=None) == replace(classify(other), obstacle=None)


@settings(deadline=None)
@given(cqaps(tiers="ob"))
def test_a_copy_of_a_variable_changes_no_width(query: Cqap) -> None:
    if query.variables:
        twin = min(query.variables)
        edges = tuple(
            Edge(e.label, e.variables | {"Z"} if twin in e.variables else e.variables) for e in query.hypergraph.edges
        )
        output = query.output | {"Z"} if twin in query.output else query.output
        assert best_order(query).widths == best_order(Cqap(Hypergraph(edges), output, frozenset())).widths


@settings(deadline=None)
@given(cqaps(tiers="ob"))
def test_a_join_tree_connects_the_edges_of_each_variable(query: Cqap) -> None:
    reduction = gyo(query.hypergraph)
    assert reduction.acyclic == (not reduction.residue)
    if reduction.acyclic:
        above: dict[str, str] = {}
        stack = [*reduction.join_trees]
        count = 0
        while stack:
            tree = stack.pop()
            count += 1
            above.update({child.label: tree.label for child in tree.children})
            stack.extend(tree.children)
        assert count == len(query.hypergraph.edges)
        for variable in query.variables:
            homes = query.hypergraph.edges_of(variable)
            assert sum(above.get(label) not in homes for label in homes) == 1


@settings(max_examples=examples(100), deadline=None)
@given(cqaps(variables=5, edges=5, tiers="iob"))
def test_free_connex_queries_are_those_with_an_access_top_order_of_static_width_one(query: Cqap) -> None:
    statics = [found[1] for p in every_elimination_order(query) if (found := order_widths(query, p)) is not None]
    assert is_free_connex(query) == (min(statics) <= 1)
