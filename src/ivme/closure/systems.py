"""The incremental evaluation systems of source 004 for transitive closure, one for each class of graphs.

The input is `edge(src, dst)` and the answer `tc(src, dst)`: pairs with a path of at least one edge, so that (x, x) is
there if x lies on a cycle; in an undirected graph every node with an edge does. The programs are the
`.sql` files beside this module.
"""

from __future__ import annotations

from importlib import resources

from ivme.closure.ies import IES, Refusal, Row, make_ies, relation
from ivme.closure.program_text import read_program

PATH_ROWS = 100_000
"""How many rows of paths the IES for any digraph keeps; simple paths may be exponentially many."""


def acyclic_closure(node: str = "int", *, printed: bool = False) -> IES:
    """Section 2: no auxiliary tables; an edge that would close a cycle is refused, and the cycle named.

    With `printed` a deletion is done exactly as the source has it (but for erratum 8), which joins the whole closure
    with itself twice; the default looks only at the edges that lead out of what leads to the deleted one.
    """
    delete = "acyclic_delete_printed" if printed else "acyclic_delete"
    return make_ies(
        "acyclic",
        {"edge": _ends(node)},
        relation("tc", _ends(node)),
        {},
        sql("acyclic_insert"),
        sql(delete),
        on_insert_many={"edge": read_program(sql("acyclic_insert_many"))},
        on_delete_many={"edge": read_program(sql("acyclic_delete_many"))},
        refusals=(Refusal("cycle", 0, _cycle_message),),
    )


def undirected_closure(node: str = "int", *, order: str = "value") -> IES:
    """Section 3: FOREST and THROUGH; the least replacement edge, by the nodes' values or by the table LESSTHAN.

    With `order="lessthan"` nodes are ordered as they come, in a table that is maintained, too; many edges at once are
    then taken one after the other.
    """
    by_table = order == "lessthan"
    through = {"a": node, "v": node, "b": node}
    auxiliary = {"forest": {"a": node, "b": node}, "through": through}
    insert, delete = ["undirected_insert"], ["undirected_delete", f"undirected_least_by_{order}", "undirected_replace"]
    if by_table:
        auxiliary["lessthan"] = {"small": node, "large": node}
        insert, delete = ["lessthan_insert", *insert], ["lessthan_delete", *delete]
    join = "undirected_join_many"
    return make_ies(
        "undirected",
        {"edge": _ends(node)},
        relation(
            "tc",
            _ends(node),
            "SELECT DISTINCT a AS src, b AS dst FROM through "
            "UNION SELECT src, src AS dst FROM edge UNION SELECT dst AS src, dst FROM edge",
        ),
        auxiliary,
        sql(*insert),
        sql(*delete),
        on_insert_many={} if by_table else {"edge": read_program(sql("undirected_insert_many", join))},
        on_delete_many={} if by_table else {"edge": read_program(sql("undirected_delete_many", join))},
    )


def digraph_closure(node: str = "int", *, most_path_rows: int = PATH_ROWS) -> IES:
    """Section 4: all simple paths, numbered, edge by edge; exponentially many at worst, so there is a limit."""
    auxiliary = {"paths": {"pnum": "int", "st": node, "en": node, "ints": node, "intd": node}}

    def too_many(_changed: list[Row], _edges: list[Row]) -> str:
        return (
            f"the table of paths would have more than {most_path_rows} rows; nothing was changed. Simple paths can be "
            "exponentially many: use the in-memory strategy `closure` instead, as in "
            "db.create_view('reach', 'Q(X, Y) = closure(edge)'), or raise most_path_rows"
        )

    return make_ies(
        "digraph",
        {"edge": _ends(node)},
        relation("tc", _ends(node), "SELECT DISTINCT st AS src, en AS dst FROM paths"),
        auxiliary,
        sql("digraph_insert"),
        sql("digraph_delete"),
        refusals=tuple(Refusal(table, most_path_rows, too_many) for table in ("v1", "vins", "paths")),
    )


def sql(*names: str) -> str:
    """The text of programs of this package, one behind the other."""
    folder = resources.files("ivme.closure") / "sql"
    return "\n".join((folder / f"{name}.sql").read_text(encoding="utf-8") for name in names)


def _ends(node: str) -> dict[str, str]:
    return {"src": node, "dst": node}


def _cycle_message(changed: list[Row], edges: list[Row]) -> str:
    """Names a cycle that the changed edges would close."""
    ahead: dict[object, list[object]] = {}
    for start, end in [*edges, *changed]:
        ahead.setdefault(start, []).append(end)
    for start, end in changed:
        path = _path(ahead, end, start)
        if path is not None:
            shown = " -> ".join(map(repr, [start, *path]))
            return f"the edge {(start, end)!r} would close the cycle {shown}; nothing was changed"
    raise AssertionError("a cycle was reported, but none is there")


def _path(ahead: dict[object, list[object]], start: object, end: object) -> list[object] | None:
    """The nodes of a path, perhaps without edges."""
    before: dict[object, object] = {start: start}
    queue = [start]
    for node in queue:
        if node == end:
            path = [node]
            while path[-1] != start:
                path.append(before[path[-1]])
            return path[::-1]
        for other in ahead.get(node, ()):
            if other not in before:
                before[other] = node
                queue.append(other)
    return None
