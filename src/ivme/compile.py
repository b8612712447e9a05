"""The compiler, from the text of a view to its explained plan. Read `compile_query` top to bottom.

Each stage is a pure function from one frozen value to the next; the rooms they live in are described in
docs/architecture.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ivme.budget import Budget, BudgetSpentError, limited, within
from ivme.errors import PlanError, QueryError
from ivme.plan.explain.closure import explain_closure
from ivme.plan.explain.explanation import Explanation, explain_choice
from ivme.plan.strategy.choose import choose
from ivme.plan.strategy.options import Options, read_options
from ivme.plan.strategy.plan import Check, Plan
from ivme.query.closures import closures_as_relations, is_closure
from ivme.query.failures import FailingJoin, as_count, failing_joins, without_failures
from ivme.query.model import ORDER_AGGREGATES, Query, Table
from ivme.query.names import check_text
from ivme.query.one_type import one_type_each
from ivme.query.rule import parse_rule
from ivme.structure.classify import Classification, classify
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of
from ivme.tables import Tables, read_tables

_SQL = re.compile(
    r"(?>\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*+(?:\(|(?:SELECT|WITH)\b"
    r"|(?:FROM|VALUES|TABLE|CREATE|INSERT|UPDATE|DELETE|MERGE|DROP|ALTER|EXPLAIN)\s+\w)",
    re.IGNORECASE | re.DOTALL,
)
"""How SQL starts, after comments, each read in one way only. A rule starts with a name and a parenthesis."""


def compile_query(text: str | Query, tables: Tables | None = None, **given: object) -> Explanation:
    """Compile a view: SQL, a rule, or a `Query`, over declared tables or those that the text implies.

    Everything a user may get wrong raises an `IvmeError`.
    """
    return compile_plan(parse(text, read_tables(tables)), **given)[0]


def compile_plan(query: Query, **given: object) -> tuple[Explanation, Plan | None]:
    """The explanation of a parsed query, and the plan that it explains, if there is one."""
    options = read_options(given)
    return _compiled(promised(query, **given), options, checked=options.semantics != "ring")


def compile_unchecked(query: Query, **given: object) -> tuple[Explanation, Plan | None]:
    """A plan that computes expressions for all rows that pass the predicate of their own atom.

    Where multiplicities may cancel, as those of ring semantics do, no check can count on seeing a row.
    """
    return _compiled(promised(query, **given), read_options(given), checked=False)


def _compiled(query: Query, options: Options, *, checked: bool) -> tuple[Explanation, Plan | None]:
    try:
        with limited(options.planning_seconds) as budget:
            return _planned(query, options, budget, checked=checked)
    except BudgetSpentError:
        raise PlanError(
            f"no plan for the {len(query.atoms)} atoms of the query was found within "
            f"planning_seconds={options.planning_seconds:g}; split it into views, each over some of the tables, or "
            "give it more time"
        ) from None
    except RecursionError:
        raise PlanError(
            f"the query is too large to be planned: its {len(query.atoms)} atoms make too deep a tree; "
            "split it into views, each over some of the tables"
        ) from None


def promised(query: Query, **given: object) -> Query:
    """The query as it is planned: under the semantics that the options ask for, over tables that promise what they say,
    and with closures as relations."""
    options = read_options(given)
    return closures_as_relations(with_promises(as_asked(query, options.semantics), options), options.graph)


def _planned(query: Query, options: Options, budget: Budget, *, checked: bool) -> tuple[Explanation, Plan | None]:
    """The stages after parsing; what they recurse over is as deep as the variable order."""
    if is_closure(query):
        return explain_closure(query, options), None
    query = one_type_each(query)
    plain_structure = cqap_of(query)
    broken = fracture(plain_structure)
    plain = classify(plain_structure)
    classification = classify_ordered(query, plain)

    choice = choose(without_failures(query) if checked else query, classification, options)
    plan = choice.plan
    if plan is not None and checked:
        plan = replace(plan, checks=_checks(query, plan, options))
    choice = replace(choice, plan=plan, cut=budget.cut)
    return explain_choice(query, broken, classification, plain, choice, options), choice.plan


def _checks(query: Query, plan: Plan, options: Options) -> tuple[Check, ...]:
    """The plans of what must have no row, since rows for which an expression fails are left out of the view.

    They have a budget of their own, as much as the view's: a view that took all of it would else be refused.
    """
    joins, found = failing_joins(query), []
    with limited(options.planning_seconds):
        for number, each in enumerate(joins):
            with within(1 / (len(joins) - number)):
                found.append(_check(each, plan, options))
    return tuple(found)


def _check(failing: FailingJoin, plan: Plan, options: Options) -> Check:
    """A plan like the view's, with which it shares the maps of all other atoms; the chooser's for a count where those
    are split, or the view has parameters, whatever was asked for the view."""
    wanted, strategy = failing.query, plan.strategy
    if plan.blueprint.splits or plan.blueprint.leaves.inputs:
        wanted, strategy = as_count(failing.query), "recompute" if plan.program.lazy else ""
    chosen = Options(strategy or None, planning_seconds=options.planning_seconds)
    found = choose(wanted, classify(cqap_of(wanted)), chosen).plan
    assert found is not None
    return Check(wanted, failing.atoms, found.strategy, found.update, found.blueprint, found.tuning)


def parse(text: str | Query, tables: tuple[Table, ...], *, is_stored: bool = False) -> Query:
    """The query that a text says, in whichever of the two notations; a `Query` is taken as it is.

    A stored one was read before, and is not refused for its length or its characters.

    >>> str(parse("-- flights by airline\\nSELECT f.no FROM flights f WHERE f.airline = :airline", ()))
    'Q(no | airline) = flights(no, airline)'
    """
    if isinstance(text, Query):
        return text.with_tables(tables)
    if not isinstance(text, str):
        raise QueryError(f"a query must be SQL, a rule or a Query; it is a {type(text).__name__}")
    if not is_stored:
        check_text(text)
    if is_sql(text):
        from ivme.query.sql import parse_sql

        return parse_sql(text, tables)
    return parse_rule(text, tables)


def is_sql(text: str) -> bool:
    """Whether a text is meant as SQL: it starts with SELECT, WITH, ( or another statement's first word."""
    return _SQL.match(text) is not None


def as_asked(query: Query, semantics: object) -> Query:
    """The query under the semantics asked for: as a set, each row comes once. Groups with aggregates do so anyway."""
    return replace(query, distinct=True) if semantics == "set" and not query.aggregates else query


def with_promises(query: Query, options: Options) -> Query:
    """The query over tables that promise what the options say about them."""
    append_only = _named(query, "append_only", options.append_only)
    static = _named(query, "static", options.static)
    if isinstance(options.epsilon, tuple):
        _named(query, "epsilon", (name for name, _ in options.epsilon))
    return query.with_tables(
        replace(
            table,
            append_only=table.append_only or table.name in append_only,
            static=table.static or table.name in static,
        )
        for table in query.tables
    )


def _named(query: Query, option: str, names: Iterable[str]) -> set[str]:
    """The query's tables of these names, whatever their case."""
    known = {table.name.lower(): table.name for table in query.tables}
    found = set()
    for name in names:
        if name.lower() not in known:
            listed = ", ".join(known.values())
            raise PlanError(f"option {option} names {name}, which is no table of the query; its tables are {listed}")
        found.add(known[name.lower()])
    return found


def classify_ordered(query: Query, plain: Classification) -> Classification:
    """The classification with the variables of MIN, MAX and COUNT DISTINCT as free.

    Each of them has a view tree of its own; the class of the query is that of the hardest.
    """
    variables = dict.fromkeys(a.variable for a in query.aggregates if a.function in ORDER_AGGREGATES)
    ordered = [variable for variable in variables if variable is not None and variable not in query.free]
    found = [classify(cqap_of(query, frozenset({variable}))) for variable in ordered]
    return max(found, key=lambda each: (not each.cqap0, not each.cqap1, not each.hierarchical_fracture), default=plain)
