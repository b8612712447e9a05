"""What a database has installed, for a new view to share: groups of views, and their maps.

Views whose payloads have the same shape share maps and triggers: they are a group. A view with heavy and light parts is
a group of its own, since its leaves are parts that no other view reads. So are its checks, where they have such parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ivme.query.aggregates import payload_slots
from ivme.site import Group, Site

if TYPE_CHECKING:
    from ivme.plan.assemble.plan import Check, Plan
    from ivme.query.typed import TypedQuery

GroupKey = tuple[str, ...]
"""What the views of a group have in common: the types of their sums, and of a view with parts its name."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What a database has installed; `next_name` is that of the next group."""

    groups: Mapping[GroupKey, Group]
    next_name: str

    def group(self, key: GroupKey) -> Group:
        return self.groups.get(key) or Group(self.next_name)

    def site(self, name: str, slots: tuple[str, ...]) -> Site:
        """Where a view with these sums would be."""
        return Site(name, self.group(group_key(name, slots)), self.group(group_key(name, slots, is_split=True)))


def group_key(name: str, slots: tuple[str, ...], *, is_split: bool = False) -> GroupKey:
    """The group of a view or a check: that of its slots; one with heavy and light parts is alone."""
    return (*slots, "skew", name) if is_split else slots


def named_checks(view: str, plan: Plan) -> dict[str, Check]:
    """The checks of a plan by the names that they get, which no view has."""
    return {f"\0check {number}\0{view}": check for number, check in enumerate(plan.checks)}


def view_of(name: str) -> str:
    """The view that a view or a check of this name belongs to."""
    return name.rpartition("\0")[2]


def check_slots(check: Check, typed: TypedQuery) -> tuple[str, ...]:
    """The sums in the payloads of a check: those of its view, or none."""
    return typed.slots if payload_slots(check.query) else ()
