"""The graph of an expression's typed operations, and its flat form for the kernel.

Nodes are made once: the same operation on the same operands is one node, so that nothing is computed twice for the
columns of a feed. Only what an output needs becomes an instruction. The kernel's `expression.hpp` says what operations
there are.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ivme.engine.codes.dictionary import NULL_CODE
from ivme.query.types import Type

Instruction = tuple[str, int, int, int, int, int]
"""Operation, target, first and second operand, mask, and a number of the operation's own."""

WORD, REAL, WIDE = "w", "r", "d"
"""The kinds of registers: codes and integers of 64 bits, floats, and decimals of 128 bits without their point."""

_OUTPUT = "o"
_CHECKS = ("fits_wide", "fits_word")
_MASKS = ("mask_true", "mask_not_true", "mask_not_false")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value for each row. `mask` says in which rows a failure counts, or selects; `k` belongs to the operation."""

    operation: str
    kind: str
    a: Node | None = None
    b: Node | None = None
    mask: Node | None = None
    k: Any = 0


@dataclass(frozen=True, slots=True)
class FlatProgram:
    """What the kernel runs. `constants` are registers with two words each; `literals` are those of text, whose codes
    are found again whenever codes have changed their meaning. Of the tables and foreign columns that the graph's nodes
    number, only those in `tables` and `foreign` are needed, and instructions number these."""

    kinds: str
    instructions: list[Instruction]
    constants: list[tuple[int, int, int]]
    literals: list[tuple[int, Type, Any]]
    tables: list[int]
    foreign: list[int]


@dataclass(slots=True)
class Graph:
    """Makes nodes over `inputs` columns of codes."""

    inputs: int
    _known: dict[Hashable, Node] = field(default_factory=dict)

    def node(
        self,
        operation: str,
        kind: str,
        a: Node | None = None,
        b: Node | None = None,
        *,
        mask: Node | None = None,
        k: Hashable = 0,
    ) -> Node:
        key = (operation, kind, id(a), id(b), id(mask), k)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Node(operation, kind, a, b, mask, k)
        return found

    def input(self, position: int) -> Node:
        return self.node("input", WORD, k=position)

    def word(self, value: int) -> Node:
        return self.node("constant", WORD, k=(value, 0))

    def wide(self, value: int) -> Node:
        return self.node("constant", WIDE, k=(_signed(value), _signed(value >> 64)))

    def real(self, bits: int) -> Node:
        return self.node("constant", REAL, k=(bits, 0))

    def literal(self, type_: Type, value: Any) -> Node:
        """The code of a constant that a dictionary has."""
        return self.node("literal", WORD, k=(type_, value))

    def null(self, kind: str) -> Node:
        if kind == REAL:
            return self.real(_NAN_BITS)
        return self.word(NULL_CODE) if kind == WORD else self.wide(-(2**127))

    def narrowed(self, operation: str, mask: Node | None, truth: Node) -> Node:
        """The rows of a mask for which a truth value is as `operation` says."""
        assert operation in _MASKS
        return self.node(operation, WORD, truth, mask=mask)

    def flat(self, outputs: Iterable[Node]) -> FlatProgram:
        """The instructions for some outputs, each after its operands."""
        return _Flattening(self).program(outputs)


_NAN_BITS = 0x7FF8000000000000


def _signed(word: int) -> int:
    word &= 2**64 - 1
    return word - 2**64 if word >= 2**63 else word


class _Flattening:
    """Gives registers to nodes in the order in which they are needed. Register `inputs` is the mask of all rows."""

    def __init__(self, graph: Graph) -> None:
        self._all = graph.inputs
        self._kinds = WORD * graph.inputs + WORD
        self._instructions: list[Instruction] = []
        self._constants = [(graph.inputs, 1, 0)]
        self._literals: list[tuple[int, Type, Any]] = []
        self._registers: dict[int, int] = {}
        self._used: dict[str, list[int]] = {"look_up": [], "foreign": []}

    def program(self, outputs: Iterable[Node]) -> FlatProgram:
        for output in outputs:
            self._register(output)
        used = self._used["look_up"], self._used["foreign"]
        return FlatProgram(self._kinds, self._instructions, self._constants, self._literals, *used)

    def _register(self, node: Node | None) -> int:
        """The register of a node; those that it needs come first, one after the other: there may be a thousand."""
        if node is None:
            return self._all
        waiting = [node]
        while waiting:
            last = waiting[-1]
            needed = (last.b, last.a, last.mask)
            missing = [each for each in needed if each is not None and id(each) not in self._registers]
            if missing:
                waiting += missing
                continue
            if id(last) not in self._registers:
                self._registers[id(last)] = self._made(last)
            waiting.pop()
        return self._registers[id(node)]

    def _made(self, node: Node) -> int:
        if node.operation == "input":
            return int(node.k)
        if node.operation == "constant":
            target = self._target(node.kind)
            self._constants.append((target, *node.k))
            return target
        if node.operation == "literal":
            target = self._target(node.kind)
            self._literals.append((target, *node.k))
            return target
        mask, a, b = self._register(node.mask), self._register(node.a), self._register(node.b)
        if node.operation in _CHECKS:
            self._instructions.append((node.operation, 0, a, 0, mask, node.k))
            return a
        if node.operation == "doubt":
            self._instructions.append((node.operation, 0, 0, 0, mask, 0))
            return a
        if node.kind == _OUTPUT:
            operation, output = node.k
            self._instructions.append((operation, output, a, 0, mask, 0))
            return a
        target = self._target(node.kind)
        self._instructions.append((node.operation, target, a, b, mask, self._number(node)))
        return target

    def _number(self, node: Node) -> int:
        """A node's number, that of a table or foreign column among those that are used."""
        used = self._used.get(node.operation)
        if used is None:
            return int(node.k)
        if node.k not in used:
            used.append(node.k)
        return used.index(node.k)

    def _target(self, kind: str) -> int:
        self._kinds += kind
        return len(self._kinds) - 1
