"""The compiler: `PASSES`, from the text of a view to what a database installs for it. Read it top to bottom.

Each pass is a pure function from one frozen value to the next and runs once for a view. `ivme.explain` and
`create_view` run the same passes; an explanation has no database to install in, and perhaps no types. The packages that
the passes call are described in docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ivme import planning
from ivme.budget import limited
from ivme.errors import PlanError
from ivme.plan.assemble.assembled import AssembledView, assemble_view
from ivme.plan.assemble.installed import Installed
from ivme.plan.assemble.plan import Plan
from ivme.plan.assemble.points import Observation
from ivme.plan.explain.explanation import Explanation
from ivme.plan.plan_text import StoredPlan, plan_text
from ivme.plan.strategy.marks import only_grows
from ivme.plan.strategy.options import Options, read_options
from ivme.plan.strategy.promises import with_promises
from ivme.query.closures import closures_as_relations, is_closure
from ivme.query.failures import without_failures
from ivme.query.functions import Function
from ivme.query.model import Column, Query, Table, check_head
from ivme.query.names import check_text
from ivme.query.one_type import one_type_each
from ivme.query.order import Order
from ivme.query.parse import as_asked, is_one_join, parse
from ivme.query.read_select import ReadSelect
from ivme.query.typed import TypedQuery, is_declared, typed
from ivme.structure.analysis import Analysis, analyse
from ivme.structure.dependencies import view_keys
from ivme.tables import Tables, read_tables

if TYPE_CHECKING:
    from ivme.compiled_blocks import CompiledPairing, CompiledUnion

_MOST_COLUMNS = 64
"""How many columns of one relation a view can read."""


@dataclass(frozen=True, slots=True)
class Request:
    """A requested view over these tables. Without `installed` it is only explained.

    A view that was `stored` before comes with the text of its plan, if it has one; its names are not judged again.
    """

    text: str | ReadSelect | Query
    tables: tuple[Table, ...]
    options: Mapping[str, object]
    name: str | None = None
    installed: Installed | None = None
    is_stored: bool = False
    plan: str | None = None
    functions: Mapping[str, Function] = field(default_factory=dict)
    """The users' functions, by lower-cased name."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """How many rows the tables have now."""
    observed: Mapping[str, Observation] = field(default_factory=dict)
    """What the view and its blocks have been used for, where they are replanned for it."""


@dataclass(frozen=True, slots=True)
class ParsedView:
    """The query as it was `written`, and as it is after the passes so far."""

    request: Request
    options: Options
    written: Query
    query: Query


@dataclass(frozen=True, slots=True)
class TypedView:
    """A query in which every variable has one type; `typed` is None where the types of columns are not declared."""

    parsed: ParsedView
    query: Query
    typed: TypedQuery | None
    stored: StoredPlan | None = None


@dataclass(frozen=True, slots=True)
class AnalysedView:
    """A query and its structure, which is None for a closure and for a view whose stored plan is current."""

    view: TypedView
    analysis: Analysis | None


@dataclass(frozen=True, slots=True)
class CompiledView:
    """A view with its plan, which is None for a closure; `table` is the view as others read it.

    `is_new` is whether it was planned now: else its plan is the stored one. `assembled` is what to install. `blocks`
    are what its text was taken apart into, and it reads, in the order in which they are made. One with an `order` has
    no plan: it shows the rows of the block `ordered`.
    """

    view: TypedView
    explanation: Explanation
    plan: Plan | None
    is_new: bool
    assembled: AssembledView | None = None
    blocks: tuple[CompiledView | CompiledUnion | CompiledPairing, ...] = ()
    order: Order | None = None
    ordered: str = ""

    @property
    def name(self) -> str:
        return self.view.query.name

    @property
    def typed(self) -> TypedQuery:
        assert self.view.typed is not None, "a view over tables without types is only explained"
        return self.view.typed

    @property
    def graph(self) -> str:
        return self.view.parsed.options.graph

    @property
    def ring(self) -> bool:
        return self.view.parsed.options.semantics == "ring"

    @property
    def sources(self) -> tuple[Table, ...]:
        """The tables and views that it reads, as they were declared."""
        own = {block.name for block in self.blocks}
        read = [table for block in (*self.blocks, self) for table in block.read]
        return tuple(dict.fromkeys(table for table in read if table.name not in own))

    @property
    def read(self) -> tuple[Table, ...]:
        """The tables, views and blocks that its own query reads."""
        tables = self.view.parsed.written.tables
        return (replace(tables[0], name=self.ordered),) if self.order is not None else tables

    @property
    def table(self) -> Table:
        written = self.view.parsed.written
        columns = tuple(Column(c.name, t) for c, t in zip(written.head, self.typed.head, strict=True))
        grows = self.plan is not None and not self.ring and not written.aggregates and only_grows(written)
        return Table(self.name, columns, append_only=grows, keys=view_keys(written))

    def text(self) -> str:
        """The plans as they are stored: those of the blocks, and its own."""
        planned = [each for each in (*self.blocks, self) if each.has_text]
        return " ".join(each.stored() for each in planned)

    @property
    def has_text(self) -> bool:
        """Whether a plan is stored for it: not if it only orders the rows of a block."""
        return self.order is None

    def stored(self) -> str:
        """Its own plan as it is stored; one with an order has that of its rows."""
        return plan_text(self.explanation, self.plan)


def parse_view(request: Request) -> ParsedView:
    """Text to query: SQL or a rule, under the requested semantics and name."""
    options = read_options(request.options)
    query = parse(request.text, request.tables, is_stored=request.is_stored)
    query = as_asked(query if request.name is None else replace(query, name=request.name), options.semantics)
    if request.name is not None and not request.is_stored:
        check_head(query)
    if options.semantics == "ring" and query.distinct:
        raise PlanError(f"view {query.name} is in ring mode, where multiplicities may be negative: drop the DISTINCT")
    return ParsedView(request, options, query, query)


def rewrite_view(parsed: ParsedView) -> ParsedView:
    """What the options say about tables is said by the tables; closures are relations of their own."""
    promised = with_promises(parsed.query, parsed.options)
    return replace(parsed, query=closures_as_relations(promised, parsed.options.graph))


def type_view(parsed: ParsedView) -> TypedView:
    """Every variable gets one type, and constants become predicates; SchemaError where types do not fit."""
    _check_width(parsed.query)
    if parsed.request.installed is None and not is_declared(parsed.query):
        return TypedView(parsed, one_type_each(parsed.query), None)
    found = typed(parsed.query)
    return TypedView(parsed, found.query, found)


def recall_plan(view: TypedView) -> TypedView:
    """The plan that the view was stored with, if this version of ivme can use it."""
    request = view.parsed.request
    return view if request.plan is None else replace(view, stored=planning.recalled(view.query, request.plan))


def analyse_view(view: TypedView) -> AnalysedView:
    """The structure of what is maintained: hypergraph, fracture and class."""
    if is_closure(view.query) or (view.stored is not None and view.stored.is_current):
        return AnalysedView(view, None)
    ring = view.parsed.options.semantics == "ring"
    with planning.not_too_deep(view.query):
        request = view.parsed.request
        site = request.installed.site(view.query.name, view.typed.slots) if request.installed and view.typed else None
        return AnalysedView(view, analyse(view.query if ring else without_failures(view.query), request.rows, site))


def choose_plan(analysed: AnalysedView) -> CompiledView:
    """The best plan of all strategies, and what it guarantees."""
    view = analysed.view
    request, options = view.parsed.request, view.parsed.options
    observed = request.observed.get(view.query.name)
    explanation, plan = planning.plan_or_stored(view.query, analysed.analysis, options, view.stored, observed)
    is_new = view.stored is None or explanation is not view.stored.explanation
    return CompiledView(view, explanation, plan, is_new)


def assemble_compiled(compiled: CompiledView) -> CompiledView:
    """What to install, over the maps that are there; found out without a lock, as it may take long."""
    installed = compiled.view.parsed.request.installed
    if compiled.plan is None or installed is None:
        return compiled
    with limited(float("inf")):
        return replace(compiled, assembled=assemble_view(compiled.name, compiled.typed, compiled.plan, installed))


PASSES: tuple[Callable[[Any], Any], ...] = (
    parse_view,
    rewrite_view,
    type_view,
    recall_plan,
    analyse_view,
    choose_plan,
    assemble_compiled,
)
"""The compiler, in order."""


def compile_view(request: Request) -> CompiledView:
    """What a database installs for a view; everything a user may get wrong raises an `IvmeError`."""
    if isinstance(request.text, str) and not request.is_stored:
        check_text(request.text)
    if any(each.defaults for each in request.tables):  # which no view depends on, and no plan keeps
        request = replace(request, tables=tuple(each.without_defaults() for each in request.tables))
    if is_one_join(request.text, request.tables):
        return _compile_block(request)
    from ivme.compile_script import compile_script

    return compile_script(request, _compile_block)


def _compile_block(request: Request) -> CompiledView:
    value: Any = request
    for each in PASSES:
        value = each(value)
    compiled: CompiledView = value
    return compiled


def compile_query(text: str | Query, tables: Tables | None = None, **options: object) -> Explanation:
    """The explanation of a view: SQL, a rule, or a `Query`, over declared tables or those that the text implies."""
    declared, given = read_tables(tables), dict[str, object](options)
    if "dialect" in given and isinstance(text, str):
        from ivme.query.dialects import in_spark

        text, given = in_spark(text, given, declared)
    return compile_view(Request(text, declared, given)).explanation


def compile_plan(query: Query, **options: object) -> tuple[Explanation, Plan | None]:
    """The explanation of a parsed query, and the plan that it explains, if there is one."""
    compiled = compile_view(Request(query, query.tables, options))
    return compiled.explanation, compiled.plan


def _check_width(query: Query) -> None:
    """A table may have any number of columns, a map of the kernel has its limit."""
    for atom in query.atoms:
        if len(atom.variables) > _MOST_COLUMNS:
            raise PlanError(
                f"view {query.name} reads {len(atom.variables)} columns of {atom.relation}; a view can read "
                f"{_MOST_COLUMNS} of them: select those that are needed, or make several views"
            )
