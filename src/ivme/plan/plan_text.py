"""The text of a plan, stored with its view so that opening a directory need not plan again."""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from types import ModuleType

from ivme.errors import StorageError
from ivme.plan.assemble import blueprint, leaves, plan, points, tuning, update_costs
from ivme.plan.assemble.plan import Plan
from ivme.plan.explain import draw, lower_bound
from ivme.plan.explain import explanation as explain
from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir import exponent, program, steps
from ivme.plan.ir.codec import Codec
from ivme.plan.order import mark_tree, templates, variable_order, view_tree, widths
from ivme.query import expression, model, table, types
from ivme.structure import dependencies, fracture, hypergraph

PLANNER_VERSION = 11
"""To be raised when the planner makes other plans than before, or the steps of programs come to mean something else:
views are then planned again when their directory is opened. tests/golden/test_planner_version.py tells when."""

_MODULES: tuple[ModuleType, ...] = (
    *(expression, model, table, types, fracture, hypergraph, dependencies, leaves, blueprint, steps, program),
    *(exponent, widths, tuning, update_costs, points),
    *(variable_order, view_tree, templates, mark_tree, draw, lower_bound, plan, explain),
)
"""Where the classes are that a plan is made of."""

_MOST = 2**28
"""No plan has a longer text than this."""


def _classes(module: ModuleType) -> Iterator[type]:
    for each in vars(module).values():
        if isinstance(each, type) and is_dataclass(each) and each.__module__ == module.__name__:
            yield each


_CODEC = Codec(each for module in _MODULES for each in _classes(module))


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """A plan with its explanation, and the version of the planner that made them; a closure has no plan."""

    version: int
    explanation: Explanation
    plan: Plan | None

    @property
    def is_current(self) -> bool:
        return self.version == PLANNER_VERSION


def plan_text(explanation: Explanation, plan: Plan | None) -> str:
    """The text of what was planned: some kilobytes."""
    written = _CODEC.write((PLANNER_VERSION, explanation, plan))
    return b64encode(zlib.compress(written.encode("utf-8", "surrogatepass"), 6)).decode()


def read_plan(text: str) -> StoredPlan:
    """What a text says; `StorageError` if this version of ivme cannot use it."""
    try:
        unpacked = zlib.decompressobj()
        content = unpacked.decompress(b64decode(text, validate=True), _MOST)
        if not unpacked.eof or unpacked.unused_data:
            raise ValueError("it is cut off, or something follows it")
        written = content.decode("utf-8", "surrogatepass")
    except (ValueError, zlib.error) as error:
        raise StorageError(f"a stored plan cannot be unpacked: {error}") from error
    match _CODEC.read(written):
        case int() as version, Explanation() as explanation, Plan() | None as plan:
            return StoredPlan(version, explanation, plan)
    raise StorageError("a stored plan has no version, explanation and plan")
