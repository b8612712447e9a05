"""Views over the covariance ring, maintained by the kernel as other views are (decision 0381).

An element of the ring is a count, a sum for each variable, and a sum of products for each pair. All of them are sums
that payloads can carry: of values, of squares, of products within a row, and of products of values of two tables, whose
factors multiply where tables join. So the view is an ordinary one with these columns, by whatever plan is best, and an
element is made of a row when it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Never

import numpy as np

from ivme.algebra.covariance import Covariance, CovarianceElement
from ivme.engine.read.recompute import recompute_elements
from ivme.engine.read.verify import compare_rows
from ivme.engine.runtime.runtime import Runtime
from ivme.errors import PlanError, UnnamedValueError
from ivme.query.expression import Call, Expression, conjunction
from ivme.query.model import Aggregate, HeadColumn, Query
from ivme.view import View
from ivme.views.base_view import Row

if TYPE_CHECKING:
    import pyarrow as pa

    from ivme.engine.read.reasons import Reasons
    from ivme.engine.runtime.view_state import ViewState

_LIFTED = "{} of the ring"
"""The variable of a value as a float, beside the one that it stands for."""


def in_sums(query: Query, ring: Covariance) -> Query:
    """The query whose rows have the sums of the ring's elements, without rows where one of its variables is NULL."""
    atoms = list(query.atoms)
    places = {v: next(i for i, atom in enumerate(atoms) if v in atom.variables) for v in ring.variables}
    for variable, place in places.items():
        atom = atoms[place]
        column = atom.columns[atom.terms.index(variable)]
        known = Call("not", (Call("is_null", (column,)),))
        tests: list[Expression] = [known] if atom.where is None else [atom.where, known]
        atoms[place] = replace(
            atom,
            terms=(*atom.terms, _LIFTED.format(variable)),
            columns=(*atom.columns, Call("cast_float", (column,))),
            where=conjunction(tests),
        )
    names = [_LIFTED.format(variable) for variable in ring.variables]
    sums = [("rows", Aggregate("count", None))]
    sums += [(f"sum {name}", Aggregate("sum", name)) for name in names]
    sums += [(f"squares {name}", Aggregate("sum_of_squares", name)) for name in names]
    for (one, place), (other, its_place) in combinations(zip(names, places.values(), strict=True), 2):
        function = "sum_of_pairs" if place == its_place else "sum_of_joint_pairs"
        sums.append((f"{one} · {other}", Aggregate(function, one, other)))
    shown = tuple(HeadColumn(variable, variable) for variable in query.output)
    return replace(query, atoms=tuple(atoms), head=shown + tuple(HeadColumn(*each) for each in sums))


class CovarianceView(View):
    """The rows of a query with elements of a covariance ring. A directory does not keep it."""

    is_stored: ClassVar[bool] = False

    def __init__(self, runtime: Runtime, state: ViewState, query: Query, ring: Covariance) -> None:
        super().__init__(runtime, state)
        self.query = query
        self.ring = ring

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns: those of the query's outputs."""
        return self.query.output

    def __call__(self, *unnamed: Never, **parameters: Any) -> Iterator[Row]:
        """The rows of an access request."""
        if unnamed:
            raise UnnamedValueError.of_view(self.name, self.parameters, unnamed)
        return (row for row, _ in self.items(**parameters))

    def __iter__(self) -> Iterator[Row]:
        return self()

    def items(self, **parameters: Any) -> Iterator[tuple[Row, Any]]:
        """The distinct rows of an access request with their elements, all of one state of the database."""
        found = [self._element(row) for row, _ in super().items(**parameters)]
        return iter([(row, element) for row, element in found if element.rows])

    def value(self, **parameters: Any) -> CovarianceElement | None:
        """The element of a view without outputs; None if nothing is there."""
        return next((element for _, element in self.items(**parameters)), None)

    def _element(self, row: Row) -> tuple[Row, CovarianceElement]:
        width, size = len(self.query.output), len(self.ring.variables)
        rows, *values = row[width:]
        numbers = np.array([0.0 if value is None else value for value in values])
        products = np.diag(numbers[size : 2 * size])
        ones, others = np.triu_indices(size, 1)
        products[ones, others] = products[others, ones] = numbers[2 * size :]
        return row[:width], CovarianceElement(rows, numbers[:size].copy(), products)

    def multiplicity(self, row: Row, **parameters: Any) -> int:
        """How many joined rows are behind a row (0 if there are none)."""
        return sum(element.rows for found, element in self.items(**parameters) if found == row)

    def count(self, **parameters: Any) -> int:
        """How many rows there are."""
        return sum(1 for _ in self.items(**parameters))

    def __len__(self) -> int:
        return self.count()

    def to_arrow(self, **parameters: Any) -> pa.Table:  # noqa: ARG002
        raise PlanError(f"view {self.name} has elements of a ring, which Arrow has no type for; read its items()")

    def verify(self) -> None:
        """Computes all elements from the tables by plain joins; VerificationError names the first difference."""
        self.check_alive()
        with self.lock:
            for inputs, expected in recompute_elements(self._runtime.reader, self.query, self.ring).items():
                request = dict(zip(self.parameters, inputs, strict=True))
                given = f" for {request!r}" if request else ""
                compare_rows(f"view {self.name}{given}", expected, dict(self.items(**request)))

    def _reasons(self, row: Row, parameters: Mapping[str, Any], *, present: bool) -> Reasons:
        """The rows whose elements add up to that of a row; or what has no partner."""
        from ivme.views.view_reasons import element_reasons

        given = self.asked.joined(parameters)
        return element_reasons(self._runtime.reader, self.query, row, given, present=present)

    def follow(self, queue: deque[Any]) -> None:
        """From now on the queue gets the elements by which the view's rows change."""
        super().follow(_ElementQueue(self, queue))

    def unfollow(self, queue: deque[Any]) -> None:
        for known in tuple(self._runtime.catalog.queues.get(self.name, ())):
            if isinstance(known, _ElementQueue) and known.queue is queue:
                super().unfollow(known)

    def elements(self, change: Mapping[Row, int]) -> dict[Row, CovarianceElement]:
        """The elements that changed rows add up to."""
        total: dict[Row, CovarianceElement] = {}
        for shown, weight in change.items():
            row, element = self._element(shown)
            total[row] = total[row] + element.scaled(weight) if row in total else element.scaled(weight)
        return {row: element for row, element in total.items() if element != element.scaled(0)}


class _ElementQueue(deque[Any]):
    """Hands the changes of a view's sums on as elements of its ring."""

    def __init__(self, view: CovarianceView, queue: deque[Any]) -> None:
        super().__init__()
        self._view = view
        self.queue = queue

    def extend(self, changes: Iterable[Any]) -> None:
        self.queue.extend(filter(None, (self._view.elements(change) for change in changes)))
