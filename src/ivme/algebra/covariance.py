"""The degree-m ring: sums, and sums of products of pairs, over the rows of a join (source 003, chapter 9).

An element is (c, s, Q): how many rows, the sum of each variable, and the sum of the product of each pair of variables.

    (c, s, Q) · (c', s', Q') = (c·c', c'·s + c·s', c'·Q + c·Q' + s·s'ᵀ + s'·sᵀ)

That is all that a linear regression needs: its coefficients come from Q and s, whatever the number of rows, and stay
fresh while the tables under the join change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ivme.algebra.ring import Element, Ring
from ivme.errors import DataError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CovarianceElement(Element):
    """Counts, sums and sums of products over some rows."""

    rows: int
    sums: Floats
    products: Floats

    @property
    def count(self) -> int:
        return self.rows

    def __add__(self, other: CovarianceElement) -> CovarianceElement:
        return CovarianceElement(self.rows + other.rows, self.sums + other.sums, self.products + other.products)

    def __mul__(self, other: CovarianceElement) -> CovarianceElement:
        cross = np.outer(self.sums, other.sums)
        return CovarianceElement(
            self.rows * other.rows,
            other.rows * self.sums + self.rows * other.sums,
            other.rows * self.products + self.rows * other.products + cross + cross.T,
        )

    def scaled(self, factor: int) -> CovarianceElement:
        return CovarianceElement(factor * self.rows, factor * self.sums, factor * self.products)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CovarianceElement)
            and self.rows == other.rows
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.products, other.products)
        )

    def is_close(self, other: CovarianceElement) -> bool:
        """Rounding is judged by the size of what was added up, as sums of both signs may cancel."""
        mine, others = (np.concatenate([each.sums, each.products.ravel()]) for each in (self, other))
        scale = 1e-9 * max(1.0, float(np.abs(np.concatenate([mine, others])).max(initial=0.0)))
        return self.rows == other.rows and bool(np.allclose(mine, others, rtol=1e-9, atol=scale, equal_nan=True))

    def __hash__(self) -> int:
        return hash((self.rows, self.sums.tobytes(), self.products.tobytes()))


class Covariance(Ring):
    """The degree-m ring over the given variables of a query.

    >>> ring = Covariance("X", "Y")
    >>> point = ring.lift("X", 2.0) * ring.lift("Y", 3.0)
    >>> point.rows, point.sums.tolist(), point.products.tolist()
    (1, [2.0, 3.0], [[4.0, 6.0], [6.0, 9.0]])
    """

    def __init__(self, *variables: str) -> None:
        if not variables or len(set(variables)) < len(variables):
            raise DataError("a covariance ring needs the names of its variables, each once")
        self._variables = variables

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def lift(self, variable: str, value: Any) -> CovarianceElement:
        if value is None:
            raise DataError(f"variable {variable} is NULL in a row; the covariance ring has no place for it")
        position = self._variables.index(variable)
        sums = np.zeros(len(self._variables))
        sums[position] = float(value)
        products = np.zeros((len(self._variables), len(self._variables)))
        products[position, position] = float(value) ** 2
        return CovarianceElement(1, sums, products)

    def regression(self, element: CovarianceElement, target: str) -> dict[str, float]:
        """Least-squares coefficients of `target` on the other variables, with "" for the constant term."""
        names = [variable for variable in self._variables if variable != target]
        chosen = [self._variables.index(variable) for variable in names]
        y = self._variables.index(target)
        normal = np.empty((len(names) + 1, len(names) + 1))
        normal[0, 0] = element.rows
        normal[0, 1:] = normal[1:, 0] = element.sums[chosen]
        normal[1:, 1:] = element.products[np.ix_(chosen, chosen)]
        right = np.concatenate([[element.sums[y]], element.products[chosen, y]])
        solution, *_ = np.linalg.lstsq(normal, right, rcond=None)
        return dict(zip(["", *names], solution.tolist(), strict=True))
