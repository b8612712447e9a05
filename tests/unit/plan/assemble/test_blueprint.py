"""What is alive in a blueprint, and how two blueprints become one."""

from __future__ import annotations

from ivme.plan.assemble.blueprint import (
    Blueprint,
    Definition,
    IndicatorLeaf,
    Iteration,
    Leaf,
    Liveness,
    Node,
    Propagation,
    Reading,
    Rule,
    StoredView,
    combine,
    liveness,
)
from ivme.plan.assemble.leaves import Leaves, leaves_of
from ivme.query.rule import parse_rule
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of

R, S, T = Leaf("R", ("A", "B")), Leaf("S", ("B", "C")), Leaf("T", ("C", "D"))
LOW = StoredView("low", ("B",), "view", ("S", "T"))
TOP = StoredView("top", ("A",), "view", ("R", "S", "T"))
DEAD = StoredView("dead", ("C",), "view", ("S", "T"))


def leaves() -> Leaves:
    query = parse_rule("Q(A) = R(A, B), S(B, C), T(C, D)")
    return leaves_of(query, fracture(cqap_of(query)))


def blueprint(reading: Reading, *views: StoredView) -> Blueprint:
    """`top` joins R with `low`, which joins S with T; `dead` joins S with T too."""
    rules = {
        "R": (Rule(TOP, R, ((LOW,),)),),
        "S": (Rule(LOW, S, ((T,),)), Rule(TOP, LOW, ((R,),)), Rule(DEAD, S, ((T,),))),
        "T": (Rule(LOW, T, ((S,),)), Rule(TOP, LOW, ((R,),)), Rule(DEAD, T, ((S,),))),
    }
    children: dict[StoredView, tuple[Node, ...]] = {LOW: (S, T), TOP: (R, LOW), DEAD: (S, T)}
    propagations = tuple(Propagation(leaf, rules[leaf.label]) for leaf in (R, S, T))
    return Blueprint(leaves(), propagations, tuple(Definition(view, children[view]) for view in views), reading)


def reading(node: Leaf | StoredView) -> Reading:
    return Reading((Iteration(node, node.schema),), (node,))


def test_a_view_that_nobody_reads_is_neither_stored_nor_computed() -> None:
    assert Liveness(frozenset({LOW, TOP}), frozenset({TOP, LOW, R, S, T})) == liveness(
        blueprint(reading(TOP), LOW, TOP, DEAD)
    )


def test_siblings_of_a_dead_rule_are_not_stored_for_it() -> None:
    """Only `low` is read: nothing needs R, and nothing needs `top`."""
    assert Liveness(frozenset({LOW}), frozenset({LOW, S, T})) == liveness(blueprint(reading(LOW), LOW, TOP, DEAD))


def test_a_plan_that_reads_a_leaf_only_needs_no_views() -> None:
    assert Liveness(frozenset(), frozenset({R})) == liveness(blueprint(reading(R), LOW, TOP, DEAD))


def test_the_node_of_an_ordered_group_is_read_too() -> None:
    groups = Reading((), (), (("min", "B", LOW),))
    assert LOW in liveness(blueprint(groups, LOW, TOP, DEAD)).stored


def test_a_view_between_is_computed_but_not_stored() -> None:
    """`middle` only passes the changes of R on to `top`: no rule joins it, no reader opens it."""
    middle = StoredView("middle", ("A",), "view", ("R",))
    rules = (Rule(middle, R, ()), Rule(TOP, middle, ()))
    definitions = (Definition(middle, (R,)), Definition(TOP, (middle,)))
    found = liveness(Blueprint(leaves(), (Propagation(R, rules),), definitions, reading(TOP)))
    assert Liveness(frozenset({middle, TOP}), frozenset({TOP})) == found


def test_what_a_build_joins_is_stored_even_if_no_rule_reads_it() -> None:
    """A lazy plan has no rules: its build scans or joins the children."""
    found = liveness(Blueprint(leaves(), (), (Definition(LOW, (S, T)), Definition(TOP, (R, LOW))), reading(TOP)))
    assert found == Liveness(frozenset({LOW, TOP}), frozenset({TOP, R, LOW, S, T}))


def test_a_view_whose_change_is_passed_on_is_alive_even_if_no_definition_reads_it() -> None:
    found = liveness(blueprint(reading(TOP), TOP))
    assert LOW in found.views
    passed_on = Propagation(S, (Rule(LOW, S, ()), Rule(TOP, LOW, ())))
    assert liveness(Blueprint(leaves(), (passed_on,), (), reading(TOP))) == Liveness(
        frozenset({LOW, TOP}), frozenset({TOP})
    )


def test_combining_merges_the_rules_of_a_use_and_keeps_the_first_reading() -> None:
    first, second = blueprint(reading(TOP), TOP), blueprint(Reading((), (), (("max", "B", LOW),)), LOW)
    both = combine(first, second)
    assert [propagation.use for propagation in both.propagations] == [R, S, T]
    assert first.propagations[1].rules + second.propagations[1].rules == both.propagations[1].rules
    assert [definition.view for definition in both.definitions] == [TOP, LOW]
    assert first.reading.iterations == both.reading.iterations
    assert both.reading.extremes == (("max", "B", LOW),)


def test_combining_puts_indicators_after_the_atom_they_project() -> None:
    """Presence is judged against old contents, and the atom's own change comes first."""
    indicator = IndicatorLeaf("R", ("A",))
    first = Blueprint(leaves(), (Propagation(R, ()), Propagation(T, ())), (), reading(R))
    second = Blueprint(leaves(), (Propagation(S, ()), Propagation(indicator, ())), (), reading(R))
    assert [R, indicator, S, T] == [propagation.use for propagation in combine(first, second).propagations]


def test_the_siblings_of_a_rule_are_those_of_all_its_stages() -> None:
    assert Rule(TOP, R, ((S,), (T,))).siblings == (S, T)
