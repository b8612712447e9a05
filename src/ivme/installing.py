"""Makes the runtime of a database, and installs planned views in it."""

from __future__ import annotations

import warnings

from ivme.budget import limited
from ivme.closure.install import add_closure, add_closures
from ivme.closure_view import ClosureView
from ivme.engine.codes.domains import Domains
from ivme.engine.runtime.build_beside import BuildBeside, build_beside
from ivme.engine.runtime.runtime import Runtime
from ivme.engine.runtime.shared_views import Assembled
from ivme.planning import PlannedView
from ivme.view import View


def prepare_view(runtime: Runtime, planned: PlannedView) -> Assembled | None:
    """What has to be installed for a view, found out without the lock, so that others read and write meanwhile."""
    if planned.plan is None:
        return None
    with limited(float("inf")):
        return runtime.prepared(planned.name, planned.typed, planned.plan)


def start_build(runtime: Runtime, planned: PlannedView) -> BuildBeside | None:
    """Builds a large view while others write, if it can be."""
    return None if planned.ring else build_beside(runtime, planned.name, planned.typed, planned.plan)


def install_view(
    runtime: Runtime, planned: PlannedView, prepared: Assembled | None = None, build: BuildBeside | None = None
) -> View:
    """Fills a view, and the closures that it reads; within a change of the catalog, which undoes it on any error."""
    made = planned.typed, planned.explanation
    if planned.plan is None:
        return ClosureView(runtime, add_closure(runtime, *made, planned.table, planned.graph))
    add_closures(runtime, planned.typed.query)
    built = None if build is None else build.image()
    state = runtime.add_view(
        planned.name, *made, planned.plan, planned.table, ring=planned.ring, prepared=prepared, built=built
    )
    return View(runtime, state)


def new_runtime() -> Runtime:
    """A runtime on the compiled kernel; without that in plain Python, with a warning."""
    try:
        from ivme.engine.backend import NativeBackend
        from ivme.engine.codes.native_dictionary import native_domains
    except ImportError as error:
        warnings.warn(f"ivme's compiled kernel is missing ({error}); views run in plain Python", stacklevel=3)
        from ivme.engine.reference.backend import PureBackend

        return Runtime(PureBackend(), Domains())
    return Runtime(NativeBackend(), native_domains())
