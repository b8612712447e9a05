"""The program prints as docs/program.md says, and finds its parts by name."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ivme.plan.assemble.leaves import leaves_of
from ivme.plan.ir.program import (
    Add,
    Distinct,
    Enumeration,
    Exists,
    Extreme,
    Filter,
    Index,
    Join,
    Load,
    Loop,
    Map,
    Program,
    Project,
    Read,
    Rename,
    Scan,
    Source,
    Step,
    Trigger,
)
from ivme.query.model import table
from ivme.query.rule import parse_rule
from ivme.query.sql import parse_sql
from ivme.structure.fracture import fracture
from ivme.structure.hypergraph import cqap_of


def source(text: str) -> Source:
    query = parse_rule(text)
    return leaves_of(query, fracture(cqap_of(query))).sources[0][1]


R = source("Q(A, B) = R(A, B)")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (Read("S", ("B", "C")), "S(B, C)"),
        (Read("S", ("B", "C"), payload=False), "∃S(B, C)"),
        (Read("S", ("B", None), payload=False), "∃S(B, _)"),
        (Read("S", ("B", "C"), pending="d1"), "(S + d1)(B, C)"),
        (Read("S", (None, "C"), payload=False, pending="d1"), "∃(S + d1)(_, C)"),
        (Read("V", ()), "V()"),
    ],
)
def test_a_read_shows_its_map_its_variables_and_what_is_pending(read: Read, text: str) -> None:
    assert text == str(read)


HEAVY = Read("H", ("A",), payload=False)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (Load("d1", R), "d1(A, B) := load R(A, B)"),
        (Scan("d1", "R", ("A", "B")), "d1(A, B) := scan R"),
        (Scan("d1", "R", ("A", "B"), indicator=True), "d1(A, B) := ∃scan R"),
        (Rename("d2", "d1", ("B", "C")), "d2(B, C) := d1"),
        (
            Join("d2", "d1", (Read("S", ("B", "C")), Read("T", ("C", "A"))), ("A", "B", "C"), Fraction(1, 2)),
            "d2(A, B, C) := d1 ⋈ S(B, C) ⋈ T(C, A)    # N^1/2",
        ),
        (Project("d2", "d1", ()), "d2() := sum d1"),
        (Distinct("d2", "d1", ("B",)), "d2(B) := distinct d1"),
        (Exists("d2", "d1", "R", ("A",)), "d2(A) := ∃-changes of R by d1"),
        (Filter("d2", "d1", HEAVY, True, ("A", "B")), "d2(A, B) := d1 where in ∃H(A)"),
        (Filter("d2", "d1", HEAVY, False, ("A", "B")), "d2(A, B) := d1 where not in ∃H(A)"),
        (Add("d1", "R"), "R += d1"),
    ],
)
def test_a_step_prints_as_one_line(step: Step, text: str) -> None:
    assert text == str(step)


def test_a_loop_yields_new_variables_or_checks_the_known_ones() -> None:
    assert str(Loop(Read("V", ("A", "B", "C")), ("B", "C"))) == "for B, C in V(A, B, C)"
    assert str(Loop(Read("V", ("A",)), ())) == "if V(A)"


def test_an_extreme_names_the_view_it_is_read_from() -> None:
    assert str(Extreme("min", "X", Read("V", ("A", "X"), payload=False))) == "min(X) from ∃V(A, X)"


def test_a_source_shows_its_predicate() -> None:
    query = parse_sql("SELECT a FROM r WHERE b > 3", [table("r", {"a": "int", "b": "int"})])
    (named,) = leaves_of(query, fracture(cqap_of(query))).sources
    assert str(named[1]) == "r(a) where b > 3"


def small(lazy: bool = False) -> Program:
    maps = (
        Map("R", ("A", "B"), "leaf", Fraction(1), indexes=(Index((0,), (1,)), Index((), (0,)))),
        Map("V", ("A", "B"), "view", Fraction(1), sorted_by=(Index((0,), (1,)),)),
    )
    triggers = (Trigger("R", (Load("d1", R), Add("d1", "R"))), Trigger("S", ()))
    reading = Enumeration((), ("A",), (), (Loop(Read("V", ("A", "B")), ("A", "B")),), ())
    return Program((("R", R),), maps, triggers, (Load("d2", R), Add("d2", "R")), reading, lazy=lazy)


def test_a_program_prints_maps_triggers_build_and_reading() -> None:
    expected = [
        "maps",
        "  R(A, B)                      leaf       A→B ()→A",
        "  V(A, B)                      view       A→sorted B",
        "on R",
        "  d1(A, B) := load R(A, B)",
        "  R += d1",
        "on S",
        "build",
        "  d2(A, B) := load R(A, B)",
        "  R += d2",
        "read",
        "  for A, B in V(A, B)",
        "  payload 1",
    ]
    assert expected == str(small()).splitlines()


def test_a_lazy_program_says_when_it_builds() -> None:
    assert "build before reading" in str(small(lazy=True)).splitlines()


def test_parts_are_found_by_name() -> None:
    program = small()
    assert program.maps[1] == program.map("V")
    assert program.triggers[1] == program.trigger("S")
    assert program.source("R") == R


def test_the_schema_of_a_load_is_that_of_its_source() -> None:
    assert Load("d1", R).schema == ("A", "B")
