"""Tokens and what they allow: scopes by view and by table, the same over HTTP and PostgreSQL's protocol.

`read:NAME` is for the rows and changes of a view or table, `write:NAME` for changes of a table's rows, `define` for
making, changing and dropping tables and views, and for the clock; `*` in the place of a name stands for all. A token
that may read a view needs no scope for the tables that the view reads. Names are not secret; rows are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ivme.errors import IvmeError, ServeError

Act = Literal["read", "write"]

GRANT = "ivme.grant"
"""The key in the scope of a request that is admitted: what its token allows."""

DEFINE = "define"
_FORMS = "read:NAME, write:NAME, read:*, write:* and define"


class RefusedError(IvmeError):
    """A statement or a request that its token does not allow."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A token, the name that its clients go by, and its scopes, in lower case."""

    name: str
    token: str = field(repr=False)
    scopes: frozenset[str]

    def allows(self, act: Act, name: str) -> bool:
        """Whether a view or table may be read, or the rows of a table changed.

        >>> Grant("shop", "...", frozenset({"read:sales"})).allows("read", "Sales")
        True
        """
        return f"{act}:*" in self.scopes or f"{act}:{name.lower()}" in self.scopes

    def sees(self, name: str) -> bool:
        """Whether a view or table is listed."""
        return self.allows("read", name) or self.allows("write", name)

    @property
    def only_reads(self) -> bool:
        """Whether nothing can be changed with it."""
        return all(scope.startswith("read:") for scope in self.scopes)

    def require(self, act: Act, name: str) -> None:
        """Raises `RefusedError` if a scope is missing."""
        if not self.allows(act, name):
            raise self._lacks(f"{act}:{name}")

    def require_define(self) -> None:
        """Raises `RefusedError` if definitions may not be changed."""
        if DEFINE not in self.scopes:
            raise self._lacks(DEFINE)

    def _lacks(self, scope: str) -> RefusedError:
        held = ", ".join(sorted(self.scopes)) or "none"
        return RefusedError(f"the token {self.name!r} lacks the scope {scope}; its scopes: {held}")


EVERYTHING = frozenset({"read:*", "write:*", DEFINE})
READING = frozenset({"read:*"})
OWNER, READER = "ivme", "reader"
"""The names of the token for everything, and of that for reading."""

OPEN = Grant(OWNER, "", EVERYTHING)
"""What is allowed where no token is set: only this machine reaches the server then."""


def read_grant(name: object, token: object, scopes: object) -> Grant:
    """A token that may do what its scopes say.

    >>> sorted(read_grant("shop", "0123456789abcdef", ["read:Revenue", "write:sales"]).scopes)
    ['read:revenue', 'write:sales']
    """
    if not isinstance(name, str) or not name or name in (OWNER, READER):
        raise ServeError(f"a token with scopes needs its own name, other than {OWNER} and {READER}; it has {name!r}")
    if not isinstance(token, str):
        raise ServeError(f"the token of {name} is a text of at least 16 characters")
    if not isinstance(scopes, list | tuple | set | frozenset):
        raise ServeError(f"the scopes of token {name} are a list of {_FORMS}")
    return Grant(name, token, frozenset(_scope(name, each) for each in scopes))


def _scope(name: str, text: object) -> str:
    act, colon, target = text.partition(":") if isinstance(text, str) else ("", "", "")
    if text != DEFINE and not (act in ("read", "write") and colon and target.strip() == target and target):
        raise ServeError(f"token {name} has the scope {text!r}; scopes are {_FORMS}")
    return str(text).lower()


def read_grants(path: Path) -> tuple[Grant, ...]:
    """The tokens of a file in YAML or JSON: a mapping from names to `token` and `scopes`."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text("utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ServeError(f"the file of tokens {path} cannot be read: {_without_text(error)}") from None
    if not isinstance(found, Mapping):
        raise ServeError(f"{path} must map names to their token and scopes")
    return tuple(_described(path, name, entry) for name, entry in found.items())


def _described(path: Path, name: object, entry: Any) -> Grant:
    if not isinstance(entry, Mapping) or set(entry) != {"token", "scopes"}:
        raise ServeError(f"{path}: {name} needs a token and its scopes, and nothing else")
    return read_grant(name, entry["token"], entry["scopes"])


def _without_text(error: Exception) -> str:
    """What is wrong with a file, without what it holds: that may be a token."""
    return str(getattr(error, "problem", None) or getattr(error, "strerror", None) or type(error).__name__)


def check_grants(grants: Iterable[Grant]) -> None:
    """Refuses short tokens, and those that are not told apart."""
    listed = tuple(grants)
    if any(len(each.token) < 16 for each in listed):
        raise ServeError("the token is shorter than 16 characters; take a longer one")
    for kind, values in (("token", [each.token for each in listed]), ("name", [each.name for each in listed])):
        if len(set(values)) < len(values):
            raise ServeError(f"two tokens have the same {kind}; each needs its own")
