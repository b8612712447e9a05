"""Makes the runtime of a database."""

from __future__ import annotations

import warnings

from ivme.engine.codes.domains import Domains
from ivme.engine.runtime.runtime import Runtime


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
