"""AND, OR, NOT, CASE, COALESCE, NULLIF, GREATEST and IS NULL: they see NULL, and guard what comes after them.

An argument is computed for all rows of a chunk, but its failures count only in the rows that get to it: each argument
has a mask, which is that of the whole without the rows that an earlier argument has decided.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from ivme.engine.expression.graph import REAL, WIDE, WORD, Node
from ivme.engine.expression.numbers import MOST_DIGITS, Value
from ivme.query.expression import Call
from ivme.query.types import Type

if TYPE_CHECKING:
    from ivme.engine.expression.compile import Compiler

_BOOL = Type("bool")
_SUFFIXES = {WORD: "word", WIDE: "wide", REAL: "real"}
_Branch = tuple[Node | None, Node | None, Value]
"""The rows that a branch is for (None for all that are left), those in which it is computed, and its value."""


class Branches:
    """Compiles the functions that evaluate an argument only where it is needed."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._graph = compiler.graph

    def value(self, call: Call, mask: Node | None) -> Value | None:
        """None if the kernel lacks the function for the types of its arguments."""
        if call.function in ("and", "or"):
            return self._connective(call, mask)
        if call.function == "is_null":
            return Value(self._is_null(self._compiler.value(call.arguments[0], mask)), _BOOL)
        if call.function == "not":
            truth = self._compiler.value(call.arguments[0], mask)
            return Value(self._graph.node("not_truth", WORD, truth.node), _BOOL) if _is_truth(truth) else None
        if call.function == "nullif":
            return self._nullif(call, mask)
        if call.function == "fails":
            return self._fails(call, mask)
        if call.function in ("greatest", "least"):
            return self._extreme(call, mask)
        return self._case(call, mask) if call.function == "case" else self._coalesce(call, mask)

    def _is_null(self, value: Value) -> Node:
        return self._graph.node(f"is_null_{_SUFFIXES[value.node.kind]}", WORD, value.node)

    def _connective(self, call: Call, mask: Node | None) -> Value | None:
        """A later argument counts only in rows that no earlier one has decided."""
        remaining = "mask_not_false" if call.function == "and" else "mask_not_true"
        truths: list[Value] = []
        for argument in call.arguments:
            truths.append(self._compiler.value(argument, mask))
            mask = self._graph.narrowed(remaining, mask, truths[-1].node) if _is_truth(truths[-1]) else mask
        if not all(map(_is_truth, truths)):
            return None
        operation = f"{call.function}_truth"
        nodes = [truth.node for truth in truths]
        return Value(reduce(lambda a, b: self._graph.node(operation, WORD, a, b), nodes), _BOOL)

    def _fails(self, call: Call, mask: Node | None) -> Value:
        """FALSE: a row in which an argument fails is doubtful, and `evaluate` says whether it does."""
        node = self._graph.word(0)
        for argument in call.arguments:
            null = self._is_null(self._compiler.value(argument, mask))
            node = self._graph.node("and_truth", WORD, node, null)
        return Value(node, _BOOL)

    def _nullif(self, call: Call, mask: Node | None) -> Value | None:
        left, right = (self._compiler.value(argument, mask) for argument in call.arguments)
        equal = self._compiler.comparisons.compared("eq", call.arguments, left, right, mask)
        if equal is None:
            return None
        kind = left.node.kind
        same = self._graph.narrowed("mask_true", None, equal)
        node = self._graph.node(f"select_{_SUFFIXES[kind]}", kind, self._graph.null(kind), left.node, mask=same)
        return replace(left, node=node)

    def _case(self, call: Call, mask: Node | None) -> Value | None:
        branches: list[_Branch] = []
        for condition, value in zip(call.arguments[0:-1:2], call.arguments[1::2], strict=False):
            truth = self._compiler.value(condition, mask)
            if not _is_truth(truth):
                return None
            hit = self._graph.narrowed("mask_true", mask, truth.node)
            branches.append((hit, hit, self._compiler.value(value, hit)))
            mask = self._graph.narrowed("mask_not_true", mask, truth.node)
        if len(call.arguments) % 2:
            branches.append((None, mask, self._compiler.value(call.arguments[-1], mask)))
        return self._joined(call, branches)

    def _coalesce(self, call: Call, mask: Node | None) -> Value | None:
        branches: list[_Branch] = []
        for argument in call.arguments:
            value = self._compiler.value(argument, mask)
            null = self._is_null(value)
            branches.append((self._graph.narrowed("mask_not_true", mask, null), mask, value))
            mask = self._graph.narrowed("mask_true", mask, null)
        return self._joined(call, branches)

    def _extreme(self, call: Call, mask: Node | None) -> Value | None:
        """GREATEST and LEAST: from left to right, a value takes the place of one that is NULL or not so extreme."""
        type_ = self._compiler.type_of(call)
        branches: list[_Branch] = [(None, mask, self._compiler.value(argument, mask)) for argument in call.arguments]
        if type_ is None or any(value.loose or value.kind not in ("null", type_.kind) for _, _, value in branches):
            return None
        values = self._in_one_kind(branches, type_)
        if values is None:
            return None
        found, order = replace(values[0], type=type_), "gt" if call.function == "greatest" else "lt"
        for value in values[1:]:
            follower = replace(value, type=type_)
            better = self._compiler.comparisons.compared(order, call.arguments, follower, found, mask)
            if better is None:
                return None
            taken = self._graph.node("or_truth", WORD, better, self._is_null(found))
            rows = self._graph.narrowed("mask_true", None, taken)
            node = self._select(found.node.kind, rows, value.node, found.node)
            found = replace(found, node=node, digits=max(found.digits, value.digits))
        return found

    def _joined(self, call: Call, branches: list[_Branch]) -> Value | None:
        """One value of the type of the whole: that of the first branch whose rows have it, else NULL."""
        type_ = self._compiler.type_of(call)
        if type_ is None:
            return self._compiler.constant(None, None) if not any(isinstance(a, Call) for a in call.arguments) else None
        if any(value.loose and value.kind != type_.kind for _, _, value in branches):
            return None
        values = self._in_one_kind(branches, type_)
        if values is None:
            return None
        kind = values[0].node.kind
        node = self._graph.null(kind)
        for (rows, _, _), value in reversed(list(zip(branches, values, strict=True))):
            node = value.node if rows is None else self._select(kind, rows, value.node, node)
        loose = any(v.type is not None and (v.loose or v.kind != type_.kind) for _, _, v in branches)
        return Value(node, type_, values[0].scale, max(value.digits for value in values), loose and type_.is_numeric)

    def _select(self, kind: str, rows: Node, value: Node, otherwise: Node) -> Node:
        return self._graph.node(f"select_{_SUFFIXES[kind]}", kind, value, otherwise, mask=rows)

    def _in_one_kind(self, branches: list[_Branch], type_: Type) -> list[Value] | None:
        """The values of branches in registers of one kind, those of decimals with one scale."""
        if type_.kind != "decimal":
            return [self._in_kind(value, type_, rows) for _, rows, value in branches]
        scale = max(value.scale for _, _, value in branches)
        if scale > MOST_DIGITS:
            return None
        numbers = self._compiler.numbers
        raised = [numbers.raised(value, scale, rows) for _, rows, value in branches]
        if any(value.node.kind == WIDE for value in raised):
            return [replace(value, node=numbers.wide(value)) for value in raised]
        return raised

    def _in_kind(self, value: Value, type_: Type, rows: Node | None) -> Value:
        if value.type is None:
            return Value(self._graph.null(REAL if type_.kind == "float" else WORD), type_)
        if type_.kind == "float":
            return Value(self._compiler.numbers.to_real(value, rows), type_)
        if type_.kind == "timestamp":
            return Value(self._compiler.moments.micros(value) or value.node, type_)
        return value


def _is_truth(value: Value) -> bool:
    return value.kind in ("bool", "null") and value.node.kind == WORD
