"""What a user may ask of a plan, read and checked once (DESIGN section 2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from ivme.budget import SECONDS
from ivme.errors import PlanError
from ivme.plan.tuning import Workload

Epsilon = Fraction | str | tuple[tuple[str, Fraction], ...]
"""A number in [0, 1], "auto", or one number for each relation."""

CHOICES = {
    "semantics": ("bag", "set", "ring"),
    "space": ("linear", "source"),
    "rebalance": ("amortised", "deamortised"),
    "graph": ("digraph", "acyclic", "undirected"),
}
"""The options that name one of a few values; the first is the default, of `space` where the plan allows it."""


_MOST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for; `strategy` None means that the chooser chooses, `space` None that nothing was said of it."""

    strategy: str | None = None
    epsilon: Epsilon | None = None
    append_only: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    semantics: str = "bag"
    space: str | None = None
    rebalance: str = "amortised"
    workload: Workload | None = None
    graph: str = "digraph"
    planning_seconds: float = SECONDS

    @property
    def epsilon_value(self) -> Fraction | None:
        """The one ε at which exponents have a value; None if there is no such."""
        if isinstance(self.epsilon, tuple):
            values = {value for _, value in self.epsilon}
            return values.pop() if len(values) == 1 else None
        return self.epsilon if isinstance(self.epsilon, Fraction) else None


def read_options(given: Mapping[str, object]) -> Options:
    """Options from keyword arguments; raises PlanError for an unknown one or a value that it cannot have.

    >>> read_options({"epsilon": 0.25, "static": "S"}).epsilon
    Fraction(1, 4)
    """
    known = [field.name for field in fields(Options)]
    for name in given:
        if name not in known:
            raise PlanError(f"there is no option {name!r}; the options are {', '.join(known)}")
    strategy = given.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        raise PlanError(f"strategy must be the name of a strategy, or None to let ivme choose; it is {strategy!r}")
    options = Options(
        strategy,
        _epsilon(given.get("epsilon")),
        _names("append_only", given.get("append_only", ())),
        _names("static", given.get("static", ())),
        **{name: _choice(name, value) for name, value in given.items() if name in CHOICES},
        workload=_workload(given.get("workload")),
        planning_seconds=_seconds(given.get("planning_seconds", SECONDS)),
    )
    if options.rebalance == "deamortised" and options.space == "linear":
        raise PlanError(
            "rebalance='deamortised' splits each relation on its own, which takes the space of space='source'; leave "
            "out space='linear', or rebalance"
        )
    return options


def _choice(name: str, value: object) -> str:
    if not isinstance(value, str) or value not in CHOICES[name]:
        raise PlanError(f"{name} must be one of {', '.join(map(repr, CHOICES[name]))}; it is {value!r}")
    return value


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST_SECONDS:
        raise PlanError(f"planning_seconds must be a number above 0 and up to {_MOST_SECONDS}; it is {value!r}")
    return float(value)


def _workload(value: object) -> Workload | None:
    """Numbers of updates, requests and rows a request; those left out are 1."""
    if value is None or isinstance(value, Workload):
        return value
    names = [field.name for field in fields(Workload)]
    if not isinstance(value, Mapping) or not set(value) <= set(names):
        raise PlanError(f"workload maps some of {', '.join(names)} to numbers; it is {value!r}")
    for name, number in value.items():
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < float("inf"):
            raise PlanError(f"workload has {number!r} {name}; give a number from 0 on")
    return Workload(**{str(name): float(number) for name, number in value.items()})


def _names(option: str, value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(name, str) and name for name in names):
        raise PlanError(f"{option} must be a table's name or several; it is {value!r}")
    return tuple(dict.fromkeys(map(str, names)))


def _epsilon(value: object) -> Epsilon | None:
    if value is None or value == "auto":
        return None if value is None else "auto"
    if isinstance(value, Mapping):
        if not value or not all(isinstance(name, str) for name in value):
            raise PlanError(f"epsilon for each relation must map the names of relations to numbers; it is {value!r}")
        return tuple((str(name), _unit(number)) for name, number in value.items())
    return _unit(value)


def _unit(value: object) -> Fraction:
    """A number in [0, 1]; a float counts as the decimal that it is printed as."""
    number: Fraction | None = None
    if isinstance(value, int | Fraction | Decimal | float) and not isinstance(value, bool):
        try:
            number = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
        except (ValueError, OverflowError):
            number = None
    if number is None or not 0 <= number <= 1:
        raise PlanError(
            f'epsilon must be a number from 0 to 1, "auto", or one for each relation; it is {_shown(value)}'
        )
    return number


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Fraction | Decimal) else repr(value)
