"""Drawings of a plan: trees in box-drawing characters for the terminal, and Mermaid text for web pages.

A `Box` is what every drawing is made of, here and in `svg`; plans without view trees are drawn as the maps that they
keep.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap

from ivme.plan.assemble.stored import stored_map
from ivme.plan.ir.program import Map, Program
from ivme.plan.order.variable_order import OrderNode, VariableOrder
from ivme.plan.order.view_tree import ViewNode
from ivme.query.model import Query

LEGEND = (("● stored", True), ("○ passed through", False))
LEAST_WIDTH = 24
"""Labels far to the right wrap at this width, not at the margin."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node of a drawing. `stored` is whether the program keeps it, None where that does not apply; `kind` is that of
    the view node, the role of the map, or "variable"; `map` is the map of the program that holds it, if any."""

    label: str
    kind: str
    stored: bool | None = None
    children: tuple[Box, ...] = ()
    map: str | None = None

    def walk(self) -> Iterator[Box]:
        """The boxes of the tree, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def view_boxes(program: Program, trees: Iterable[ViewNode]) -> tuple[Box, ...]:
    """The view trees of a program; the maps that it keeps, if it follows no trees."""

    def box(node: ViewNode) -> Box:
        held = stored_map(program, node)
        return Box(str(node), node.kind, held is not None, tuple(box(child) for child in node.children), held)

    boxes = tuple(box(tree) for tree in trees)
    return boxes or tuple(Box(str(declared), declared.role, True, (), declared.name) for declared in program.maps)


def map_boxes(program: Program) -> tuple[Box, ...]:
    """The maps of a plan without trees, each over what it is made of: the result over the views maintained for its
    changes, these over the tables or parts that they join; then the tables that no view joins, and the heavy keys."""

    def box(declared: Map, *children: Box) -> Box:
        return Box(str(declared), declared.role, True, children, declared.name)

    leaves = {declared.atoms[0]: box(declared) for declared in program.maps if declared.role == "leaf"}
    views = [each for each in program.maps if each.role not in ("leaf", "result", "heavy")]
    below = {label for view in views for label in view.atoms}
    inner = [box(view, *(leaves[label] for label in view.atoms if label in leaves)) for view in views]
    inner += [leaf for label, leaf in leaves.items() if label not in below]
    results = [each for each in program.maps if each.role == "result"]
    others = [box(each) for each in program.maps if each.role == "heavy"]
    return (*(box(each, *inner) for each in results), *([] if results else inner), *others)


def query_box(query: Query, strategy: str | None) -> Box:
    """A query that no program keeps, over the tables that it reads."""
    tables = (Box(str(atom), "atom", True) for atom in query.atoms)
    return Box(str(query).partition(" = ")[0], strategy or "query", None, tuple(tables))


def order_boxes(order: VariableOrder) -> tuple[Box, ...]:
    """A variable order: each variable with its dependency set and the atoms and indicators that hang from it."""

    def box(node: OrderNode) -> Box:
        below = ", ".join([*node.atoms, *map(str, node.indicators)])
        label = f"{node.variable} {{{', '.join(sorted(node.dependency))}}}" + (f"  {below}" if below else "")
        return Box(label, "variable", None, tuple(box(child) for child in node.children))

    return (*(box(root) for root in order.roots), *(Box(label, "variable") for label in order.nullary))


def text_tree(box: Box, width: int = 96) -> list[str]:
    """The lines of a tree within `width` columns, as far as names allow it.

    >>> print("\\n".join(text_tree(Box("V_A(A)", "view", True, (Box("R(A)", "atom", True), Box("S(A)", "atom"))))))
    ● V_A(A)
    ├─ ● R(A)
    └─ S(A)
    """
    mark = {True: "● ", False: "○ ", None: ""}[box.stored]
    label = wrap(box.label, max(LEAST_WIDTH, width - len(mark)), break_long_words=False, break_on_hyphens=False)
    bar = "│ " if box.children else "  "
    lines = [mark + label[0], *(bar + " " * len(mark) + more for more in label[1:])]
    for position, child in enumerate(box.children):
        last = position == len(box.children) - 1
        first, *rest = text_tree(child, width - 3)
        lines.append(("└─ " if last else "├─ ") + first)
        lines.extend(("   " if last else "│  ") + line for line in rest)
    return lines


def mermaid(boxes: Iterable[Box]) -> str:
    """The trees as a Mermaid flowchart; views that are only passed through are dashed."""
    lines = ["flowchart TD"]
    stored: list[str] = []
    passed: list[str] = []
    count = 0

    def draw(box: Box) -> str:
        nonlocal count
        name = f"n{count}"
        count += 1
        lines.append(f'    {name}["{_escaped(box.label)}"]')
        (passed if box.stored is False else stored).append(name)
        for child in box.children:
            lines.append(f"    {name} --- {draw(child)}")
        return name

    for box in boxes:
        draw(box)
    lines.append("    classDef stored fill:#e8f1fb,stroke:#1f5fa8,color:#10243e")
    lines.append("    classDef passed fill:#ffffff,stroke:#8a94a3,color:#4a5563,stroke-dasharray:5 4")
    lines += [
        f"    class {','.join(names)} {kind}" for kind, names in (("stored", stored), ("passed", passed)) if names
    ]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text in a quoted Mermaid label: entities are written with # there."""
    codes = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;"}
    return "".join(codes.get(character, character) for character in text)
