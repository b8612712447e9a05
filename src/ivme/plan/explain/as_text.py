"""An explanation as text for the terminal: the guarantee, the lower bound of any algorithm, and how it is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from textwrap import wrap
from typing import TYPE_CHECKING

from ivme.plan.explain.block_text import WIDTH, block_sections
from ivme.plan.explain.draw import Box, order_boxes, text_tree
from ivme.plan.explain.verdict import shown_table, verdict
from ivme.plan.ir.exponent import Bound, bound
from ivme.query.model import Query
from ivme.query.parse import is_sql
from ivme.structure.fracture import Fracture

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import Explanation

_CLASSES = {
    "CQAP0": "the fracture is hierarchical, free-dominant and input-dominant",
    "CQAP1": "the fracture is hierarchical, and almost free- and input-dominant where not dominant",
    "hierarchical": "the fracture is hierarchical",
    "triangle/C_count": "a triangle without free variables",
    "triangle/C1": "a triangle with one input, or with one output and no input",
    "triangle/C2": "a triangle with two inputs, or with two outputs and no input",
    "triangle/C3": "a triangle with three outputs",
    "loomis-whitney": "n variables, and a relation for each n-1 of them",
    "path-4": "a path of four relations",
    "cycle-4": "a cycle of four relations",
    "free-connex": "the fracture is acyclic, also with its free variables as a further atom",
    "acyclic": "the fracture is acyclic",
    "cyclic": "the fracture has a cycle",
    "closure/digraph": "the transitive closure of a table of edges",
    "closure/acyclic": "the transitive closure of a table of edges that promises to have no cycle",
    "closure/undirected": "the connected nodes of a table of undirected edges",
    "closure/joined": "over the transitive closure of a table of edges as a relation",
}


def explanation_text(explanation: Explanation) -> str:
    """The whole explanation, at most 100 columns wide as far as names allow it."""
    sections = [
        *block_sections(explanation),
        *_heading(explanation),
        *_bounds(explanation),
        *_fracture(explanation),
        *_trees(explanation),
    ]
    return "\n\n".join("\n".join(section) for section in [*sections, *_notes(explanation.notes)])


def brief_text(explanation: Explanation) -> str:
    """What the view costs and what would lower that, without the proof: no class, widths, trees or lower bounds."""
    costs = [("strategy", explanation.strategy or f"none: {explanation.reason}"), *_cost_pairs(explanation)]
    blocks = [*block_sections(explanation)]
    advice = [note for note in explanation.notes if "lower bound" not in note]
    sections = [*(blocks or [[*_written(explanation)]]), *_verdict(explanation), _table(costs), *_notes(advice)]
    return "\n\n".join("\n".join(section) for section in sections)


def summary_lines(explanation: Explanation) -> list[str]:
    """The class, the plan and its bounds, one a line, with the lower bound of any algorithm."""
    named = _CLASSES.get(explanation.query_class)
    pairs = [("class", f"{explanation.query_class}: {named}" if named else explanation.query_class)]
    pairs.append(("strategy", f"{explanation.strategy or 'none'}: {explanation.reason}"))
    pairs += _cost_pairs(explanation)
    if explanation.dynamic_width is not None:
        pairs.append(("widths", f"dynamic δ = {explanation.dynamic_width}, static w = {explanation.static_width}"))
    return _table(pairs)


def _cost_pairs(explanation: Explanation) -> list[tuple[str, str]]:
    """The bounds, each with its name; nothing where no strategy maintains the view."""
    if explanation.update is None:
        return []
    epsilon = explanation.epsilon if isinstance(explanation.epsilon, Fraction) else None
    bounds = ("update", "delay", "preprocessing", "space")
    told = {name: bound_text(getattr(explanation, name), epsilon) for name in bounds}
    told["update"] += _by_table(explanation)
    return [*told.items()]


def _by_table(explanation: Explanation) -> str:
    """The bounds of the tables, where they differ."""
    if len({cost.update for cost in explanation.costs}) < 2:
        return ""
    return ", the worst of " + ", ".join(f"{shown_table(cost.table)} {cost.update}" for cost in explanation.costs)


def lower_bound_lines(explanation: Explanation) -> list[str]:
    """What no algorithm can beat, and why; nothing where no bound is claimed."""
    found = explanation.lower_bound
    if found is None:
        return []
    return _table([("bound", found.text), ("because", found.pattern), ("source", found.source)])


def bound_text(value: Bound, epsilon: Fraction | None) -> str:
    """A bound, and its value at the chosen ε if it depends on it.

    >>> from ivme.plan.ir.exponent import linear
    >>> bound_text(bound(linear(1, -1)), Fraction(1, 4))
    'O(N^(1-ε)), at ε = 1/4 O(N^(3/4))'
    """
    if epsilon is None or not value.depends_on_epsilon:
        return str(value)
    there = bound(value.exponent.at(epsilon), amortised=value.amortised)
    return f"{value}, at ε = {epsilon} {there}"


def fracture_lines(query: Query, fracture: Fracture) -> list[str]:
    """The components of a fracture as queries, with terms in their written order."""
    names = [_renaming(fracture, index) for index in range(len(query.atoms))]
    lines = []
    for component in fracture.components:
        labels = [edge.label for edge in component.hypergraph.edges]
        body = []
        for index, edge in enumerate(fracture.whole.hypergraph.edges):
            if edge.label in labels:
                terms = (names[index].get(t, t) if isinstance(t, str) else str(t) for t in query.atoms[index].terms)
                body.append(f"{edge.label}({', '.join(terms)})")
        output = ", ".join(v for v in query.output if v in component.output) or "."
        given = ", ".join(sorted(component.input)) or "."
        lines.append(f"{query.name}({output} | {given}) = {', '.join(body)}")
    return lines


def _renaming(fracture: Fracture, index: int) -> dict[str, str]:
    return {fracture.original(variable): variable for variable in fracture.whole.hypergraph.edges[index].variables}


def _heading(explanation: Explanation) -> Iterator[list[str]]:
    yield _query(str(explanation.query)) if explanation.blocks else _written(explanation)
    yield from _verdict(explanation)
    yield summary_lines(explanation)


def _written(explanation: Explanation) -> list[str]:
    """The text of the user; of a query that was made otherwise, the rule that it is."""
    return _query(" ".join(explanation.query.text.split()) if _is_sql(explanation) else str(explanation.query))


def _is_sql(explanation: Explanation) -> bool:
    return bool(explanation.query.text) and is_sql(explanation.query.text)


def _query(text: str) -> list[str]:
    return wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False)


def _verdict(explanation: Explanation) -> Iterator[list[str]]:
    told = verdict(explanation)
    if told:
        yield wrap(told, WIDTH, break_long_words=False, break_on_hyphens=False)


def _notes(notes: Sequence[str]) -> Iterator[list[str]]:
    if notes:
        yield ["notes", *(line for note in notes for line in _item(note))]


def _bounds(explanation: Explanation) -> Iterator[list[str]]:
    lines = lower_bound_lines(explanation)
    if lines:
        yield ["lower bound", *_indented(lines)]


def _fracture(explanation: Explanation) -> Iterator[list[str]]:
    query, fracture = explanation.query, explanation.fracture
    renamed = any(variable != original for variable, original in fracture.origin)
    if len(fracture.components) == 1 and not renamed:
        rule = _query(str(query)) if _is_sql(explanation) and not explanation.blocks else []
        yield ["fracture", "  the query itself", *_indented(_indented(rule))]
        return
    lines = (wrap(line, WIDTH - 2, subsequent_indent="    ") for line in fracture_lines(query, fracture))
    given = "given the inputs, " if query.input else ""
    yield [f"fracture: {given}these are independent", *_indented(part for line in lines for part in line)]


def _trees(explanation: Explanation) -> Iterator[list[str]]:
    for order in explanation.variable_orders:
        yield ["variable order, with dependency sets and atoms", *_forest(order_boxes(order))]
    if explanation.plan is None:
        return
    boxes = explanation.drawing()
    if explanation.view_trees or explanation.mark_trees:
        title = "mark tree" if explanation.mark_trees else "view tree"
        title += "s" if len(boxes) > 1 else ""
        yield [f"{title} (● stored, ○ passed through)", *_forest(boxes)]
    else:
        yield ["maps", *_forest(boxes)]


def _forest(boxes: Iterable[Box]) -> list[str]:
    return _indented(line for box in boxes for line in text_tree(box, WIDTH - 2))


def _table(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Names and values in two columns, values wrapped."""
    lines: list[str] = []
    for name, value in pairs:
        first, *rest = wrap(value, WIDTH - 17, break_long_words=False, break_on_hyphens=False)
        lines += [f"{name:<15}{first}", *(" " * 15 + line for line in rest)]
    return lines


def _item(text: str) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
