"""Makes the runtime of a database, and installs planned views in it."""

from __future__ import annotations

import warnings

from ivme.closure.install import add_closure, add_closures
from ivme.closure_view import ClosureView
from ivme.compile import CompiledView
from ivme.engine.codes.domains import Domains
from ivme.engine.runtime.build_beside import BuildBeside, build_beside
from ivme.engine.runtime.runtime import Runtime
from ivme.view import View


def start_build(runtime: Runtime, view: CompiledView) -> BuildBeside | None:
    """Builds a large view while others write, if it can be."""
    return None if view.ring else build_beside(runtime.catalog, view.name, view.typed, view.plan)


def install_view(runtime: Runtime, view: CompiledView, build: BuildBeside | None = None) -> View:
    """Fills a view, and the closures that it reads; within a change of the catalog, which undoes it on any error."""
    made = view.typed, view.explanation
    if view.plan is None:
        return ClosureView(runtime, add_closure(runtime, *made, view.table, view.graph))
    add_closures(runtime, view.typed.query)
    built = None if build is None else build.image()
    state = runtime.installation.add_view(
        view.name, *made, view.plan, view.table, ring=view.ring, prepared=view.assembled, built=built
    )
    return View(runtime, state)


def new_runtime() -> Runtime:
    """A runtime on the compiled kernel; without that in plain Python, with a warning."""
    try:
        from ivme.engine.codes.native_dictionary import native_domains
        from ivme.engine.native_backend import NativeBackend
    except ImportError as error:
        warnings.warn(f"ivme's compiled kernel is missing ({error}); views run in plain Python", stacklevel=3)
        from ivme.engine.reference.backend import PureBackend

        return Runtime(PureBackend(), Domains())
    return Runtime(NativeBackend(), native_domains())
