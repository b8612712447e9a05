"""IVM^ε with a fixed heavy set, written by hand: the program's form carries heavy and light parts.

Triangle counting as in source 000, section 3: R, S and T are partitioned on A, B and C; the count is maintained with
the views V_RS = R_H ⋈ S_L, V_ST = S_H ⋈ T_L and V_TR = T_H ⋈ R_L. Nothing here rebalances: the heavy keys are given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivme.engine.reference.interpreter import Interpreter
from ivme.plan.ir import program as ir
from ivme.query.rule import parse_rule
from tests import oracle
from tests.invariants import check_indexes
from tests.random_queries import contents, updates

QUERY = parse_rule("Q(. | .) = R(A, B), S(B, C), T(C, A)")
CYCLE = ("R", "S", "T")
SCHEMA = {"R": ("A", "B"), "S": ("B", "C"), "T": ("C", "A")}
BOTH_WAYS = (ir.Index((0,), (1,)), ir.Index((1,), (0,)))
ZERO, EPSILON, ONE = Fraction(0), Fraction(1, 2), Fraction(1)


def source(relation: str, schema: tuple[str, ...]) -> ir.Source:
    atom = parse_rule(f"Q({', '.join(schema)}) = {relation}({', '.join(schema)})").atoms[0]
    return ir.Source(atom, tuple(f"_{i}" for i, _ in enumerate(schema, 1)), schema)


def heavy_light_program() -> ir.Program:
    maps = [ir.Map("Q", (), "result", ZERO)]
    for x, y in zip(CYCLE, CYCLE[1:] + CYCLE[:1], strict=True):
        key = SCHEMA[x][:1]
        maps += [ir.Map(f"{x}_{part}", SCHEMA[x], "leaf", ONE, indexes=BOTH_WAYS) for part in "HL"]
        maps.append(ir.Map(f"H{x}", key, "heavy", 1 - EPSILON))
        maps.append(ir.Map(f"V_{x}{y}", (SCHEMA[x][0], SCHEMA[y][1]), "view", 1 + EPSILON))
    registers = count(1)
    triggers = [ir.Trigger(x, tuple(_trigger(x, registers))) for x in CYCLE]
    for x in CYCLE:
        name = f"d{next(registers)}"
        heavy = source(f"Heavy{x}", SCHEMA[x][:1])
        triggers.append(ir.Trigger(f"Heavy{x}", (ir.Load(name, heavy), ir.Add(name, f"H{x}"))))
    reading = ir.Enumeration((), (), (), (), (ir.Read("Q", ()),))
    named = tuple((x, source(x, SCHEMA[x])) for x in CYCLE)
    return ir.Program(named, tuple(maps), tuple(triggers), (), reading)


def _trigger(x: str, registers: Iterator[int]) -> Iterator[ir.Step]:
    """The four cases of ApplyUpdate (source 000, Figure 3), then the two views that x is part of, then its parts."""
    y, z = (CYCLE[(CYCLE.index(x) + i) % 3] for i in (1, 2))
    schema, third = SCHEMA[x], SCHEMA[y][1]

    def fresh() -> str:
        return f"d{next(registers)}"

    def part(relation: str, side: str) -> ir.Read:
        return ir.Read(f"{relation}_{side}", SCHEMA[relation])

    def sums(origin: str, reads: tuple[ir.Read, ...], new: tuple[str, ...], keep: tuple[str, ...], target: str) -> Any:
        joined, summed = fresh(), fresh()
        yield ir.Join(joined, origin, reads, schema + new, EPSILON if new else ZERO)
        yield ir.Project(summed, joined, keep)
        yield ir.Add(summed, target)

    change, heavy, light = fresh(), fresh(), fresh()
    key = ir.Read(f"H{x}", schema[:1], payload=False)
    yield ir.Load(change, source(x, schema))
    for sides in ("HH", "LH", "LL"):
        yield from sums(change, (part(y, sides[0]), part(z, sides[1])), (third,), (), "Q")
    yield from sums(change, (ir.Read(f"V_{y}{z}", (SCHEMA[y][0], SCHEMA[z][1])),), (), (), "Q")
    yield ir.Filter(heavy, change, key, True, schema)
    yield ir.Filter(light, change, key, False, schema)
    yield from sums(heavy, (part(y, "L"),), (third,), (schema[0], third), f"V_{x}{y}")
    yield from sums(light, (part(z, "H"),), (third,), (third, schema[1]), f"V_{z}{x}")
    yield ir.Add(heavy, f"{x}_H")
    yield ir.Add(light, f"{x}_L")


PROGRAM = heavy_light_program()


def part_of(relation: str, database: dict[str, Counter[Any]], heavy: set[int], wanted: bool) -> dict[Any, int]:
    return {row: weight for row, weight in database.get(relation, {}).items() if (row[0] in heavy) == wanted}


@pytest.mark.slow
@settings(deadline=None)
@given(st.fixed_dictionaries({x: st.sets(st.integers(0, 3)) for x in CYCLE}), updates(QUERY, domain=4, max_size=40))
def test_a_program_with_heavy_and_light_parts_counts_triangles(heavy: dict[str, set[int]], steps: list[Any]) -> None:
    kernel = Interpreter(PROGRAM)
    for x in CYCLE:
        kernel.apply(f"Heavy{x}", {(key,): 1 for key in heavy[x]})
    for i, (relation, row, weight) in enumerate(steps):
        kernel.apply(relation, {row: weight})
        database = contents(steps[: i + 1])
        expected = oracle.result(QUERY, database).get((), 0)
        assert ([((), expected, ())] if expected else []) == list(kernel.items({}))
    database = contents(steps)
    for x, y in zip(CYCLE, CYCLE[1:] + CYCLE[:1], strict=True):
        assert part_of(x, database, heavy[x], True) == dict(kernel.map(f"{x}_H").items())
        assert part_of(x, database, heavy[x], False) == dict(kernel.map(f"{x}_L").items())
        view: Counter[Any] = Counter()
        for (a, b), m in part_of(x, database, heavy[x], True).items():
            view.update({(a, c): m * n for (b2, c), n in part_of(y, database, heavy[y], False).items() if b2 == b})
        assert dict(view) == dict(kernel.map(f"V_{x}{y}").items())
    for declared in PROGRAM.maps:
        check_indexes(kernel.map(declared.name))


def test_a_filter_shows_where_a_change_is_routed() -> None:
    printed = str(PROGRAM)
    assert "d2(A, B) := d1 where in ∃HR(A)" in printed
    assert "d3(A, B) := d1 where not in ∃HR(A)" in printed


def test_a_heavy_key_is_not_scanned_on_its_heavy_side() -> None:
    """b has 200 c's in S_H, all joined in V_ST already: δR(a, b) looks the light part of T up in one operation."""
    kernel = Interpreter(PROGRAM)
    kernel.apply("HeavyS", {(0,): 1})
    kernel.apply("S", {(0, c): 1 for c in range(200)})
    kernel.apply("T", {(c, 0): 1 for c in range(200)})
    before = kernel.operations
    kernel.apply("R", {(0, 0): 1})
    assert list(kernel.items({})) == [((), 200, ())]
    assert kernel.operations - before < 40
