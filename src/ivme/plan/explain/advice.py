"""What to declare so that updates cost less: a primary key, or a foreign key.

Each piece of advice has been tried: a key by the widths that the query would have with it, which takes some
milliseconds, and foreign keys by the same program under their promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from ivme.budget import BudgetSpentError
from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.update_costs import table_costs
from ivme.plan.ir.exponent import bound
from ivme.plan.order.search import best_order
from ivme.plan.order.widths import widths
from ivme.query.expression import ColumnRef
from ivme.query.failures import without_failures
from ivme.query.model import Atom, ForeignKey, Query, Table
from ivme.structure.analysis import Analysis, analyse

_MOST_ATOMS = 6
_MOST_TRIALS = 4
_BUDGET = 20_000
"""How much the search for an order may look at: advice is not worth more."""


def advice(explained: Query, plan: Plan) -> Iterator[str]:
    """What would make updates of a plan cheaper."""
    query = without_failures(explained)
    if plan.blueprint.lazy:
        return
    epsilon = plan.epsilon or Fraction(1, 2)
    now = {cost.table: cost.update.exponent.at(epsilon) for cost in plan.updates}
    if plan.strategy == "request":
        now = dict.fromkeys(now, plan.delay.exponent.at(epsilon))
    if not any(now.values()):
        return
    yield from _foreign_keys(query, plan)
    try:
        yield from _keys(analyse(query), now, is_kept=plan.strategy != "request")
    except BudgetSpentError:
        return


_Keys = tuple[tuple[Table, tuple[str, ...]], ...]
"""Keys that tables do not have."""


def _keys(analysis: Analysis, now: dict[str, Fraction], *, is_kept: bool) -> Iterator[str]:
    """The first keys that make the worst table cheaper, or one table and none dearer: several together, or one.

    A view that is not maintained costs `now` at each request; with keys, view trees might keep it for no more.
    """
    query = analysis.query
    if len(query.atoms) > _MOST_ATOMS:
        return
    found = [*_candidates(query)]
    likely: dict[str, tuple[Table, tuple[str, ...]]] = {}
    for table, key, begins in found:
        if begins:
            likely.setdefault(table.name, (table, key))
    together: list[_Keys] = [tuple(likely.values())] if 1 < len(likely) <= _MOST_TRIALS else []
    for keys in [*together, *(((table, key),) for table, key, _ in found[:_MOST_TRIALS])]:
        then = _exponents(analysis, keys)
        lowered = [name for name in now if then[name] < now[name]]
        if not is_kept:
            if lowered and max(then.values()) <= max(now.values()):
                free = [name for name in lowered if not then[name]]
                yield _told(_needed(analysis, keys, then), "keeping the view", max(then.values()), free, "takes")
                return
            continue
        if max(then.values()) < max(now.values()):
            yield _told(_needed(analysis, keys, then), "this", max(then.values()), [n for n in lowered if not then[n]])
            return
        if lowered and all(then[name] <= now[name] for name in now):
            reached = max(then[name] for name in lowered)
            yield _told(_needed(analysis, keys, then), f"a change of {', '.join(lowered)}", reached, [])
            return


def _needed(analysis: Analysis, keys: _Keys, then: dict[str, Fraction]) -> _Keys:
    """The keys without those that change nothing."""
    for each in keys if len(keys) > 1 else ():
        rest = tuple(other for other in keys if other != each)
        keys = rest if rest and _exponents(analysis, rest) == then else keys
    return keys


def _told(keys: _Keys, subject: str, reached: Fraction, free: list[str], verb: str = "becomes") -> str:
    listed = [f"{t.name}.{key[0]}" if len(key) == 1 else f"({', '.join(key)}) of {t.name}" for t, key in keys]
    if len(listed) == 1:
        declared = f"{listed[0]} as a primary key, if it is one"
    else:
        declared = f"{', '.join(listed[:-1])} and {listed[-1]} as primary keys, if they are"
    further = f", and a change of {', '.join(free)} {bound(0)}" if free and reached else ""
    return f"declare {declared}, and {subject} {verb} {bound(reached)}{further}"


def _candidates(query: Query) -> Iterator[tuple[Table, tuple[str, ...], bool]]:
    """Tables without keys, the columns that they join on, and whether they begin with these columns, as tables with
    such a key mostly do: they come first."""
    found: dict[tuple[str, tuple[str, ...]], int] = {}
    for atom in query.atoms:
        table = query.table(atom.relation)
        if table.primary_key is not None or table.keys or table.inferred or atom.closure:
            continue
        for other in query.atoms:
            shared = set(atom.variables) & set(other.variables) if other is not atom else set()
            key = _columns(atom, shared)
            if key and len(key) < len(table.columns) and not _is_keyed(query, other, shared):
                begins = key == tuple(name.lower() for name in table.column_names[: len(key)])
                found.setdefault((table.name, key), 0 if begins else 1)
    for name, key in sorted(found, key=lambda each: (found[each], query.table(each[0]).rows or 0)):
        yield query.table(name), key, not found[name, key]


def _is_keyed(query: Query, atom: Atom, variables: set[str]) -> bool:
    """Whether some variables of an atom are a key of its table: what is joined with them references it."""
    table = query.table(atom.relation)
    mine = {name.lower() for name in _columns(atom, variables)}
    keys = (*table.keys, *table.unique, *([] if table.primary_key is None else [table.primary_key]))
    return any(mine.issuperset(name.lower() for name in key) for key in keys)


def _columns(atom: Atom, variables: set[str]) -> tuple[str, ...]:
    """The columns that some variables of an atom stand for; empty if one is computed."""
    named = {t: c.name.lower() for c, t in zip(atom.columns, atom.terms, strict=True) if isinstance(c, ColumnRef)}
    return tuple(named[v] for v in atom.variables if v in variables) if variables <= set(named) else ()


def _exponents(analysis: Analysis, keys: _Keys) -> dict[str, Fraction]:
    """The exponent of a changed row for each table that is not static, by the best order under these keys."""
    query = analysis.query.with_tables(replace(table, primary_key=key) for table, key in keys)
    found = {table.name: Fraction(0) for table in query.tables if not table.static}
    for shape in analysis.shapes:
        leaves = leaves_of(query, shape.fracture)
        whole, dependencies = shape.fracture.whole, leaves.dependencies
        names = {label: source.atom.relation for label, source in leaves.sources}
        static = frozenset(label for label, name in names.items() if name not in found)
        order = best_order(whole, budget=_BUDGET, static=static, dependencies=dependencies).order
        for name in found:
            others = frozenset(label for label, other in names.items() if other != name)
            found[name] = max(found[name], widths(order, whole, others, dependencies).dynamic)
    return found


def _foreign_keys(query: Query, plan: Plan) -> Iterator[str]:
    """The references that would make changes of a table cheaper, if its rows come first and go last."""
    costly = {
        cost.table: cost for cost in plan.updates if cost.update.exponent.at(Fraction(0)) and not cost.referenced_by
    }
    for name in costly:
        target = query.table(name)
        added = {table.name: (*table.references, *_joined_keys(query, table, target)) for table in query.tables}
        promising = query.with_tables(replace(t, references=added[t.name]) for t in query.tables)
        then = next(cost for cost in table_costs(plan.program, promising) if cost.table == name)
        if then.referenced_by and then.update.exponent.at(Fraction(0)) < costly[name].update.exponent.at(Fraction(0)):
            listed = ", ".join(
                _declared(table, target, query) for table in promising.tables if table.name in then.referenced_by
            )
            yield (
                f"declare {listed}, and a change of {name} becomes {then.update}, if its rows come before and go after "
                "the rows that reference them"
            )


def _declared(table: Table, target: Table, query: Query) -> str:
    known = query.table(table.name).references
    new = [each for each in table.references if each not in known and each.table == target.name]
    entries = ", ".join(f"'{', '.join(each.columns)}': '{each.table}'" for each in new)
    return f"references={{{entries}}} of {table.name}"


def _joined_keys(query: Query, table: Table, target: Table) -> Iterator[ForeignKey]:
    """The columns of a table that are joined with the primary key of another."""
    if target.primary_key is None or table.name == target.name:
        return
    found: dict[ForeignKey, None] = {}
    for atom in (each for each in query.atoms if each.relation == target.name):
        key = {c.name.lower(): t for c, t in zip(atom.columns, atom.terms, strict=True) if isinstance(c, ColumnRef)}
        wanted = [key.get(name.lower()) for name in target.primary_key]
        for other in (each for each in query.atoms if each.relation == table.name):
            mine = {t: c.name for c, t in zip(other.columns, other.terms, strict=True) if isinstance(c, ColumnRef)}
            if all(isinstance(variable, str) and variable in mine for variable in wanted):
                found[ForeignKey(tuple(mine[v] for v in wanted if v is not None), target.name)] = None
    yield from found
