"""Why a row is in a view that marks keep, and which relation has no partner for one that is not.

The structure knows for each tuple which supports it has and which it lacks (source 002, section 3): what is told here
is read off its maps. It takes time linear in the maps that are looked at, as they are scanned, not searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ivme.engine.read.reasons import Finding, Reasons, Row, first_few
from ivme.engine.runtime.reader import Reader
from ivme.engine.runtime.view_state import ViewState
from ivme.plan.assemble.blueprint import Leaf, Node
from ivme.plan.assemble.catalog import qualified
from ivme.plan.assemble.mark_blueprint import Marks, shared
from ivme.plan.assemble.plan import Plan
from ivme.plan.order.mark_tree import MarkNode, Relation
from ivme.plan.order.templates import Template

Known = Mapping[str, int | None]
"""Codes of variables; None for a value that occurs nowhere."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tuples:
    """Tuples over some variables, one in each row of `codes`."""

    variables: tuple[str, ...]
    codes: Array

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, key: Known) -> Tuples:
        """Those that agree with a key, as far as it is about their variables."""
        kept = np.ones(len(self), bool)
        for column, variable in enumerate(self.variables):
            if variable in key:
                kept &= np.zeros(len(self), bool) if key[variable] is None else self.codes[:, column] == key[variable]
        return Tuples(self.variables, self.codes[kept])

    def within(self, others: Tuples) -> Array:
        """Which of them agree with one of the others on all its variables."""
        mine = self.codes[:, [self.variables.index(variable) for variable in others.variables]]
        if not others.variables:
            return np.full(len(self), len(others) > 0)
        return np.isin(_whole_rows(mine), _whole_rows(others.codes))

    def key(self, number: int, variables: tuple[str, ...]) -> Known:
        """The codes of some variables in one of the tuples."""
        return {v: int(self.codes[number, self.variables.index(v)]) for v in variables}

    def joined(self, others: Tuples) -> Tuples:
        """All pairs that agree, by nested loops."""
        new = tuple(variable for variable in others.variables if variable not in self.variables)
        rows = [
            [*row, *(match[others.variables.index(v)] for v in new)]
            for row in self.codes.tolist()
            for match in others.at(dict(zip(self.variables, row, strict=True))).codes.tolist()
        ]
        variables = self.variables + new
        return Tuples(variables, np.array(rows, np.int64).reshape(len(rows), len(variables)))


def _whole_rows(codes: Array) -> Array:
    """Rows as single values that can be compared."""
    columns = codes.shape[1]
    whole: Array = np.ascontiguousarray(codes).view([("", np.int64)] * columns).reshape(-1)
    return whole


class Partners:
    """The maps of one view's marks, read as they are now; `given` are the values of its free variables."""

    def __init__(self, reader: Reader, state: ViewState, plan: Plan, given: Mapping[str, Any]) -> None:
        self._reader = reader
        self._state = state
        assert plan.marks is not None, "only marks tell why"
        self._forest = plan.marks
        self._given = given
        self._marks = Marks(plan.marks, plan.blueprint.leaves)
        self._originals = dict(plan.blueprint.leaves.inputs)
        self._scanned: dict[Node, Tuples] = {}

    def reasons(self, row: Row, known: Known, *, present: bool) -> Reasons:
        """Why the row with these codes is there, or what it lacks."""
        findings: list[Finding] = []
        for root, _ in self._forest.roots:
            if present:
                findings.append(self._partner(root, known))
            else:
                findings += [finding for node in root.walk() for finding in self._lacking(node, known)]
        return Reasons(self._state.name, row, present, tuple(findings))

    def _partner(self, node: MarkNode, known: Known) -> Finding:
        """A node's good tuples at a key, and the partners of the first."""
        read = tuple(self._partner(child, _narrowed(known, child.schema)) for child in node.children)
        if isinstance(node.base, MarkNode):
            inner = self._partner(node.base, known)
            return replace(inner, below=inner.below + read)
        tuples = self._tuples(node, known)
        good = Tuples(tuples.variables, tuples.codes[self._bad(node, tuples).sum(axis=1) == 0])
        below = [self._partner(child, good.key(0, shared(node, child))) for child in node.filters]
        if isinstance(node.base, Template):
            parts = [MarkNode(label, schema, Relation(label)) for label, schema in node.base.generators]
            below = [*(self._partner(part, good.key(0, part.schema)) for part in parts), *below]
        return self._finding(node, known, good, (*below, *read))

    def _lacking(self, node: MarkNode, known: Known) -> list[Finding]:
        """What keeps a node from having a good tuple at a key; nothing if it has one."""
        if isinstance(node.base, MarkNode):
            return self._lacking(node.base, _narrowed(known, node.schema))
        tuples = self._tuples(node, known)
        bad = self._bad(node, tuples)
        if not len(tuples):
            return self._nothing(node, known)
        if (bad.sum(axis=1) == 0).any():
            return []
        findings = []
        for number in first_few(range(len(tuples))):
            marked = [child for child, mark in zip(node.filters, bad[number], strict=True) if mark]
            keys = [(child, tuples.key(number, shared(node, child))) for child in marked]
            below = tuple(finding for child, key in keys for finding in self._lacking(child, key))
            one = Tuples(tuples.variables, tuples.codes[number : number + 1])
            findings.append(self._finding(node, known, one, below))
        findings[-1] = replace(findings[-1], more=len(tuples) - len(findings))
        return findings

    def _nothing(self, node: MarkNode, known: Known) -> list[Finding]:
        """A relation without a row, or the generators of a template that have none; all of them if only together."""
        nothing = Tuples((), np.empty((0, 0), np.int64))
        if isinstance(node.base, Template):
            parts = [MarkNode(label, schema, Relation(label)) for label, schema in node.base.generators]
            empty = [part for part in parts if not len(self._tuples(part, known))]
            if empty:
                return [self._finding(part, _narrowed(known, part.schema), nothing, ()) for part in empty]
        return [self._finding(node, known, nothing, ())]

    def _bad(self, node: MarkNode, tuples: Tuples) -> Array:
        """The marks of tuples, a column for each filter: where a tuple finds no partner. Children speak for
        themselves."""
        supports = [self._scan(self._marks.support(child, shared(node, child))) for child in node.filters]
        columns = [~tuples.within(support) for support in supports]
        return np.stack(columns, axis=1) if columns else np.zeros((len(tuples), 0), bool)

    def _tuples(self, node: MarkNode, known: Known) -> Tuples:
        """The tuples of a relation, with all its variables, or of a template, that agree with a key."""
        if isinstance(node.base, Template):
            first, *others = (self._scan(part).at(known) for part in self._marks.generators(node.base))
            for other in others:
                first = first.joined(other)
            return first
        assert isinstance(node.base, Relation)
        label = node.base.label
        return self._scan(Leaf(label, self._marks.leaves.schemas[label])).at(_narrowed(known, node.schema))

    def _scan(self, node: Node) -> Tuples:
        """The entries of a node's map."""
        if node not in self._scanned:
            storage = self._state.group.views[self._state.name].assembly.storage
            mine = qualified(node, self._state.name)
            columns, counts = self._reader.catalog.backend.scan(storage.declare(mine))
            codes = np.stack(columns, axis=1) if columns else np.empty((len(counts), 0), np.int64)
            self._scanned[node] = Tuples(storage.variables(mine), codes)
        return self._scanned[node]

    def _finding(self, node: MarkNode, known: Known, tuples: Tuples, below: tuple[Finding, ...]) -> Finding:
        relation, schema = node.name, node.schema
        if isinstance(node.base, Template):
            joined = " ⋈ ".join(label for label, _ in node.base.generators)
            relation = f"{joined} over ({', '.join(self._originals.get(v, v) for v in schema)})"
        elif isinstance(node.base, Relation):
            schema = self._marks.leaves.schemas[node.base.label]
        at = tuple((self._originals.get(v, v), self._value(v, known[v])) for v in node.schema if v in known)
        rows = [tuples.key(number, schema) for number in first_few(range(len(tuples)))]
        decoded = tuple(tuple(self._value(v, row[v]) for v in schema) for row in rows)
        return Finding(relation, at, decoded, len(tuples) - len(decoded), below)

    def _value(self, variable: str, code: int | None) -> Any:
        original = self._originals.get(variable, variable)
        return self._given[original] if code is None else self._state.finisher.domain(original).decode_value(code)


def _narrowed(known: Known, schema: tuple[str, ...]) -> Known:
    return {variable: known[variable] for variable in schema if variable in known}
