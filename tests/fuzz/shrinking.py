"""Makes a failing case small: takes parts away as long as the same kind of difference stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from time import process_time
from typing import Any, TypeVar

from tests.fuzz.cases import AnyCase, TableSpec
from tests.fuzz.expressions import Expr
from tests.fuzz.steps import Change, CreateView, Op
from tests.fuzz.values import Column
from tests.fuzz.views import ViewSpec

T = TypeVar("T")
C = TypeVar("C", bound=AnyCase)
Pass = Callable[[Any], Iterator[Any]]


def shrink(case: C, fails: Callable[[C], bool], seconds: float = 60.0, passes: Sequence[Pass] = ()) -> C:
    """The smallest case that still fails, as far as taking away parts finds it in the CPU time that is given.

    Each pass tries all its candidates from the large to the small, and starts again after each success; passes go
    around until none of them finds anything.
    """
    end = process_time() + seconds
    changed = True
    while changed and process_time() < end:
        changed = False
        for candidates in passes or _PASSES:
            case, found = _exhaust(case, candidates, fails, end)
            changed = changed or found
    return case


def _exhaust(case: C, candidates: Pass, fails: Callable[[C], bool], end: float) -> tuple[C, bool]:
    found = False
    progress = True
    while progress and process_time() < end:
        progress = False
        for candidate in candidates(case):
            if process_time() >= end:
                break
            if candidate != case and fails(candidate):
                case, progress, found = candidate, True, True
                break
    return case, found


def _without(sequence: Sequence[T]) -> Iterator[tuple[T, ...]]:
    """The sequence without some of it: halves first, then quarters, down to single elements."""
    size = len(sequence)
    while size:
        size = max(size // 2, 1) if size > 1 else 0
        if not size:
            break
        for start in range(0, len(sequence), size):
            yield tuple(sequence[:start]) + tuple(sequence[start + size :])
        if size == 1:
            break


def _fewer(sequence: Sequence[T]) -> Iterator[tuple[T, ...]]:
    yield from _without(sequence) if len(sequence) > 1 else iter([()] if sequence else [])


def _steps(case: AnyCase) -> Iterator[AnyCase]:
    for steps in _fewer(case.steps):
        yield replace(case, steps=steps)


def _engines(case: AnyCase) -> Iterator[AnyCase]:
    if len(case.engines) > 1:
        for engine in case.engines:
            yield replace(case, engines=(engine,))
    if case.engines not in (("native",), ("pure",)):
        yield replace(case, engines=("native",))
        yield replace(case, engines=("pure",))
    if case.few != 16:
        yield replace(case, few=16)


def _views(case: AnyCase) -> Iterator[AnyCase]:
    """Without a view, and its steps; views that read it are not made then."""
    for view in case.views:
        views = tuple(other for other in case.views if other is not view)
        steps = tuple(step for step in case.steps if getattr(step, "name", None) != view.name)
        yield replace(case, views=views, steps=steps)


def _tables(case: AnyCase) -> Iterator[AnyCase]:
    used = {relation for view in case.views for relation in view.relations}
    for table in case.tables:
        if table.name in used:
            continue
        steps = tuple(_map_ops(step, partial(_unless_on, table.name)) for step in case.steps)
        yield replace(case, tables=tuple(t for t in case.tables if t is not table), steps=tuple(s for s in steps if s))


def _unless_on(table: str, op: Op) -> Op | None:
    return None if op.table == table else op


def _map_ops(step: Any, change: Callable[[Op], Op | None]) -> Any:
    if not isinstance(step, Change):
        return step
    ops = tuple(op for op in map(change, step.ops) if op is not None)
    return replace(step, ops=ops) if ops else None


def _ops(case: AnyCase) -> Iterator[AnyCase]:
    for i, step in enumerate(case.steps):
        if not isinstance(step, Change):
            continue
        for ops in _without(step.ops) if len(step.ops) > 1 else ():
            yield _with_step(case, i, replace(step, ops=ops))
        for j, op in enumerate(step.ops):
            for kept in _fewer(range(len(op.rows))):
                rows = tuple(op.rows[k] for k in kept)
                smaller = replace(op, rows=rows, weights=tuple(op.weights[k] for k in kept))
                yield _with_step(case, i, replace(step, ops=(*step.ops[:j], smaller, *step.ops[j + 1 :])))
            if op.form != "list":
                plain = replace(op, form="list")
                yield _with_step(case, i, replace(step, ops=(*step.ops[:j], plain, *step.ops[j + 1 :])))


def _with_step(case: AnyCase, place: int, step: Any) -> AnyCase:
    return replace(case, steps=(*case.steps[:place], step, *case.steps[place + 1 :]))


def _parts(case: AnyCase) -> Iterator[AnyCase]:
    """Views with less in them."""
    for i, view in enumerate(case.views):
        for smaller in filter(attrgetter("is_guarded"), _smaller_views(view)):
            yield replace(case, views=(*case.views[:i], smaller, *case.views[i + 1 :]))


def _smaller_views(view: ViewSpec) -> Iterator[ViewSpec]:
    if view.options:
        yield replace(view, options=())
        for i in range(len(view.options)):
            yield replace(view, options=view.options[:i] + view.options[i + 1 :])
    for source in view.sources[1:] if len(view.sources) > 1 else ():
        yield from _without_source(view, source.alias)
    for conditions in _fewer(view.conditions):
        yield replace(view, conditions=conditions)
    for parameters in _fewer(view.parameters):
        yield replace(view, parameters=parameters)
    if len(view.items) > 1 and not view.star:
        for items in _without(view.items):
            yield replace(view, items=items)
    if view.group:
        for group in _without(view.group) if len(view.group) > 1 else ():
            shown = {expression.spark for _, expression in group}
            if all(item.function or item.expression is None or item.expression.spark in shown for item in view.items):
                yield replace(view, group=group)
        if all(item.function for item in view.items):
            yield replace(view, group=None)
    if view.distinct:
        yield replace(view, distinct=False)
    yield from _simpler_expressions(view)


def _without_source(view: ViewSpec, alias: str) -> Iterator[ViewSpec]:
    items = tuple(item for item in view.items if item.alias != alias or item.expression is None)
    group = None if view.group is None else tuple(each for each in view.group if each[0] != alias)
    if items and not view.star and not (view.group and not group and not all(item.function for item in items)):
        yield replace(
            view,
            sources=tuple(source for source in view.sources if source.alias != alias),
            items=items,
            group=group or None,
            conditions=tuple(c for c in view.conditions if alias not in c.aliases),
            parameters=tuple(p for p in view.parameters if p.alias != alias),
        )


def _simpler_expressions(view: ViewSpec) -> Iterator[ViewSpec]:
    for i, condition in enumerate(view.conditions):
        for simpler in condition.expression.simpler:
            changed = replace(condition, expression=simpler)
            yield replace(view, conditions=(*view.conditions[:i], changed, *view.conditions[i + 1 :]))
    for expression in {item.expression for item in view.items if item.expression is not None}:
        for simpler in expression.simpler:
            yield _replaced(view, expression, simpler)


def _replaced(view: ViewSpec, old: Expr, new: Expr) -> ViewSpec:
    items = tuple(replace(i, expression=new) if i.expression == old else i for i in view.items)
    group = None if view.group is None else tuple((a, new if e == old else e) for a, e in view.group)
    return replace(view, items=items, group=group)


def _columns(case: AnyCase) -> Iterator[AnyCase]:
    """Without a column that no view reads."""
    text = " ".join(f"{view.text()} " for view in case.views)
    starred = {source.relation for view in case.views if view.star for source in view.sources}
    for table in case.tables:
        for place, column in enumerate(table.columns):
            if len(table.columns) > 1 and not _is_read(column, text) and table.name not in starred:
                yield without_column(case, table, place)


def _is_read(column: Column, text: str) -> bool:
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    return any(word == column.name or word.endswith(f".{column.name}") for word in words)


def without_column(case: AnyCase, table: TableSpec, place: int) -> AnyCase:
    def cut(op: Op) -> Op:
        if op.table != table.name:
            return op
        return replace(op, rows=tuple(row[:place] + row[place + 1 :] for row in op.rows))

    columns = table.columns[:place] + table.columns[place + 1 :]
    key = tuple(name for name in table.primary_key if name != table.columns[place].name)
    smaller = replace(table, columns=columns, primary_key=key)
    tables = tuple(smaller if other is table else other for other in case.tables)
    return replace(case, tables=tables, steps=tuple(_map_ops(step, cut) for step in case.steps))


def _values(case: AnyCase) -> Iterator[AnyCase]:
    """One value for another: NULLs and large values become small ones; multiplicities become 1; promises go."""
    for table in case.tables:
        if table.append_only or table.static or table.primary_key:
            plain = replace(table, append_only=False, static=False, primary_key=())
            yield replace(case, tables=tuple(plain if other is table else other for other in case.tables))


def _early_views(case: AnyCase) -> Iterator[AnyCase]:
    """Views that are made before everything else, where that fails, too."""
    made = [step for step in case.steps if isinstance(step, CreateView)]
    rest = [step for step in case.steps if not isinstance(step, CreateView)]
    if (*made, *rest) != case.steps:
        yield replace(case, steps=(*made, *rest))


STREAM_PASSES: tuple[Pass, ...] = (_steps, _engines, _views, _tables, _ops, _values, _early_views)
"""The passes that know nothing of a view but its name and what it reads."""

_PASSES: tuple[Pass, ...] = (*STREAM_PASSES[:5], _parts, _columns, *STREAM_PASSES[5:])
