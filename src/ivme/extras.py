"""Packages that only some parts of ivme need, and what to install if one of them is missing."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ivme.errors import MissingPackageError, SparkError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

_EXTRAS = {
    "deltalake": "spark",
    "duckdb": "sql",
    "fastapi": "serve",
    "httptools": "serve",
    "matplotlib": "plot",
    "obstore": "objects",
    "prompt_toolkit": "shell",
    "py4j": "spark",
    "pyiceberg": "iceberg",
    "pyspark": "spark",
    "sqlalchemy": "alchemy",
    "uvicorn": "serve",
}
"""The extra of ivme that a package belongs to; other packages are installed by their own names."""


def require(package: str, purpose: str) -> None:
    """Raises MissingPackageError, with the line that installs the package, unless it is installed.

    >>> require("pyarrow", "this example")
    >>> require("nonesuch", "this example")
    Traceback (most recent call last):
    ...
    ivme.errors.MissingPackageError: this example needs nonesuch, which is not installed: pip install nonesuch
    """
    if find_spec(package) is None:
        raise MissingPackageError(_message(package, purpose))


def refuse_windows(purpose: str) -> None:
    """Raises SparkError on Windows, where pipelines, Spark and shards do not run."""
    if sys.platform == "win32":
        raise SparkError(f"{purpose} needs Linux or macOS; on Windows, run it in WSL")


def explained(error: ModuleNotFoundError) -> MissingPackageError | None:
    """The same error with the line that installs what is missing; None if that is not a package of an extra."""
    package = (error.name or "").partition(".")[0]
    return MissingPackageError(_message(package, "this")) if package in _EXTRAS else None


def pandas_frame(rows: pa.Table) -> pandas.DataFrame:
    """Rows as a pandas DataFrame."""
    require("pandas", "to_pandas()")
    return rows.to_pandas()


def polars_frame(rows: pa.Table) -> polars.DataFrame:
    """Rows as a polars DataFrame."""
    require("polars", "to_polars()")
    import polars

    return polars.DataFrame(rows)


def _message(package: str, purpose: str) -> str:
    extra = _EXTRAS.get(package)
    by_extra = f"pip install 'ivme[{extra}]', or in a clone pip install '.[{extra}]'"
    return f"{purpose} needs {package}, which is not installed: {by_extra if extra else f'pip install {package}'}"
