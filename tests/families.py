"""Families of queries with the best bounds that are known, for the table of docs/guarantees.md.

`known` is the best bound that we know of, with its source; `lag` says by what ours is worse. What ours is, is taken
from `explain`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import ivme
from ivme.plan.explain.explanation import Explanation
from ivme.plan.ir.exponent import bound

ZERO, HALF, TWO_THIRDS, ONE = Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1)

DYNAMIC = "Berkholz, Keppeler, Schweikardt, PODS 2017"
FOUR = "Hanauer, Henzinger, Hua, SAND 2022"
KEYS = "Olteanu, Huang, Koch, ICDE 2009"
INSERTS = "Abo Khamis, Kara, Olteanu, Suciu, 2024"
WALK = "elimination, record 0200"


@dataclass(frozen=True, slots=True)
class Family:
    """A query with the best known exponents of update time and delay; balanced where a source has a trade-off."""

    name: str
    query: str
    known: tuple[Fraction, Fraction]
    source: str
    lag: str = ""
    remark: str = ""
    tables: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def row(self) -> str:
        """The line of the table."""
        found = self.explained()
        assert found.update is not None
        assert found.delay is not None
        worse = f"**worse**: {self.lag}" if self.lag else self.remark
        text = self.query.replace("|", "\\|")
        ours = f"{found.update}, {found.delay} (`{found.strategy}`)"
        return f"| {self.name} | `{text}` | {_shown(self.known)} | {self.source} | {ours} | {worse} |"

    def is_reached(self) -> bool:
        """Whether ours is no worse than the best known."""
        update, delay = self.exponents()
        return update <= self.known[0] and delay <= self.known[1]

    def exponents(self, **options: Any) -> tuple[Fraction, Fraction]:
        """Those of our update and delay, at the ε that the plan takes."""
        found = self.explained(**options)
        assert found.update is not None
        assert found.delay is not None
        epsilon = found.epsilon if isinstance(found.epsilon, Fraction) else HALF
        return found.update.exponent.at(epsilon), found.delay.exponent.at(epsilon)

    def explained(self, **options: Any) -> Explanation:
        return ivme.explain(self.query, self.tables, **{**self.options, **options})


def _shown(exponents: tuple[Fraction, Fraction]) -> str:
    return ", ".join(str(bound(exponent)) for exponent in exponents)


def _keyed(**columns: list[str]) -> dict[str, Any]:
    """Tables whose first column is their key."""
    return {name: {"columns": listed, "primary_key": [listed[0]]} for name, listed in columns.items()}


def _cycle(length: int, head: str = ".") -> str:
    names = "ABCDEFGH"
    return f"Q({head}) = " + ", ".join(f"R{i}({names[i]}, {names[(i + 1) % length]})" for i in range(length))


def _path(length: int, head: str = ".") -> str:
    names = "ABCDEFGH"
    return f"Q({head}) = " + ", ".join(f"R{i}({names[i]}, {names[i + 1]})" for i in range(length))


TRIANGLE = "R(A, B), S(B, C), T(C, A)"
STAR = "Q(x, y, SUM(n)) = F(f, a, b, n), S(a, x), T(b, y)"

FAMILIES = (
    Family("product", "Q(A, B) = R(A), S(B)", (ZERO, ZERO), DYNAMIC),
    Family("hierarchical, counted", "Q(.) = R(A, B), S(A, C)", (ZERO, ZERO), DYNAMIC),
    Family("q-hierarchical, listed", "Q(A, B, C) = R(A, B), S(A, C)", (ZERO, ZERO), DYNAMIC),
    Family("q-hierarchical, grouped", "Q(A, SUM(X), COUNT) = R(A, B, X), S(A, C)", (ZERO, ZERO), DYNAMIC),
    Family("star of four, by centre", "Q(A, COUNT) = R(A, B), S(A, C), T(A, D), U(A, E)", (ZERO, ZERO), DYNAMIC),
    Family("triangle look-up", f"Q(. | A, B, C) = {TRIANGLE}", (ZERO, ZERO), "003, Theorem 3.4"),
    Family("neighbours of a node", "Q(B | A) = R(A, B), S(A, C)", (ZERO, ZERO), "003, Theorem 3.4"),
    Family("smallest hard, listed", "Q(A) = R(A, B), S(B)", (HALF, HALF), "003, Theorem 3.5"),
    Family("smallest hard, with an input", "Q(B | A) = R(A, B), S(B)", (HALF, HALF), "003, Theorem 3.5"),
    Family("matrix product", "Q(A, C) = R(A, B), S(B, C)", (HALF, HALF), "003, Theorem 3.5"),
    Family("two hops from a node", "Q(C | A) = R(A, B), S(B, C)", (HALF, HALF), "003, Theorem 3.5"),
    Family("two hops from a node, with the way", "Q(B, C | A) = R(A, B), S(B, C)", (HALF, HALF), "003, Theorem 3.5"),
    Family("star behind a node", "Q(B, C, D | A) = R(A, B), S(B, C), T(B, D)", (HALF, HALF), "003, Theorem 3.5"),
    Family("three hops from a node", "Q(D | A) = R(A, B), S(B, C), T(C, D)", (ZERO, ONE), "record 0201"),
    Family(
        "least value three hops from a node", "Q(MIN(D) | A) = R(A, B), S(B, C), T(C, D)", (ZERO, ONE), "record 0610"
    ),
    Family("four hops from a node", "Q(E | A) = R(A, B), S(B, C), T(C, D), U(D, E)", (ZERO, ONE), "record 0201"),
    Family(
        "paths of three from a node, listed",
        "Q(B, C, D | A) = R(A, B), S(B, C), T(C, D)",
        (ONE, ZERO),
        "003, Theorem 3.4",
        remark='O(1), O(N) with `favour="updates"`, and O(1) for each row after the first (record 0630)',
    ),
    Family(
        "ears behind three hops, listed",
        "Q(D, E, F | A) = R(A, B), S(B, C), T(C, D), U(D, E), V(D, F)",
        (ZERO, ONE),
        "record 0630; Bagan, Durand, Grandjean, CSL 2007",
        remark="the first row of a request; each further one O(1)",
    ),
    Family("paths between two nodes", "Q(. | A, D) = R(A, B), S(B, C), T(C, D)", (ZERO, ONE), "record 0201"),
    Family("crossed, counted", "Q(.) = R(A), S(A, B), T(B)", (HALF, ZERO), "003, chapter 7"),
    Family("path of three, counted", _path(3), (HALF, ZERO), "000, section 6"),
    Family("path of four, counted", _path(4), (HALF, ZERO), "000, section 6"),
    Family("path of five, counted", _path(5), (ONE, ZERO), WALK),
    Family("path of three, listed", _path(3, "A, B, C, D"), (HALF, ZERO), "record 0320"),
    Family("path of four, listed", _path(4, "A, B, C, D, E"), (ONE, ZERO), "003, Theorem 3.4"),
    Family("path of six, listed", _path(6, "A, B, C, D, E, F, G"), (ONE, ZERO), "003, Theorem 3.4"),
    Family("triangles, counted", f"Q(.) = {TRIANGLE}", (HALF, ZERO), "000, Theorem 1"),
    Family("triangles, listed", f"Q(A, B, C) = {TRIANGLE}", (HALF, ZERO), "003, Theorem 3.10"),
    Family(
        "triangles, listed with columns of their edges",
        "Q(A, B, C, X, Y, Z) = R(A, B, X), S(B, C, Y), T(C, A, Z)",
        (HALF, ZERO),
        "record 0320",
    ),
    Family("triangles of chosen nodes, listed", f"Q(A, B, C) = {TRIANGLE}, U(A)", (TWO_THIRDS, ZERO), "record 0320"),
    Family(
        "triangle with a pendant, listed", f"Q(A, B, C, D) = {TRIANGLE}, U(A, D)", (TWO_THIRDS, ZERO), "record 0320"
    ),
    Family("triangles of a node, listed", f"Q(B, C | A) = {TRIANGLE}", (ZERO, ONE), "record 0201"),
    Family("triangles of a node, counted", f"Q(. | A) = {TRIANGLE}", (ZERO, ONE), "record 0201"),
    Family("triangles of an edge", f"Q(C | A, B) = {TRIANGLE}", (HALF, HALF), "003, Proposition 6.3 (erratum 1)"),
    Family(
        "triangle with a pendant, counted",
        f"Q(.) = {TRIANGLE}, U(A, D)",
        (TWO_THIRDS, ZERO),
        f"{FOUR}, for one undirected table; record 0441",
    ),
    Family(
        "4-cycle, counted",
        _cycle(4),
        (TWO_THIRDS, ZERO),
        FOUR,
        remark="slightly less by fast matrix multiplication, not built",
    ),
    Family("5-cycle, counted", _cycle(5), (ONE, ZERO), WALK),
    Family("6-cycle, counted", _cycle(6), (ONE, ZERO), WALK),
    Family("7-cycle, counted", _cycle(7), (ONE, ZERO), WALK),
    Family("8-cycle, counted", _cycle(8), (ONE, ZERO), WALK),
    Family(
        "K4 minus an edge (diamond), counted",
        "Q(.) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C)",
        (TWO_THIRDS, ZERO),
        f"{FOUR}, for one undirected table; record 0400",
    ),
    Family(
        "K4, counted",
        "Q(.) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C), W(B, D)",
        (ONE, ZERO),
        FOUR,
        remark="no combinatorial algorithm has N^(1-γ), unless one finds 4-cliques faster",
    ),
    Family("bowtie, counted", f"Q(.) = {TRIANGLE}, U(A, D), V(D, E), W(E, A)", (ONE, ZERO), "003, Theorem 3.4"),
    Family(
        "grid of 2 by 3, counted",
        "Q(.) = R(A, B), S(B, C), T(D, E), U(E, F), V(A, D), W(B, E), X(C, F)",
        (ONE, ZERO),
        "003, Theorem 3.4",
    ),
    Family(
        "Loomis-Whitney of degree 4, counted",
        "Q(.) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
        (HALF, ZERO),
        "000, section 6; 003, chapter 9",
    ),
    Family(
        "Loomis-Whitney of degree 5, counted",
        "Q(.) = R(A, B, C, D), S(B, C, D, E), T(C, D, E, A), U(D, E, A, B), V(E, A, B, C)",
        (HALF, ZERO),
        "000, section 6; 003, chapter 9",
    ),
    Family(
        "orders by city, with a key",
        "Q(city, COUNT) = O(o, c), C(c, city)",
        (ZERO, ZERO),
        KEYS,
        tables=_keyed(O=["o", "c"], C=["c", "city"]),
    ),
    Family(
        "star of two dimensions, with keys",
        STAR,
        (ONE, ZERO),
        f"{KEYS}; 003, Theorem 3.11",
        remark="a fact costs O(1); for dimensions no better than N^½ is possible (OMv)",
        tables=_keyed(F=["f", "a", "b", "n"], S=["a", "x"], T=["b", "y"]),
    ),
    Family(
        "snowflake, with keys",
        "Q(z, SUM(n)) = F(f, a, n), S(a, b), T(b, z)",
        (ZERO, ZERO),
        KEYS,
        tables=_keyed(F=["f", "a", "n"], S=["a", "b"], T=["b", "z"]),
    ),
    Family(
        "a fact by its key, with keys",
        "Q(x, y | f) = F(f, a, b), S(a, x), T(b, y)",
        (ZERO, ZERO),
        "record 0201",
        tables=_keyed(F=["f", "a", "b"], S=["a", "x"], T=["b", "y"]),
    ),
    Family(
        "a customer's nation and total, with keys",
        "Q(z, SUM(n) | c) = C(c, a), S(a, z), O(o, c), L(l, o, n)",
        (ZERO, ZERO),
        "record 0440",
        tables=_keyed(C=["c", "a"], S=["a", "z"], O=["o", "c"], L=["l", "o", "n"]),
    ),
    Family(
        "neighbours by a node with triangles",
        "Q(E | A) = R(A, B), S(B, C), T(C, D), U(D, B), V(B, E)",
        (ONE, ONE),
        "record 0440",
    ),
    Family(
        "path, append-only, listed",
        _path(3, "A, B, C, D"),
        (ZERO, ZERO),
        "002, Theorem 3.2",
        options={"append_only": ["R0", "R1", "R2"]},
    ),
    Family(
        "triangles, append-only, listed",
        f"Q(A, B, C) = {TRIANGLE}",
        (HALF, ZERO),
        INSERTS,
        options={"append_only": ["R", "S", "T"]},
    ),
    Family(
        "4-cycles, append-only, listed",
        _cycle(4, "A, B, C, D"),
        (ONE, ZERO),
        INSERTS,
        options={"append_only": ["R0", "R1", "R2", "R3"]},
    ),
    Family(
        "diamonds, append-only, listed",
        "Q(A, B, C, D) = R(A, B), S(B, C), T(C, D), U(D, A), V(A, C)",
        (HALF, ZERO),
        INSERTS,
        options={"append_only": ["R", "S", "T", "U", "V"]},
    ),
    Family(
        "bowties, append-only, listed",
        f"Q(A, B, C, D, E) = {TRIANGLE}, U(A, D), V(D, E), W(E, A)",
        (HALF, ZERO),
        INSERTS,
        options={"append_only": ["R", "S", "T", "U", "V", "W"]},
    ),
    Family(
        "Loomis-Whitney of degree 4, append-only, listed",
        "Q(A, B, C, D) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
        (Fraction(1, 3), ZERO),
        INSERTS,
        options={"append_only": ["R", "S", "T", "U"]},
    ),
    Family(
        "5-cycles, append-only, listed",
        _cycle(5, "A, B, C, D, E"),
        (ONE, ZERO),
        INSERTS,
        options={"append_only": ["R0", "R1", "R2", "R3", "R4"]},
    ),
    Family(
        "crossed, one table static",
        "Q(.) = R(A), S(A, B), T(B)",
        (ZERO, ZERO),
        "003, Theorem 3.4",
        options={"static": ["S", "T"]},
    ),
    Family(
        "extremes of groups",
        "Q(A, MIN(X), MAX(X)) = R(A, X)",
        (ZERO, ZERO),
        "a balanced tree for each group",
        remark="besides a factor log N",
    ),
)
