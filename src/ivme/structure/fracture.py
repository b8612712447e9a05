"""The fracture: a query broken at its input variables (source 003, Definition 3.1).

Once the inputs are given, what hangs together only through them is independent. The answer to an access request
is the Cartesian product of the answers of the fracture's components, each maintained on its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ivme.structure.hypergraph import Cqap, Edge, Hypergraph, connected_edges


@dataclass(frozen=True, slots=True)
class Fracture:
    """A query's fracture as a whole and by components.

    `origin` pairs each variable of the fracture, sorted, with the variable of the query it stands for.
    """

    whole: Cqap
    components: tuple[Cqap, ...]
    origin: tuple[tuple[str, str], ...]

    def original(self, variable: str) -> str:
        """The query's variable that a variable of the fracture stands for."""
        return dict(self.origin).get(variable, variable)


def fracture(cqap: Cqap) -> Fracture:
    """Break a query at its input variables and merge again the copies that meet in one component.

    Edges are connected by what they share besides inputs. An input in one component keeps its name; one in
    several becomes `A_1`, `A_2`, ... by component. Edge labels and their order stay. The fracture of a fracture
    is itself.
    """
    edges = cqap.hypergraph.edges
    groups = connected_edges(edge.variables - cqap.input for edge in edges)
    names = _copies(cqap, groups)
    renamed: dict[int, Edge] = {}
    for component, group in enumerate(groups):
        for index in group:
            variables = (names.get((variable, component), variable) for variable in edges[index].variables)
            renamed[index] = Edge(edges[index].label, frozenset(variables))
    hypergraph = Hypergraph(tuple(renamed[index] for index in range(len(edges))))
    whole = Cqap(hypergraph, cqap.output, frozenset(names.values()), cqap.ordered)
    components = tuple(whole.restricted(Hypergraph(tuple(renamed[index] for index in group))) for group in groups)
    origin = {variable: variable for variable in whole.variables}
    origin.update({name: variable for (variable, _), name in names.items()})
    return Fracture(whole, components, tuple(sorted(origin.items())))


def unbroken(cqap: Cqap) -> Fracture:
    """A query as it stands, in one piece, for strategies that keep inputs together."""
    return Fracture(cqap, (cqap,), tuple((variable, variable) for variable in sorted(cqap.variables)))


def _copies(cqap: Cqap, groups: list[list[int]]) -> dict[tuple[str, int], str]:
    """The name of each input variable in each component that has it; new names clash with no other."""
    edges = cqap.hypergraph.edges
    homes: dict[str, list[int]] = defaultdict(list)
    for component, group in enumerate(groups):
        for variable in sorted(cqap.input.intersection(*[frozenset().union(*(edges[i].variables for i in group))])):
            homes[variable].append(component)
    taken = set(cqap.variables)
    names: dict[tuple[str, int], str] = {}
    for variable, components in sorted(homes.items()):
        copies = [variable] if len(components) == 1 else _fresh(variable, len(components), taken)
        taken.update(copies)
        names.update({(variable, component): name for component, name in zip(components, copies, strict=True)})
    return names


def _fresh(variable: str, count: int, taken: set[str]) -> list[str]:
    separator = "_"
    while True:
        copies = [f"{variable}{separator}{number}" for number in range(1, count + 1)]
        if taken.isdisjoint(copies):
            return copies
        separator += "_"
