"""Views that cannot be built when their directory is opened: they stay in the catalog, with the reason.

The tables and the other views do not depend on them. Opening the directory tries again, and so does `rebuild`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ivme.errors import BrokenViewError, DamagedError, IvmeError, MemoryLimitError, UnknownNameError

if TYPE_CHECKING:
    from ivme.definitions.definitions import Definitions
    from ivme.store.contents import StoredView
    from ivme.view import View

_QUOTES = "\"`'["


def make_views(
    definitions: Definitions, views: Iterable[StoredView], stored: dict[str, StoredView], done: Callable[[], None]
) -> None:
    """Makes views in the order in which they are given; those that fail are then the database's broken views."""
    for view in views:
        definitions.broken.pop(view.name, None)
        try:
            _restore(definitions, view, stored)
        except (DamagedError, MemoryLimitError):
            raise
        except Exception as error:
            definitions.broken[view.name] = reason_of(error)
        done()


def _restore(definitions: Definitions, view: StoredView, stored: dict[str, StoredView]) -> View:
    """Makes a view again, by its stored plan if that can be used; the next snapshot has the plan that it has now."""

    definitions.functions.check(view)

    def keep(plan: str) -> None:
        stored[view.name] = replace(view, plan=plan)

    return definitions.create_view(view.name, view.query, view.read_options(), view.plan, keep)


def rebuild(definitions: Definitions, views: dict[str, StoredView], name: str) -> View:
    """Builds a broken view again, or raises why that fails; then tries all other broken views again, too."""
    view, reason = views[name], definitions.broken.pop(name)
    definitions.is_opening = True  # a stored view may be older than the rules for new ones
    try:
        made = _restore(definitions, view, views)
        make_views(
            definitions, [each for each in views.values() if each.name in definitions.broken], views, lambda: None
        )
        return made
    except BaseException as error:
        if name not in definitions.views:
            definitions.broken[name] = reason_of(error) if isinstance(error, Exception) else reason
        raise
    finally:
        definitions.is_opening = False


def reason_of(error: Exception) -> str:
    """Why a view cannot be built; an error that is not ivme's own goes with its type."""
    return str(error) if isinstance(error, IvmeError) else f"{type(error).__name__}: {error}"


def whole(name: str, broken: Mapping[str, str]) -> str:
    """The name, if it is not that of a broken view."""
    if name not in broken:
        return name
    raise BrokenViewError(
        f"view {name} is broken, as it could not be built: {broken[name]}; "
        f"db.rebuild_view({name!r}) tries again, and db.drop_view({name!r}) removes it"
    )


def broken_source(error: UnknownNameError, broken: Mapping[str, str]) -> BrokenViewError | None:
    """What to tell a user whose query reads a broken view, if that is the name that the error points at."""
    if error.position is None:
        return None
    found = re.match(r"[\w$]+", error.text[error.position :].lstrip(_QUOTES))
    named = {name.lower(): name for name in broken}.get(found.group().lower()) if found else None
    return None if named is None else BrokenViewError(f"it reads view {named}, which is broken: {broken[named]}")
