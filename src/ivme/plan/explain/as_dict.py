"""An explanation as plain values: strings, lists and mappings. Exponents are strings such as "3/2" or "max(ε, 1-ε)"."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ivme.plan.assemble.stored import stored_map
from ivme.plan.explain.as_text import fracture_lines
from ivme.plan.explain.draw import Box
from ivme.plan.explain.verdict import verdict
from ivme.plan.ir.exponent import Bound
from ivme.plan.ir.program import Program
from ivme.plan.order.variable_order import OrderNode, VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.plan.strategy.options import Epsilon

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import BlockExplanation, Explanation


def explanation_dict(explanation: Explanation) -> dict[str, Any]:
    """The explanation under the names of its fields."""
    epsilon = explanation.epsilon if isinstance(explanation.epsilon, Fraction) else None
    program = explanation.program
    return {
        "query": str(explanation.query),
        "query_class": explanation.query_class,
        "strategy": explanation.strategy,
        "reason": explanation.reason,
        "static_width": _number(explanation.static_width),
        "dynamic_width": _number(explanation.dynamic_width),
        **{name: _bound(getattr(explanation, name), epsilon) for name in ("preprocessing", "update", "delay", "space")},
        "updates": {cost.table: _bound(cost.update, epsilon) for cost in explanation.costs},
        "verdict": verdict(explanation),
        "lower_bound": _lower_bound(explanation),
        "fracture": {
            "components": fracture_lines(explanation.query, explanation.fracture),
            "origin": dict(explanation.fracture.origin),
        },
        "variable_orders": [_order(order) for order in explanation.variable_orders],
        "view_trees": [] if program is None else [_tree(program, tree) for tree in explanation.view_trees],
        "mark_trees": [_box(box) for box in explanation.mark_trees],
        "maps": [] if program is None else [_map(program, m.name) for m in program.maps],
        "program": None if program is None else str(program),
        "notes": list(explanation.notes),
        "epsilon": _epsilon(explanation.epsilon),
        "blocks": [_block(each) for each in explanation.blocks],
    }


def _block(block: BlockExplanation) -> dict[str, Any]:
    own = block.explanation
    epsilon = own.epsilon if isinstance(own.epsilon, Fraction) else None
    return {
        "name": block.name,
        "text": block.text,
        "reads": list(block.reads),
        "strategy": own.strategy,
        "query_class": own.query_class,
        **{name: _bound(getattr(own, name), epsilon) for name in ("preprocessing", "update", "delay", "space")},
        "rows_in": block.rows_in,
        "rows_out": block.rows_out,
    }


def _number(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _epsilon(value: Epsilon | None) -> str | dict[str, str] | None:
    if isinstance(value, tuple):
        return {relation: str(number) for relation, number in value}
    return None if value is None else str(value)


def _bound(value: Bound | None, epsilon: Fraction | None) -> dict[str, Any] | None:
    """`value` is the exponent at the chosen ε, None if it depends on an ε that was not chosen."""
    if value is None:
        return None
    at = Fraction(0) if not value.depends_on_epsilon else epsilon
    return {
        "text": str(value),
        "exponent": str(value.exponent),
        "value": None if at is None else str(value.exponent.at(at)),
        "amortised": value.amortised,
    }


def _lower_bound(explanation: Explanation) -> dict[str, str] | None:
    found = explanation.lower_bound
    if found is None:
        return None
    return {"text": found.text, "exponent": str(found.exponent), "source": found.source, "pattern": found.pattern}


def _order(order: VariableOrder) -> dict[str, Any]:
    def node(each: OrderNode) -> dict[str, Any]:
        return {
            "variable": each.variable,
            "dependency": sorted(each.dependency),
            "atoms": list(each.atoms),
            "indicators": [str(indicator) for indicator in each.indicators],
            "children": [node(child) for child in each.children],
        }

    return {"roots": [node(root) for root in order.roots], "nullary": list(order.nullary)}


def _tree(program: Program, node: ViewNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "kind": node.kind,
        "schema": list(node.schema),
        "map": stored_map(program, node),
        "children": [_tree(program, child) for child in node.children],
    }


def _box(box: Box) -> dict[str, Any]:
    children = [_box(child) for child in box.children]
    return {"name": box.label, "kind": box.kind, "stored": box.stored, "map": box.map, "children": children}


def _map(program: Program, name: str) -> dict[str, Any]:
    declared = program.map(name)
    schema, exponent = list(declared.schema), str(declared.exponent)
    return {"name": declared.name, "schema": schema, "role": declared.role, "exponent": exponent}
