"""Drawings of mark trees: each node's good tuples above its base and the supports that it needs."""

from __future__ import annotations

from ivme.plan.assemble.blueprint import Node, StoredView
from ivme.plan.assemble.mark_blueprint import Marks, shared
from ivme.plan.assemble.stored import leaf_map
from ivme.plan.explain.draw import Box
from ivme.plan.ir.program import Program
from ivme.plan.order.mark_tree import MarkNode
from ivme.plan.order.templates import Template


def mark_boxes(marks: Marks, program: Program) -> tuple[Box, ...]:
    """The mark trees of a program; what no map holds is only passed through."""

    def base(node: MarkNode) -> Box:
        if isinstance(node.base, Template):
            return _box(marks.base(node), program, *(_box(part, program) for part in marks.generators(node.base)))
        return support(node.base, node.schema) if isinstance(node.base, MarkNode) else _box(marks.base(node), program)

    def good(node: MarkNode) -> Box:
        if not node.supports:
            return base(node)
        below = (support(child, shared(node, child)) for child in node.supports)
        return _box(marks.good(node), program, base(node), *below)

    def support(node: MarkNode, schema: tuple[str, ...]) -> Box:
        counted = marks.support(node, schema)
        if counted == marks.good(node):
            return good(node)
        return _box(counted, program, good(node)) if isinstance(counted, StoredView) else _box(counted, program)

    return tuple(good(root) for root, _ in marks.forest.roots)


def _box(node: Node, program: Program, *below: Box) -> Box:
    """A view under its own name, a relation as its projection; leaves and their supports are always stored."""
    listed = ", ".join(node.schema)
    if isinstance(node, StoredView):
        held = next((declared.name for declared in program.maps if declared.name == node.name), None)
        return Box(f"{node.name}({listed})", node.role, held is not None, below, held)
    label = getattr(node, "label", "")
    return Box(f"∃{label}({listed})", "indicator", True, below, leaf_map(program, label, node.schema, indicator=True))
