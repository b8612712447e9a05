"""Where a view is to be installed: the planner drafts it under the names that it has there."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Group:
    """Views that share maps, as they stand: the name of the group, and its maps, by what they hold."""

    name: str = ""
    maps: dict[tuple[object, ...], tuple[str, tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """The name of a view, and its group, which differs if it has heavy and light parts."""

    view: str
    plain: Group
    parted: Group
