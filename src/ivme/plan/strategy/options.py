"""What a user may ask of a plan, read and checked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction

from ivme.budget import SECONDS
from ivme.errors import PlanError, shown
from ivme.plan.assemble.tuning import Workload
from ivme.plan.strategy.numbers import read_count, read_unit

Epsilon = Fraction | str | tuple[tuple[str, Fraction], ...]
"""A number in [0, 1], "auto", or one number for each relation."""

CHOICES = {
    "semantics": ("bag", "set", "ring"),
    "space": ("linear", "source"),
    "rebalance": ("amortised", "deamortised"),
    "graph": ("digraph", "acyclic", "undirected"),
    "favour": ("balanced", "updates", "reads"),
}
"""The options that name one of a few values; the first is the default, of `space` where the plan allows it."""


_MOST_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Options:
    """The options given; `strategy` None means that the chooser chooses, `space` None that nothing was said of it.

    `changes` are how often tables change, against each other; those left out count as 1. Without it each table counts
    by its rows. `expire` is an expression over the rows that the view reads: each leaves when the clock of the database
    gets there. `favour` says what is to be cheap, where one plan has cheaper updates and another has cheaper reads.
    """

    strategy: str | None = None
    epsilon: Epsilon | None = None
    append_only: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    semantics: str = "bag"
    space: str | None = None
    rebalance: str = "amortised"
    workload: Workload | None = None
    changes: tuple[tuple[str, float], ...] = ()
    graph: str = "digraph"
    favour: str = "balanced"
    expire: str | None = None
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
            raise PlanError(f"there is no option {shown(name)}; the options are {', '.join(known)}")
    strategy = given.get("strategy")
    if strategy is not None and not isinstance(strategy, str):
        raise PlanError(f"strategy must be the name of a strategy, or None to let ivme choose; it is {shown(strategy)}")
    options = Options(
        strategy,
        _epsilon(given.get("epsilon")),
        _names("append_only", given.get("append_only", ())),
        _names("static", given.get("static", ())),
        **{name: _choice(name, value) for name, value in given.items() if name in CHOICES},
        workload=_workload(given.get("workload")),
        expire=_expire(given.get("expire")),
        changes=_changes(given.get("changes")),
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
        raise PlanError(f"{name} must be one of {', '.join(map(repr, CHOICES[name]))}; it is {shown(value)}")
    return value


def _expire(value: object) -> str | None:
    """An SQL expression, which is read with the query."""
    if value is not None and not isinstance(value, str):
        raise PlanError(f"expire must be an SQL expression, as ts + INTERVAL '7' DAY is one; it is {shown(value)}")
    return value


def _seconds(value: object) -> float:
    number = 0.0
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        with suppress(OverflowError, ValueError):
            number = float(value)
    if not 0 < number <= _MOST_SECONDS:
        raise PlanError(f"planning_seconds must be a number above 0 and up to {_MOST_SECONDS}; it is {shown(value)}")
    return number


def _workload(value: object) -> Workload | None:
    """Numbers of updates, requests and rows a request; those left out are 1."""
    names = [field.name for field in fields(Workload)]
    if isinstance(value, Workload):
        value = {name: getattr(value, name) for name in names}
    if value is None:
        return None
    if not isinstance(value, Mapping) or not set(value) <= set(names):
        raise PlanError(f"workload maps some of {', '.join(names)} to numbers; it is {shown(value)}")
    return Workload(**{str(name): _count(str(name), number) for name, number in value.items()})


def _changes(value: object) -> tuple[tuple[str, float], ...]:
    if isinstance(value, tuple):
        value = dict(value)
    if value is None:
        return ()
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise PlanError(f"changes maps tables to how often they change, against each other; it is {shown(value)}")
    found = tuple((str(name), read_count(number)) for name, number in value.items())
    if any(number is None for _, number in found):
        raise PlanError(f"changes has numbers from 0 to 10^18; it is {shown(value)}")
    return tuple((name, float(number or 0)) for name, number in found)


def _count(name: str, value: object) -> float:
    number = read_count(value)
    if number is None:
        raise PlanError(f"workload has {shown(value)} {name}; give a number from 0 to 10^18")
    return number


def _names(option: str, value: object) -> tuple[str, ...]:
    names: tuple[object, ...] = (None,)
    if isinstance(value, str):
        names = (value,)
    elif isinstance(value, Iterable) and not isinstance(value, Mapping):
        names = tuple(value)
    if not all(isinstance(name, str) and name for name in names):
        raise PlanError(f"{option} must be a table's name or several; it is {shown(value)}")
    return tuple(dict.fromkeys(map(str, names)))


def _epsilon(value: object) -> Epsilon | None:
    if value is None or (isinstance(value, str) and value == "auto"):
        return value
    if isinstance(value, Mapping):
        if not value or not all(isinstance(name, str) for name in value):
            raise PlanError(
                f"epsilon for each relation must map the names of relations to numbers; it is {shown(value)}"
            )
        return tuple((str(name), _unit(number)) for name, number in value.items())
    return _unit(value)


def _unit(value: object) -> Fraction:
    number = read_unit(value)
    if number is None:
        raise PlanError(f'epsilon must be a number from 0 to 1, "auto", or one for each relation; it is {shown(value)}')
    return number
