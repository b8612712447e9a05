"""Bodies that have algorithms of their own: triangles, Loomis-Whitney, short paths and cycles.

All are recognised up to the names of variables and relations, and the order of atoms.
"""

from __future__ import annotations

from collections import Counter

from ivme.structure.hypergraph import Cqap, Hypergraph


def triangle_class(cqap: Cqap) -> str | None:
    """The category of a triangle query by its access pattern, or None for other bodies (003, section 3.2.2)."""
    if loomis_whitney_degree(cqap.hypergraph) != 3:
        return None
    if len(cqap.input) == 3:
        return "C_lookup"
    free = len(cqap.input) or len(cqap.free)
    return f"C{free}" if free else "C_count"


def loomis_whitney_degree(hypergraph: Hypergraph) -> int | None:
    """n if the edges are all sets of n-1 out of n variables, each once, for n of at least 3 (003, chapter 9)."""
    schemas = {edge.variables for edge in hypergraph.edges}
    degree = len(hypergraph.vertices)
    if degree < 3 or not degree == len(schemas) == len(hypergraph.edges):
        return None
    return degree if all(len(schema) == degree - 1 for schema in schemas) else None


def is_four_path(hypergraph: Hypergraph) -> bool:
    """Whether the body is R(A,B), S(B,C), T(C,D), U(D,E)."""
    return _is_path(hypergraph, 4)


def is_three_path(hypergraph: Hypergraph) -> bool:
    """Whether the body is R(A,B), S(B,C), T(C,D)."""
    return _is_path(hypergraph, 3)


def is_four_cycle(hypergraph: Hypergraph) -> bool:
    """Whether the body is R(A,B), S(B,C), T(C,D), U(D,A)."""
    return _is_connected_graph(hypergraph, 4) and _degrees(hypergraph) == [2, 2, 2, 2]


def _is_path(hypergraph: Hypergraph, length: int) -> bool:
    return _is_connected_graph(hypergraph, length) and _degrees(hypergraph) == [1, 1] + [2] * (length - 1)


def _is_connected_graph(hypergraph: Hypergraph, edges: int) -> bool:
    binary = all(len(edge.variables) == 2 for edge in hypergraph.edges)
    return binary and len(hypergraph.edges) == edges and len(hypergraph.components()) == 1


def _degrees(hypergraph: Hypergraph) -> list[int]:
    return sorted(Counter(variable for edge in hypergraph.edges for variable in edge.variables).values())
