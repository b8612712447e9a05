"""Installs peers that this checkout does not bring along into a cache folder, where they stay for the next run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.missing import MissingError

PATHWAY = ("pathway>=0.33,<0.34", "pyarrow", "pandas")
PSYCOPG = ("psycopg[binary]>=3.2,<4",)
PYDBSP = ("pydbsp",)


def cache() -> Path:
    """$IVME_PEERS, or a folder of the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("IVME_PEERS") or Path(base) / "ivme-peers")


def pathway_python() -> str:
    """The Python of a virtual environment with Pathway; $IVME_PATHWAY_PYTHON names another."""
    given = os.environ.get("IVME_PATHWAY_PYTHON")
    if given:
        return given
    folder = cache() / f"pathway-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        _run("Pathway", [sys.executable, "-m", "venv", "--clear", str(folder)])
        _run("Pathway", [str(python), *_pip(PATHWAY)])
        (folder / "done").touch()
    return str(python)


def import_psycopg() -> None:
    """Makes PostgreSQL's driver importable."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        _import_from("PostgreSQL", PSYCOPG)


def import_pydbsp() -> None:
    """Makes pydbsp importable, if it can be installed at all."""
    _import_from("pydbsp", PYDBSP)


def _import_from(peer: str, packages: Sequence[str]) -> None:
    folder = cache() / f"{peer.lower()}-{sys.version_info.major}.{sys.version_info.minor}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        _run(peer, [sys.executable, *_pip(packages), "--target", str(folder)])
        (folder / "done").touch()
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def install_postgres() -> None:
    """Debian's package, where this is allowed."""
    if os.geteuid() or shutil.which("apt-get") is None:
        return
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", "postgresql"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "RUNLEVEL": "1"})
    if done.returncode:
        subprocess.run(["apt-get", "update", "--quiet"], capture_output=True, check=False)
        subprocess.run(command, capture_output=True, check=False, env={**os.environ, "RUNLEVEL": "1"})


def _pip(packages: Sequence[str]) -> list[str]:
    return ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]


def _run(peer: str, command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no message"]
        raise MissingError(peer, f"cannot be installed: {errors[-1].removeprefix('ERROR: ')}")
