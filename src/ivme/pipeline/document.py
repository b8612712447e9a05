"""YAML whose values remember where they stand, so that a message can point at the line.

Keys are taken as they are written: a column may be called `no` or `on`, which YAML would take for truth values.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import yaml

from ivme.errors import PipelineError, QueryError, shown
from ivme.query.names import check_name, lone_surrogate

_Made = TypeVar("_Made")

_FORMATS = ("parquet", "delta", "iceberg", "csv", "json", "orc", "text", "avro", "xml", "jdbc", "kafka")
_FURTHER = ("rate", "rate-micro-batch", "socket", "memory", "console", "noop", "image", "binaryfile", "libsvm")
"""Formats that Spark has, the ones that messages name first."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line and column of a file, both counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Node:
    """A value of the document. `name` says what it is in messages, such as `tables.routes.columns`."""

    file: str
    name: str
    raw: yaml.Node

    @property
    def place(self) -> Place:
        mark = self.raw.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1)

    def refuse(self, message: str) -> NoReturn:
        """Raises the error that points here."""
        raise PipelineError(f"{self.place}: {message}")

    def fields(self, known: Iterable[str], needed: Iterable[str] = ()) -> dict[str, Node]:
        """The entries of a mapping whose keys must be known."""
        known = tuple(known)
        found = dict(self.entries())
        for key, node in found.items():
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean {close[0]}?" if close else "."
                if " " in key:
                    hint = ". Put a text that contains a comma in quotes: in {...}, a comma begins the next field."
                node.refuse(f"{self.name} has an unknown field {key}{hint} The fields are {', '.join(known)}")
        for key in needed:
            if key not in found:
                self.refuse(f"{self.name} needs the field {key}")
        return found

    def entries(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping, in order; a key that comes twice is refused."""
        if not isinstance(self.raw, yaml.MappingNode):
            self.refuse(f"{self.name} must be a mapping; it is {self._kind()}")
        seen = set()
        for key, value in self.raw.value:
            if not isinstance(key, yaml.ScalarNode):
                self.refuse(f"{self.name} has a key that is not a plain word")
            child = Node(self.file, f"{self.name}.{key.value}" if self.name else key.value, value)
            if key.value in seen:
                Node(self.file, child.name, key).refuse(f"{child.name} is given twice")
            self._check_key(key)
            seen.add(key.value)
            yield key.value, child

    def _check_key(self, key: yaml.ScalarNode) -> None:
        """Keys are names: of tables, columns, views, options."""
        holder = self.name or "the file"
        Node(self.file, holder, key).within(lambda: check_name(key.value, f"an entry of {holder}"))

    def items(self) -> list[Node]:
        """The items of a list; a single value is a list of one."""
        if isinstance(self.raw, yaml.SequenceNode):
            return [Node(self.file, f"{self.name}[{i}]", item) for i, item in enumerate(self.raw.value)]
        return [self]

    def text(self) -> str:
        """A word or text, as it is written."""
        if not isinstance(self.raw, yaml.ScalarNode) or not self.raw.value.strip():
            self.refuse(f"{self.name} must be a text; it is {self._kind()}")
        if lone_surrogate(self.raw.value) is not None or "\0" in self.raw.value:
            self.refuse(f"{self.name} has a character that no text has: {shown(self.raw.value)}")
        return str(self.raw.value)

    def value(self) -> Any:
        """A scalar in its YAML type: text, number, truth value."""
        self.text()
        try:
            return yaml.SafeLoader("").construct_object(self.raw)
        except (ValueError, OverflowError) as error:
            self.refuse(f"{self.name} is not a value: {error}")

    def boolean(self) -> bool:
        if not isinstance(self.value(), bool):
            self.refuse(f"{self.name} must be true or false; it is {self.text()}")
        return bool(self.value())

    def number(self, least: int = 1) -> int:
        value = self.value()
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.refuse(f"{self.name} must be a whole number from {least} on; it is {self.text()}")
        return value

    def choice(self, *choices: str) -> str:
        if self.text() not in choices:
            self.refuse(f"{self.name} must be {' or '.join(choices)}; it is {self.text()}")
        return self.text()

    def format(self) -> str:
        """A format of Spark's; one that is almost the name of a known one is refused, since others come in packages."""
        found = self.text()
        close = difflib.get_close_matches(found.lower(), _FORMATS, 1, 0.75)
        if close and found.lower() not in (*_FORMATS, *_FURTHER):
            self.refuse(
                f"{self.name}: there is no format {found}; did you mean {close[0]}? Known are {', '.join(_FORMATS)}, "
                "and those of packages for Spark"
            )
        return found

    def within(self, make: Callable[[], _Made]) -> _Made:
        """What a function makes of this node; the errors that it raises point here, or into the text of a query."""
        from ivme.errors import IvmeError

        try:
            return make()
        except PipelineError:
            raise
        except QueryError as error:
            raise PipelineError(f"{self._inside(error)}: {self.name}: {error}") from error
        except IvmeError as error:
            raise PipelineError(f"{self.place}: {self.name}: {error}") from error

    def _inside(self, error: QueryError) -> Place:
        """The place of a query's offending character in the file: blocks start below their key, all else at it."""
        place = self.place
        if error.line is None or error.column is None or not isinstance(self.raw, yaml.ScalarNode):
            return place
        if self.raw.style == "|":
            lines = Path(self.file).read_text("utf-8-sig").split("\n")[place.line : self.raw.end_mark.line]
            indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            return Place(self.file, place.line + error.line, indent + error.column)
        if self.raw.style is None and self.raw.start_mark.line == self.raw.end_mark.line:
            return Place(self.file, place.line, place.column + error.column - 1)
        return place

    def _kind(self) -> str:
        if isinstance(self.raw, yaml.MappingNode):
            return "a mapping"
        return "a list" if isinstance(self.raw, yaml.SequenceNode) else (self.raw.value.strip() or "empty")


def read_document(path: Path) -> Node:
    """The root of a YAML file."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError as error:
        raise PipelineError(f"there is no file {path}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} cannot be read: {error}") from error
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.reader.ReaderError, RecursionError) as error:
        raise PipelineError(f"{path}: this is not YAML: {error}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise PipelineError(f"{where}: this is not YAML: {error.problem or error.context}") from error
    if root is None:
        raise PipelineError(f"{path}: the file is empty; a pipeline has tables, views and sinks")
    return Node(str(path), "", root)
