"""How the command line shows errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ivme.errors import DataError, IvmeError, SchemaError, SparkError
from ivme.extras import explained

_FAILURES = (DataError, SchemaError, SparkError)


@contextmanager
def errors_shown(failure: int = 2) -> Iterator[None]:
    """Errors that ivme raises on purpose go to stderr, without a traceback.

    The exit status is 2; `failure` is that of data, or of Spark, that failed while what was asked for is right.
    """
    try:
        yield
    except IvmeError as error:
        print(f"ivme: {error}", file=sys.stderr)
        raise typer.Exit(failure if isinstance(error, _FAILURES) else 2) from None
    except ModuleNotFoundError as error:
        missing = explained(error)
        if missing is None:
            raise
        print(f"ivme: {missing}", file=sys.stderr)
        raise typer.Exit(2) from None
