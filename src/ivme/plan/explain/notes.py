"""What a reader of an explanation should know besides the bounds."""

from __future__ import annotations

from collections.abc import Iterator

from ivme.plan.assemble.plan import Plan
from ivme.plan.explain.lower_bound import unclaimed
from ivme.plan.ir.exponent import bound
from ivme.plan.strategy.choose import Choice, is_linear_space
from ivme.plan.strategy.options import Options
from ivme.query.model import ORDER_AGGREGATES, Aggregate, Query
from ivme.structure.classify import Classification


def notes(
    query: Query, classification: Classification, plain: Classification, choice: Choice, options: Options
) -> tuple[str, ...]:
    """The notes, in the order of their weight; `plain` is the classification without ordered variables."""
    found = [
        *_optimality(query, classification, choice),
        *_closures(query),
        *unclaimed(query, plain),
        *_tables(query, choice),
        *_aggregates(query, classification, plain, choice),
        *_semantics(options, choice),
        *(choice.plan.notes if choice.plan is not None else ()),
        *_checks(query, choice),
        *_comparison(query, choice),
        *_budget(choice, options),
        *_without_effect(query, choice, options),
    ]
    return tuple(dict.fromkeys(found))


def _optimality(query: Query, classification: Classification, choice: Choice) -> Iterator[str]:
    if choice.plan is None:
        return
    if classification.cqap0 and choice.plan.update == choice.plan.delay == bound(0):
        yield "O(1) update time and delay are optimal, so there is no lower bound to state"
    elif choice.plan.update == choice.plan.delay == bound(0) and any(table.static for table in query.tables):
        listed = ", ".join(table.name for table in query.tables if table.static)
        yield f"with {listed} static, hence a constant, the query is in CQAP0: O(1) update time and delay"
    if choice.plan.blueprint.lazy:
        yield "nothing but the tables is maintained: the first read after a change rebuilds all views"
    if not any(atom.variables for atom in query.atoms):
        yield "the query has no variables: its answer is a product of counts"


def _closures(query: Query) -> Iterator[str]:
    for table in query.tables:
        if table.closure_of is not None:
            yield (
                f"{table.name} is maintained by strategy `closure`, apart from this view, and its changes reach the "
                "view in the same batch. N counts its pairs, and the update bound is for each pair that is added or "
                "removed: one edge may change many"
            )


def _tables(query: Query, choice: Choice) -> Iterator[str]:
    static = ", ".join(table.name for table in query.tables if table.static)
    if static:
        yield f"δ and the update bound leave out {static}: a static table does not change"
    growing = ", ".join(table.name for table in query.tables if table.append_only)
    if growing and (choice.plan is None or choice.plan.marks is None or not choice.plan.update.amortised):
        yield f"the plan gains nothing from {growing} being append-only"
    elif growing:
        yield f"amortised over the inserts into {growing}, append-only: a tuple waits once for each of its partners"
    for cost in () if choice.plan is None else choice.plan.updates:
        if cost.referenced_by:
            listed = ", ".join(cost.referenced_by)
            yield (
                f"a change of {cost.table} costs {cost.update}, if its rows come before and go after the rows of "
                f"{listed} that reference them; a change of a referenced row in place costs {cost.in_place}"
            )


def _aggregates(query: Query, classification: Classification, plain: Classification, choice: Choice) -> Iterator[str]:
    ordered = [a for a in query.aggregates if a.function in ORDER_AGGREGATES and a.variable not in query.free]
    if not ordered:
        return
    listed = ", ".join(map(str, ordered))
    variables = ", ".join(dict.fromkeys(str(a.variable) for a in ordered))
    verb = "is not a sum in a ring" if len(ordered) == 1 else "are not sums in a ring"
    count = "count" if "," in variables else "counts"
    yield f"{listed} {verb}: {variables} {count} as free, below the groups, when widths are computed"
    if choice.plan is not None and choice.plan.blueprint.gathered:
        yield f"{listed}: a request finds all values of {variables} in its groups and sorts them; none are indexed"
    else:
        yield from _indexed(ordered)
    if plain.query_class != classification.query_class:
        yield f"without {listed} the view would be in class {plain.query_class}"


def _indexed(ordered: list[Aggregate]) -> Iterator[str]:
    """What is read of the index of a group's values."""
    folded = ", ".join(str(a) for a in ordered if a.definition.reads == "values")
    if folded:
        yield f"{folded}: all values of a group are read whenever its row is, in time linear in the group"
    ranked = ", ".join(str(a) for a in ordered if a.definition.reads == "percentile")
    if ranked:
        yield f"{ranked}: found by position in an ordered index of the group: O(log N) an update, O(log N) a row"


def _semantics(options: Options, choice: Choice) -> Iterator[str]:
    if options.semantics == "set" and choice.plan is not None and choice.plan.marks is not None:
        yield "set semantics: each row comes once; only whether it exists is maintained"
    elif options.semantics == "set":
        yield "set semantics: a row comes once; multiplicities are maintained all the same, because deletes need them"
    elif options.semantics == "ring":
        yield "ring semantics: multiplicities may be negative, and rows whose multiplicity is zero are absent"


def _checks(query: Query, choice: Choice) -> Iterator[str]:
    for check in () if choice.plan is None else choice.plan.checks:
        listed = ", ".join(dict.fromkeys(query.atoms[number].relation for number in check.failing))
        when = "a read" if choice.plan is not None and choice.plan.blueprint.lazy else "a batch"
        yield (
            f"an expression over {listed} may fail: rows for which it does are left out, and {when} that would show "
            f"one is refused; the check is maintained beside the view (`{check.strategy}`, update {check.update})"
        )


def _comparison(query: Query, choice: Choice) -> Iterator[str]:
    if not choice.compared:
        yield f"other strategies were not compared: the query has {len(query.atoms)} atoms"


def _budget(choice: Choice, options: Options) -> Iterator[str]:
    if choice.cut:
        yield (
            f"planning stopped at its budget, planning_seconds={options.planning_seconds:g}: the plan may not be the "
            "best known"
        )


def _without_effect(query: Query, choice: Choice, options: Options) -> Iterator[str]:
    """Options for heavy and light parts, where the plan has none, and for closures, where there are none."""
    if options.space == "linear" and choice.plan is not None and not is_linear_space(choice.plan, options):
        yield "space='linear' has no effect: no plan of this view takes linear space"
    if options.graph != Options().graph and not query.has_closures:
        yield f"graph={options.graph!r} has no effect: the view has no closure"
    if choice.plan is not None and choice.plan.blueprint.splits:
        yield from _parts_without_effect(query, choice.plan, options)
        return
    asked = without_parts(options)
    if asked:
        verb = "has" if len(asked) == 1 else "have"
        yield f"{', '.join(asked)} {verb} no effect on this plan: it has no heavy and light parts"


def without_parts(options: Options) -> list[str]:
    """The options that a plan without heavy and light parts does nothing with."""
    given = (
        ("ε", options.epsilon is not None),
        (f"space={options.space!r}", options.space == "source"),
        (f"rebalance={options.rebalance!r}", options.rebalance != Options().rebalance),
        ("workload", options.workload is not None),
    )
    return [name for name, is_given in given if is_given]


def _parts_without_effect(query: Query, plan: Plan, options: Options) -> Iterator[str]:
    """What a plan with heavy and light parts does nothing with, or does in another way than by default."""
    if options.space == "source" and query.free:
        yield f"space={options.space!r} has no effect: only views without free variables have such a choice"
    if options.workload is not None and options.epsilon != "auto":
        yield "workload has no effect: it chooses ε, which was not left to it; give epsilon='auto'"
    if plan.blueprint.gradual:
        yield "rebalance='deamortised' splits each relation on its own, in the space of space='source'"
    if isinstance(options.epsilon, tuple):
        split = {source.atom.relation.lower() for _, source in plan.blueprint.leaves.sources if source.part}
        unsplit = ", ".join(name for name, _ in options.epsilon if name.lower() not in split)
        if unsplit:
            yield f"ε of {unsplit} has no effect: the plan does not split it"
