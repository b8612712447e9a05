"""`ivme bench peers`: the benchmarks against other systems, which live beside the package in a checkout.

They need data makers, other databases and Spark, none of which belongs in an installed package; so the command runs
them from the checkout it is installed from, or from the working directory, and says so where there is none
(docs/decisions/0095-peers.md).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path

from ivme.errors import IvmeError


def checkout(candidates: Iterable[Path] | None = None) -> Path:
    """The folder that has benchmarks/peers: the package's checkout, or the working directory."""
    for folder in candidates if candidates is not None else (Path(__file__).resolve().parents[3], Path.cwd()):
        if (folder / "benchmarks" / "peers" / "__main__.py").is_file():
            return folder
    raise IvmeError(
        "the benchmarks against other systems are not part of the installed package; "
        "run them in a checkout of ivme, with `make bench-peers` or `ivme bench peers`"
    )


def measure_peers(*, quick: bool, only: Sequence[str], peers: Sequence[str], out: Path) -> None:
    """Runs the harness; names that it does not know are refused."""
    folder = str(checkout())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        harness = import_module("benchmarks.peers.__main__")
    except ImportError as error:
        raise IvmeError(f"{error}; the benchmarks need what `make venv` installs") from error
    for given, known in ((only, harness.WORKLOADS), (peers, harness.PEERS)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise IvmeError(f"there is no {', '.join(unknown)}; there are {', '.join(known)}")
    arguments = ["--out", str(out), *(["--quick"] if quick else [])]
    arguments += ["--only", *only] if only else []
    harness.main([*arguments, *(["--peers", *peers] if peers else [])])
