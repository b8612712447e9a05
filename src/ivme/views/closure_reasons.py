"""Why two nodes are a pair of a closure, or why not: the edges of a path, or what is missing for one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ivme.closure.group import ClosureGroup
from ivme.engine.read.derivations import with_whole_rows
from ivme.engine.read.reasons import Finding, Row
from ivme.engine.read.recompute import tuples_of
from ivme.engine.runtime.reader import Reader
from ivme.query.model import Atom, Query


def path_edges(reader: Reader, group: ClosureGroup, query: Query, src: Any, dst: Any) -> Finding:
    """The rows of the edges of a shortest path, in its order; linear in the edges.

    NULL equals nothing, so that an edge from it begins a path, and one to it ends one.
    """
    (relation,) = (atom.relation for atom in query.atoms)
    stored = _stored(reader, query)
    if group.graph == "undirected":
        stored = {(b, a): row for (a, b), row in stored.items()} | stored
    firsts = [pair[1] for pair in stored if pair[0] is None] if src is None else [src]
    lasts = [pair[0] for pair in stored if pair[1] is None] if dst is None else [dst]
    is_whole = src is not None and dst is not None
    ways = (
        [first] if first == last and not is_whole else group.path(first, last) for first in firsts for last in lasts
    )
    if (src, dst) in stored:
        nodes = [src, dst]
    else:
        known = min((way for way in ways if way is not None), key=len)
        nodes = [*([None] if src is None else []), *known, *([None] if dst is None else [])]
    return Finding(relation, (), tuple(stored[step] for step in itertools.pairwise(nodes)))


def _stored(reader: Reader, query: Query) -> dict[Row, Row]:
    """A whole row of the table for each edge."""
    whole, (shown,) = with_whole_rows(query, reader, None)
    (atom,) = whole.atoms
    ends = [str(term) for term in query.atoms[0].terms[:2]]
    found: dict[Row, Row] = {}
    for values, weight in tuples_of(reader, atom, frozenset()):
        if weight:
            found.setdefault(tuple(values[end] for end in ends), tuple(values[name] for name in shown))
    return found


def missing_path(
    reader: Reader, group: ClosureGroup, atom: Atom, ends: Sequence[tuple[str, Any]]
) -> tuple[Finding, ...]:
    """Which end has no edge, or that no path leads from one to the other; `ends` have the names to tell them by."""
    terms = [str(term) for term in atom.terms[:2]]
    rows = [values for values, weight in tuples_of(reader, atom, frozenset()) if weight]
    there = [{values[term] for values in rows} for term in terms]
    if group.graph == "undirected":
        there = [there[0] | there[1]] * 2
    lacking = [(end,) for end, values in zip(ends, there, strict=True) if end[1] not in values]
    return tuple(Finding(atom.relation, at, ()) for at in lacking) or (
        Finding(f"a path along {atom.relation}", tuple(ends), ()),
    )
