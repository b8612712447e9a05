"""How the command line shows errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ivme.errors import IvmeError
from ivme.extras import explained


@contextmanager
def errors_shown() -> Iterator[None]:
    """Errors that ivme raises on purpose go to stderr, without a traceback."""
    try:
        yield
    except IvmeError as error:
        print(f"ivme: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except ModuleNotFoundError as error:
        missing = explained(error)
        if missing is None:
            raise
        print(f"ivme: {missing}", file=sys.stderr)
        raise typer.Exit(2) from None
