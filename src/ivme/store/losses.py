"""What is missing of a directory: refused with advice, or, where its owner accepts that, gathered and done without."""

from __future__ import annotations

from pathlib import Path

from ivme.errors import DamagedError
from ivme.store import system
from ivme.store.files import free_name, read, write_whole

_ASIDE = ".damaged"
"""The ending of files that were set aside when a loss was accepted; they are not read again, and not removed."""


class Losses:
    """The damage that was found in a directory, as sentences, and the tables that are lost by it."""

    def __init__(self, directory: Path, *, accepted: bool) -> None:
        self._directory = directory
        self._accepted = accepted
        self.found: list[str] = []
        self.tables: set[str] = set()

    def add(self, error: DamagedError) -> None:
        """Takes damage in, or refuses the directory."""
        if not self._accepted:
            raise DamagedError(f"{error}; {self._advice}") from error
        self.found.append(str(error))

    @property
    def _advice(self) -> str:
        return (
            "restore it from a copy of the directory, or open what is left: "
            f"ivme.Database({str(self._directory)!r}, accept_loss=True), "
            f"or ivme recover {self._directory} --accept-loss"
        )


def copy_aside(path: Path) -> None:
    """Copies a file before what cannot be read is cut off."""
    write_whole(_free(path), [read(path)])


def move_aside(path: Path) -> None:
    """Renames a file that cannot be used."""
    system.rename(path, _free(path))


def _free(path: Path) -> Path:
    return path.parent / free_name(path.parent, path.name + _ASIDE, "")
