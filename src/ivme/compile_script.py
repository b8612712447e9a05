"""A SELECT as several blocks: each is compiled over the tables and the blocks before it, and the last is the view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from ivme.compile import CompiledView, ParsedView, Request, TypedView
from ivme.compiled_blocks import CompiledPairing, CompiledUnion
from ivme.errors import PlanError, UnknownNameError, UnsupportedError
from ivme.plan.explain.block_costs import Reached, changed_rows
from ivme.plan.explain.blocks import explain_blocks
from ivme.plan.explain.explanation import BlockExplanation
from ivme.plan.explain.order import explain_order, is_ordered_when_read
from ivme.plan.explain.pairing import explain_pairing, partners
from ivme.plan.explain.union import explain_union
from ivme.plan.ir.exponent import bound
from ivme.query.model import Query, Table, check_head
from ivme.query.order import HIDDEN, Order
from ivme.query.pairing import Pairing, PairingTypeError, typed_pairing
from ivme.query.parameter_checks import parameter_notes, refuse_misfits
from ivme.query.parse import is_sql
from ivme.query.read_select import ReadSelect
from ivme.query.refusals import with_all_others
from ivme.query.rewrite.clock import with_clock_table
from ivme.query.shape import added_columns, range_shape, shape_of
from ivme.query.sql_script import SqlScript, read_script, script_of
from ivme.query.typed import typed
from ivme.query.union import Union, UnionTypeError, few_rows_keys, typed_union

Block = CompiledView | CompiledUnion | CompiledPairing


def compile_script(request: Request, compile_block: Callable[[Request], CompiledView]) -> CompiledView:
    """The view that a SELECT says, with its blocks; an error is told with all others of the text."""
    try:
        return _compile_script(request, compile_block)
    except (UnsupportedError, UnknownNameError) as error:
        if request.is_stored or not isinstance(request.text, str) or not error.text or not is_sql(error.text):
            raise
        raise with_all_others(error, request.tables, request.functions) from error


def _compile_script(request: Request, compile_block: Callable[[Request], CompiledView]) -> CompiledView:
    script = _script(request)
    request = replace(request, tables=with_clock_table(request.tables, [node for _, node in script.selects]))
    plans: list[str | None] = [*request.plan.split()] if request.plan is not None else []
    plans = _by_block(script, plans)
    tables, names, blocks = request.tables, dict[str, str](), list[Block]()
    for number, (name, _) in enumerate(script.selects[:-1]):
        names[name] = script.name_of(number, request.name or "Q")
        if name in script.ordered:
            rows = next(each for each in blocks if each.name == names[script.ordered[name].rows])
            assert isinstance(rows, CompiledView), "what is limited is a SELECT"
            blocks.append(_ordered(request, names[name], rows, script.ordered[name].order, is_block=True))
            tables = (*tables, blocks[-1].table)
            continue
        made = script.block(number, tables, names, names[name])
        if isinstance(made, Union):
            blocks.append(_compile_union(made, script, number))
        elif isinstance(made, Pairing):
            blocks.append(_compile_pairing(made, script, number))
        else:
            options = _of_blocks(request)
            blocks.append(
                compile_block(
                    replace(request, text=made, tables=tables, name=None, options=options, plan=plans[number])
                )
            )
        tables = (*tables, blocks[-1].table)
    query = _last(script, tables, names, request)
    if script.order is not None and _is_one_row(query, script.order):
        query = replace(query, head=tuple(each for each in query.head if not each.name.startswith(HIDDEN)))
        compiled = compile_block(replace(request, text=query, tables=tables, plan=plans[-1]))
    elif script.order is None:
        compiled = compile_block(replace(request, text=query, tables=tables, plan=plans[-1]))
    else:
        inner = replace(query, name=script.name_of(len(script) - 1, query.name))
        rows = compile_block(replace(request, text=inner, tables=tables, name=None, plan=plans[-1]))
        blocks.append(rows)
        is_kept = request.options.get("favour") == "reads"
        compiled = _ordered(request, query.name, rows, replace(script.order, is_kept=is_kept))
        if request.name is not None and not request.is_stored:
            check_head(compiled.view.query)
    compiled = _with_parameters(script, compiled, blocks)
    if blocks:
        explained, reached = _explained(script, blocks, compiled, names)
        compiled = replace(compiled, explanation=explain_blocks(compiled.explanation, explained, reached))
    return replace(compiled, blocks=tuple(blocks), is_new=any(each.is_new for each in (*blocks, compiled)))


def _script(request: Request) -> SqlScript:
    """The blocks of a text, or of a SELECT that was read already."""
    if isinstance(request.text, ReadSelect):
        source = replace(request.text.source, functions=request.functions)
        script = request.text.script or script_of(source, request.text.node, request.tables)
        script = replace(script, source=source, shown=request.text.shown)
        if script.order is not None and request.text.from_start:
            script = replace(script, order=script.order.from_start())
        return script
    assert isinstance(request.text, str)
    return read_script(request.text, request.tables, request.functions, request.options.get("expire"))


def _with_parameters(script: SqlScript, compiled: CompiledView, blocks: list[Block]) -> CompiledView:
    """Checks the types of defaults, and that lists can be put together; says in the explanation what they do."""
    if compiled.view.typed is None:
        return compiled
    rows = next((each for each in blocks if each.name == compiled.ordered), compiled)
    refuse_misfits(script.source, compiled.typed, rows.typed)
    remarks = (*compiled.explanation.remarks, *parameter_notes(compiled.typed))
    return replace(compiled, explanation=replace(compiled.explanation, remarks=remarks))


def _is_one_row(query: Query, order: Order) -> bool:
    """Whether an order says nothing: aggregates of all rows are one row, also where there are none."""
    shows_it = not order.offset and (order.limit is None or order.limit > 0)
    return bool(query.aggregates) and not query.output and shows_it


def _by_block(script: SqlScript, plans: list[str | None]) -> list[str | None]:
    """The stored plan of each block, None for those that have none; all None if there are not as many as there were."""
    planned = [name not in script.ordered for name, _ in script.selects]
    if len(plans) != sum(planned):
        return [None] * len(script)
    waiting = iter(plans)
    return [next(waiting) if each else None for each in planned]


def _explained(
    script: SqlScript, blocks: list[Block], view: CompiledView, names: Mapping[str, str]
) -> tuple[tuple[BlockExplanation, ...], Reached]:
    """What is said about each block: where one row changes in a table, a join may change many, all others one each."""
    reached = Reached()
    found = []
    unions = [replace(each.table, keys=few_rows_keys(each.union)) for each in blocks if isinstance(each, CompiledUnion)]
    late = _is_ordered_when_read(view, blocks)
    for number, block in enumerate((*blocks, view)):
        reads = tuple(table.name for table in block.read)
        text = script.text(number, names) if number < len(script) else f"{blocks[-1].name} {script.order_text}"
        if block is view and late:
            own = replace(view.explanation, update=bound(0), costs=())
            found.append(BlockExplanation(view.name, text, reads, own, "0", "0"))
            continue
        ranks = isinstance(block, CompiledView) and block.order is not None and block.order.changes_many
        is_read = block is not view and not (late and block.name == view.ordered)
        reached.add(block.name, reads, block.explanation, passed=_passed(block, unions), ranks=ranks, read=is_read)
        rows_in, rows_out = reached.in_words(reads), reached.in_words([block.name])
        if isinstance(block, CompiledView) and block.view.parsed.written.has_closures:
            rows_out = "N"
        found.append(BlockExplanation(block.name, text, reads, block.explanation, rows_in, rows_out))
    return tuple(found), reached


def _is_ordered_when_read(view: CompiledView, blocks: Iterable[Block]) -> bool:
    """Whether a view only sorts the rows of a block for its reader, so that an update ends before it."""
    rows = next((each for each in blocks if each.name == view.ordered), None)
    return view.order is not None and rows is not None and is_ordered_when_read(view.order, rows.explanation)


def _passed(block: Block, unions: Iterable[Table]) -> Mapping[str, Fraction]:
    """How many rows of a block change with one row of each relation, as exponents; of those that are not named, one.

    `unions` are those before it, with what tells their rows apart but for a constant number.
    """
    if isinstance(block, CompiledPairing):
        return partners(block.pairing)
    joins = isinstance(block, CompiledView) and len(block.view.parsed.written.atoms) > 1
    return changed_rows(block.explanation.query.with_tables(unions)) if joins else {}


def _ordered(request: Request, name: str, rows: CompiledView, order: Order, *, is_block: bool = False) -> CompiledView:
    """The view that shows the rows of a block in an order."""
    options = rows.view.parsed.options
    if options.semantics == "ring":
        raise PlanError(f"view {name} is in ring mode, where rows have no order: drop ORDER BY and LIMIT")
    given = zip(rows.typed.query.parameters, rows.typed.query.input, strict=True)
    inputs = {parameter: rows.typed.types[variable] for parameter, variable in given}
    inner = rows.typed.query
    if order.ranges is not None:
        shape = range_shape(name, rows.table.columns, order)
    else:
        added = added_columns(rows.table.columns, order)
        shape = shape_of(name, (*rows.table.columns, *added), inputs, order.hidden)
    shape = replace(shape, text=inner.text, known=inner.known, defaults=inner.defaults, lists=inner.lists)
    view = TypedView(ParsedView(request, options, shape, shape), shape, typed(shape))
    explanation = explain_order(name, order, rows.explanation, is_block=is_block)
    return CompiledView(view, explanation, None, is_new=False, order=order, ordered=rows.name)


def _last(script: SqlScript, tables: tuple[Table, ...], names: Mapping[str, str], request: Request) -> Query:
    made = script.block(len(script) - 1, tables, names, request.name or "Q")
    assert isinstance(made, Query), "a view is never a union itself"
    text = request.text if isinstance(request.text, str) else script.source.text
    return replace(made, text=text, known=script.known(made, names))


def _of_blocks(request: Request) -> Mapping[str, object]:
    """The options that are for blocks too: how long to plan, and what closures are of. All others are for the view."""
    return {name: value for name, value in request.options.items() if name in ("planning_seconds", "graph")}


def _compile_union(union: Union, script: SqlScript, number: int) -> CompiledUnion:
    try:
        made, table = typed_union(union)
    except UnionTypeError as error:
        raise script.no_common_type(number, error) from None
    shape = shape_of(table.name, table.columns, {})
    return CompiledUnion(made, table, typed(shape), explain_union(shape))


def _compile_pairing(pairing: Pairing, script: SqlScript, number: int) -> CompiledPairing:
    try:
        made, table = typed_pairing(pairing)
    except PairingTypeError as error:
        raise script.not_comparable(number, error) from None
    shape = shape_of(table.name, table.columns, {})
    return CompiledPairing(made, table, typed(shape), explain_pairing(shape, made))
