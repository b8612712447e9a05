"""The search for the access-top order of least widths (source 003, Definition 4.12).

Dynamic programming over connected sets of variables (see `order_space`), in two passes: the least widths, then the
least estimated work within them. Where keys hold, widths are those under the dependencies, and the work of an update is
weighed by the rows of its table: a fact's change counts more than that of a dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from ivme.budget import BudgetSpentError, spend, within
from ivme.plan.order.greedy import good_order
from ivme.plan.order.space import OrderSpace, SearchStep
from ivme.plan.order.variable_order import VariableOrder, acc_top, canonical, order_of
from ivme.plan.order.widths import Widths, widths, with_indicators
from ivme.structure.classify import is_cqap0, is_hierarchical
from ivme.structure.dependencies import Dependencies
from ivme.structure.hypergraph import Cqap, Edge, Hypergraph

_NOTHING = Dependencies()

BUDGET = 700_000
"""How much an exact search may look at in a component, in the units of `OrderSpace.spent`, before it settles for a
good order: some seconds."""

_SHARE = 0.3
"""What a search for an order may take of what is left of the budget for planning: a plan has to be made of it, too."""


@dataclass(frozen=True, slots=True)
class OrderChoice:
    """The chosen order with its indicators and widths; `exact` if no access-top order has smaller ones."""

    order: VariableOrder
    widths: Widths
    exact: bool
    note: str


@dataclass(frozen=True, slots=True)
class _Partial:
    """An order of one connected set: its cost, and what its indicators fix of the variables above it."""

    cost: tuple[Fraction | int, ...]
    traces: frozenset[int]
    root: int
    parts: tuple[_Partial, ...]


_Price = tuple[Fraction | int, ...]
_Cost = Callable[[SearchStep, list[int], tuple[_Partial, ...]], "_Price | None"]
"""The cost of a step on top of partial orders, given the indicators in them; None when it breaks a bound."""


def best_order(
    cqap: Cqap,
    sizes: Mapping[str, int] | None = None,
    budget: int = BUDGET,
    static: frozenset[str] = frozenset(),
    dependencies: Dependencies = _NOTHING,
) -> OrderChoice:
    """The access-top order of a fracture with the least dynamic, then static width over all such orders.

    `static` labels atoms whose tables do not change: they count as constants, and no update fixes their variables.
    With all atoms static it is the least static width that counts.

    `dependencies` are those of the atoms in the variables of the fracture, and `sizes` the rows of their tables, by
    label. Sizes break ties: estimated work, fewer columns in views, and names in the last resort. The result is the
    same in every run. Where the space of orders is beyond the budget, a good order takes the place of the best one;
    `exact` then says whether its widths are the least all the same.
    """
    parts = [cqap.restricted(component) for component in cqap.hypergraph.components() if component.vertices]
    searches = [
        _Search(part, OrderSpace(part, sizes or {}, static, dependencies), budget, static, dependencies)
        for part in parts
    ]
    fronts = [search.front() for search in searches]
    bounds = _bounds(fronts)
    parents: dict[str, str | None] = {}
    for search, front in zip(searches, fronts, strict=True):
        _plant(search.space, search.cheapest(_target(front, bounds)), parents)
    order = with_indicators(order_of(cqap, parents), cqap)
    exact = all(search.exact for search in searches)
    note = "no access-top order has smaller widths" if exact else "too many orders to try: there may be a better one"
    return OrderChoice(order, widths(order, cqap, static, dependencies), exact, note)


def _bounds(fronts: list[list[Widths]]) -> Widths:
    """The widths of the whole: each component may use as much dynamic width as the worst one needs anyway."""
    dynamic = max((min(front).dynamic for front in fronts), default=Fraction(0))
    static = (min(w.static for w in front if w.dynamic <= dynamic) for front in fronts)
    return Widths(dynamic, max(static, default=Fraction(0)))


def _target(front: list[Widths], bounds: Widths) -> Widths:
    """A component's own least widths within the bounds of the whole."""
    return min(w for w in front if w.dynamic <= bounds.dynamic and w.static <= bounds.static)


class _Search:
    """The search in one component. It starts from a good order, whose widths bound all that is tried later."""

    def __init__(
        self, cqap: Cqap, space: OrderSpace, budget: int, static: frozenset[str], dependencies: Dependencies
    ) -> None:
        self.space = space
        constants = not static.isdisjoint(edge.label for edge in cqap.hypergraph.edges)
        seed = None if constants else _seed(cqap)
        easy = constants or is_cqap0(_reduct(cqap, dependencies) if space.depends else cqap)
        floor = Widths(Fraction(0 if easy else 1), Fraction(1))
        self.good, self.reached = good_order(space, seed, floor, is_best=not space.depends)
        self.budget = budget
        self.limit = space.spent + budget
        self.settled = self.reached == floor or (seed is not None and not space.depends)
        self.exact = True

    def front(self) -> list[Widths]:
        """The widths of the component's orders that no other order beats in both, as far as they can matter.

        No width is between 0 and 1, no static width is below 1, and without static tables the dynamic width is 0 in
        CQAP_0 only (003, Proposition 5.30): an order that reaches these bounds is one of the best without a search.
        So is the order of ACC-TOP for a hierarchical component whose tables all change, unless keys hold in it.
        """
        if self.settled:
            return [self.reached]

        def cost(step: SearchStep, fixed: list[int], parts: tuple[_Partial, ...]) -> _Price | None:
            dynamic = max([step.dynamic, step.view.dynamic(step.bag, fixed), *(part.cost[0] for part in parts)])
            return dynamic, max([step.static, *(part.cost[1] for part in parts)])

        try:
            with within(_SHARE):
                found = self.partials(cost, lambda step: step.dynamic <= self.reached.dynamic, _at_most)
        except BudgetSpentError:
            self.exact = False
            return [self.reached]
        return [Widths(Fraction(partial.cost[0]), Fraction(partial.cost[1])) for partial in found]

    def cheapest(self, target: Widths) -> Mapping[int, int | None]:
        """Of the orders within the target, that of least work, then of smallest views.

        All its steps are among those of a search for the widths. Where that was not needed or not possible, a
        tenth of the budget goes to this one, and the good order stands in.
        """
        self.limit = self.space.spent + self.budget // 10
        try:
            with within(_SHARE):
                return _parents(self.least_work(target))
        except BudgetSpentError:
            return self.good

    def least_work(self, target: Widths) -> _Partial:
        """The order of least work, then of the fewest columns in views, within the widths."""

        def cost(step: SearchStep, fixed: list[int], parts: tuple[_Partial, ...]) -> _Price | None:
            if fixed and step.view.dynamic(step.bag, fixed) > target.dynamic:
                return None
            return step.work + sum(part.cost[0] for part in parts), step.size + sum(part.cost[1] for part in parts)

        found = self.partials(cost, _within(target), lambda one, other: one <= other)
        return min(found, key=lambda partial: partial.cost)

    def partials(
        self, cost: _Cost, admits: Callable[[SearchStep], bool], beats: Callable[[_Price, _Price], bool]
    ) -> list[_Partial]:
        """The partial orders of the component that no other one beats, memoised by connected set.

        A step that is not admitted is not built upon.
        """
        space = self.space
        known: dict[int, list[_Partial]] = {}

        def solve(inside: int) -> list[_Partial]:
            if inside in known:
                return known[inside]
            if space.spent > self.limit:
                raise BudgetSpentError
            outside = space.neighbours(inside)
            edges = {space.edges[index] & outside for index in space.below(inside) if space.changing[index]}
            found: list[_Partial] = []
            for root in space.roots(inside):
                step = space.step(inside, root)
                below = [solve(part) for part in space.parts(inside & ~root)] if admits(step) else [[]]
                for parts in product(*below):
                    spend(5 + len(found))
                    fixed = sorted({*step.indicators, *(trace for part in parts for trace in part.traces)})
                    price = cost(step, fixed, parts)
                    if price is not None:
                        traces = _sharpest({schema & outside for schema in fixed}, edges)
                        _keep(found, _Partial(price, traces, root, parts), beats)
            known[inside] = found
            return found

        return solve(space.everything)


def _seed(cqap: Cqap) -> VariableOrder | None:
    """The order of ACC-TOP, which is one of the best for hierarchical queries (003, Proposition 5.4)."""
    return acc_top(canonical(cqap), cqap) if is_hierarchical(cqap.hypergraph) else None


def _reduct(cqap: Cqap, dependencies: Dependencies) -> Cqap:
    """The Σ-reduct: every schema, and the free variables, with all that they determine. Outside CQAP_0 some change
    takes linear time (Olteanu, Huang and Koch, ICDE 2009); within it, one may all the same."""
    edges = (Edge(e.label, dependencies.closure(e.variables)) for e in cqap.hypergraph.edges)
    given = cqap.input
    output = dependencies.closure(cqap.input | cqap.output) - given
    ordered = dependencies.closure(cqap.free) - output - given
    return Cqap(Hypergraph(tuple(edges)), output, given, ordered)


def _within(target: Widths) -> Callable[[SearchStep], bool]:
    """Whether a step keeps to the widths."""

    def admits(step: SearchStep) -> bool:
        return step.dynamic <= target.dynamic and step.static <= target.static

    return admits


def _at_most(one: _Price, other: _Price) -> bool:
    """Whether one cost is no greater in any part."""
    return all(mine <= theirs for mine, theirs in zip(one, other, strict=True))


def _sharpest(traces: set[int], edges: Iterable[int]) -> frozenset[int]:
    """The traces that an ancestor can feel: an edge or trace with fewer variables leaves more to be covered."""
    return frozenset(
        trace
        for trace in traces
        if not any(edge & ~trace == 0 for edge in edges)
        and not any(other & ~trace == 0 and other != trace for other in traces)
    )


def _keep(found: list[_Partial], new: _Partial, beats: Callable[[_Price, _Price], bool]) -> None:
    """Add a partial order unless an earlier one is as good, and drop those that it beats."""

    def covers(one: _Partial, other: _Partial) -> bool:
        weaker = all(any(theirs & ~mine == 0 for theirs in other.traces) for mine in one.traces)
        return weaker and beats(one.cost, other.cost)

    if not any(covers(old, new) for old in found):
        found[:] = [old for old in found if not covers(new, old)]
        found.append(new)


def _parents(partial: _Partial) -> dict[int, int | None]:
    """The parent of each block in a partial order."""
    above: dict[int, int | None] = {partial.root: None}
    for part in partial.parts:
        above |= _parents(part) | {part.root: partial.root}
    return above


def _plant(space: OrderSpace, above: Mapping[int, int | None], parents: dict[str, str | None]) -> None:
    """Write an order of blocks into a map of parents, each block as a chain of its variables."""
    chains = {1 << position: space.blocks[name] for position, name in enumerate(space.names)}
    for bit, parent in above.items():
        top = None if parent is None else chains[parent][-1]
        for variable in chains[bit]:
            parents[variable] = top
            top = variable
