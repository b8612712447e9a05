"""Scalar functions that users write in Python: pure, with declared types, called as the functions of SQL are.

A function is code, which a directory never holds. What it holds of one is the signature, with each view that calls it:
such a view waits until a function with that signature is there again.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ivme.engine.codes.value_check import value_check
from ivme.errors import SchemaError, shown
from ivme.query.expression import Call, Expression, UserCall
from ivme.query.functions.definition import Function
from ivme.query.functions.running import called
from ivme.query.names import check_name
from ivme.query.types import Type, parse_type

if TYPE_CHECKING:
    from ivme.compile import CompiledView
    from ivme.compiled_blocks import CompiledPairing, CompiledUnion


@dataclass(frozen=True, slots=True)
class Signature:
    """What a directory keeps of a function: its name and types, and whether it is called where an argument is NULL."""

    name: str
    arguments: tuple[str, ...]
    returns: str
    called_with_null: bool = False

    def __str__(self) -> str:
        nulls = ", called with NULL" if self.called_with_null else ""
        return f"{self.name}({', '.join(self.arguments)}) -> {self.returns}{nulls}"

    def plain(self) -> dict[str, Any]:
        """As a directory has it."""
        plain = {"name": self.name, "arguments": list(self.arguments), "returns": self.returns}
        return {**plain, "called_with_null": True} if self.called_with_null else plain


def read_signature(plain: Mapping[str, Any]) -> Signature:
    """What `Signature.plain` wrote."""
    return Signature(**{**plain, "arguments": tuple(plain["arguments"])})


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function with its signature, as `Database.create_function` and `Database(functions=...)` take it.

    `function` is a callable, or a text "module:function" that says where to import it from. Types are those of columns.
    If an argument is NULL so is the value, unless it is `called_with_null`. The function must be pure: the same
    arguments give the same value, in any order and thread, at any time.
    """

    name: str
    function: Callable[..., Any] | str
    arguments: Iterable[str | Type] = ()
    returns: str | Type = "string"
    called_with_null: bool = False

    def signature(self) -> Signature:
        """The signature, with every type in one spelling; SchemaError if a type or the name is wrong."""
        check_name(self.name, "a function")
        if isinstance(self.arguments, str) or not isinstance(self.arguments, Iterable):
            raise SchemaError(f"the arguments of the function {self.name} must be a list of types, as in ['int']")
        taken = tuple(str(_type(each, self.name)) for each in self.arguments)
        nested = next((each for each in taken if parse_type(each).is_nested), None)
        if nested is not None:
            raise SchemaError(f"the function {self.name} takes {nested}, and arguments cannot be arrays or structs")
        return Signature(self.name, taken, str(_type(self.returns, self.name)), bool(self.called_with_null))

    def definition(self) -> Function:
        """The entry of the table of functions: what is called checks the type of each value."""
        signature = self.signature()
        _refuse_known_name(self.name, len(signature.arguments))
        function = imported(self.function, self.name)
        taken = [(parse_type(each).kind,) for each in signature.arguments]
        returns, number = parse_type(signature.returns), len(taken)
        return Function(
            number,
            number,
            partial(_checked_call, function, self.name, returns),
            f"{self.name}({', '.join(signature.arguments)})",
            returns.kind,
            taken[0] if taken else (),
            tuple(taken[1:]),
            "seen" if self.called_with_null else "strict",
            "by row",
            returns=returns,
            called_as=self.name,
        )


def functions_of(view: CompiledView) -> tuple[Function, ...]:
    """The users' functions that a view calls, in any of its blocks."""
    found: dict[Function, None] = {}
    for block in (*view.blocks, view):
        for expression in _expressions(block):
            found |= dict.fromkeys(_called(expression))
    return tuple(found)


def _expressions(block: CompiledView | CompiledUnion | CompiledPairing) -> Iterable[Expression | None]:
    union, pairing = getattr(block, "union", None), getattr(block, "pairing", None)
    branches = () if union is None else union.branches
    branches = branches if pairing is None else (pairing.left.branch, pairing.right.branch)
    if branches:
        return [each for branch in branches for each in (*branch.columns, branch.where, branch.weight)]
    atoms = block.view.parsed.written.atoms  # type: ignore[union-attr]
    return [each for atom in atoms for each in (*atom.columns, atom.where)]


def _called(expression: Expression | None) -> Iterable[Function]:
    if isinstance(expression, Call):
        if isinstance(expression, UserCall):
            yield expression.defined
        for argument in expression.arguments:
            yield from _called(argument)


def _type(type_: str | Type, name: str) -> Type:
    try:
        return parse_type(type_)
    except SchemaError as error:
        raise SchemaError(f"the function {name}: {error}") from None


def _refuse_known_name(name: str, number: int) -> None:
    """Refuses the name of a function of SQL: sqlglot would read a call of it as one of that."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    from ivme.query.spellings import WORDS
    from ivme.query.sql_nodes import NAMED

    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise SchemaError(
            f"the name of a function has letters, digits and underscores only; {shown(name)} is not allowed"
        )
    try:
        items = sqlglot.parse_one(f"SELECT {name}({', '.join('x' * number)})", read="spark").expressions
        call = items[0] if items else None
    except SqlglotError:
        call = None
    is_free = isinstance(call, exp.Anonymous) and call.name.lower() == name.lower()
    if not is_free or name.lower() in (*NAMED, *WORDS):
        raise SchemaError(f"{name} is a word or a function of SQL; choose another name for the function")


def imported(function: Callable[..., Any] | str, name: str) -> Callable[..., Any]:
    """The function that a text such as "module:function" names."""
    found: Any = function
    if isinstance(function, str):
        module, _, attribute = function.partition(":")
        try:
            found = importlib.import_module(module)
            for part in attribute.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError, ValueError) as error:
            raise SchemaError(f"the function {name} cannot be imported from {function!r}: {error}") from error
    if not callable(found):
        raise SchemaError(f"the function {name} must be a callable, or a text such as 'module:function'")
    made: Callable[..., Any] = found
    return made


def _checked_call(function: Callable[..., Any], name: str, returns: Type, *arguments: Any) -> Any:
    """The value of a function, in the type that it promises; ValueError says what is wrong."""
    try:
        value = called(name, function, arguments)
    except MemoryError:
        raise
    except Exception as error:
        given = ", ".join(map(shown, arguments))
        raise ValueError(f"the function {name} raised {type(error).__name__} for ({given}): {_text(error)}") from error
    try:
        return None if value is None else value_check(returns)(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the function {name} must return {returns}: {error}") from error


def _text(error: Exception) -> str:
    """What an error of a user's function says, which may fail, too."""
    try:
        return str(error)
    except Exception as another:
        return f"its text is not available ({type(another).__name__})"


def read_functions(given: Iterable[UserFunction] | None) -> Mapping[str, UserFunction]:
    """The functions that a database is opened with, by lower-cased name."""
    found: dict[str, UserFunction] = {}
    for each in given or ():
        if not isinstance(each, UserFunction):
            raise SchemaError(f"functions must be ivme.UserFunction; {shown(each)} is a {type(each).__name__}")
        if each.name.lower() in found:
            raise SchemaError(f"two functions are called {each.name}")
        found[each.name.lower()] = each
    return found
