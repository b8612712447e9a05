"""The scripts of examples/, run as a user runs them; what they print is recomputed here in plain Python."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs an example with arguments; gives its names and what it printed."""

    def ran(name: str, *arguments: str) -> tuple[dict[str, Any], list[str]]:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        names = runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return names, capsys.readouterr().out.splitlines()

    return ran


def offers(given: Any, routes: Iterable[Any], origin: str, dest: str) -> tuple[list[Any], list[Any]]:
    """Direct flights by price, and connections by price, with all loops over all routes."""
    city = dict(given.airports)
    routes = list(routes)
    direct = sorted((price, no) for no, src, dst, price in routes if (city[src], city[dst]) == (origin, dest))
    stops = sorted(
        (r[3] + s[3], r[0], s[0], city[r[2]])
        for r in routes
        for s in routes
        if r[2] == s[1] and city[r[1]] == origin and city[s[2]] == dest
    )
    return direct, stops


def as_shown(direct: list[Any], stops: list[Any], origin: str, dest: str) -> list[str]:
    lines = [f"{origin} to {dest}: {len(direct)} direct, {len(stops)} with one stop"]
    lines += [f"  direct from {direct[0][0]}: {direct[0][1]}"] if direct else []
    return lines + [f"  by {via} from {price}: {first}, {second}" for price, first, second, via in stops[:1]]


def test_flight_search_finds_what_loops_over_all_routes_find(run: Any) -> None:
    names, printed = run("flight_search", "--routes", "200", "--seed", "3")
    given = names["network"](200, 3)
    later = {route[0]: route for route in given.routes}
    for route, sign in given.changes:
        if sign > 0:
            later[route[0]] = route
        else:
            del later[route[0]]
    expected = as_shown(*offers(given, given.routes, "London", "Zurich"), "London", "Zurich")
    for pair in (("London", "Zurich"), ("Oslo", "Rome")):
        expected += as_shown(*offers(given, later.values(), *pair), *pair)
    shown = [re.sub(r" \(read in .*\)", "", line) for line in printed if " to " in line or line.startswith("  ")]
    assert expected == shown
    assert 200 == len(later)
    assert 20 == len(given.changes)


def rings_of(window: list[tuple[int, int]]) -> set[tuple[int, ...]]:
    """All rings of three and four distinct accounts, by walking along the payments of the window."""
    paid: dict[int, set[int]] = {}
    for payer, payee in window:
        paid.setdefault(payer, set()).add(payee)
    walks: set[tuple[int, ...]] = {(a,) for a in paid}
    found: set[tuple[int, ...]] = set()
    for _ in range(4):
        walks = {(*walk, b) for walk in walks for b in paid.get(walk[-1], ())}
        found |= {walk[:-1] for walk in walks if walk[0] == walk[-1] == min(walk) and len(set(walk)) == len(walk) - 1}
    return {ring for ring in found if len(ring) in (3, 4)}


def test_fraud_rings_reports_each_ring_in_the_batch_that_closes_it(run: Any) -> None:
    names, printed = run("fraud_rings", "--payments", "600", "--window", "200", "--batch", "20", "--seed", "2")
    stream = names["payments"](600, 2)
    expected: list[Any] = []
    reported: set[Any] = set()
    for number in range(30):
        end = 20 * (number + 1)
        for ring in sorted(rings_of(stream[max(0, end - 200) : end]) - reported):
            reported.add(ring)
            expected.append(f"batch {number + 1}: ring of {len(ring)}: {' pays '.join(map(str, (*ring, ring[0])))}")
    assert expected == [line for line in printed if line.startswith("batch")]
    assert {3, 4} == {len(ring) for ring in reported}
    window = stream[-200:]
    triples = sum(
        1 for a, b in window for c, d in window if b == c for e, f in window if d == e and f == a
    )  # each combination of payments counts
    assert f"the window has {triples} closed walks of three now" in printed[-1]


def allowed(grants: Iterable[tuple[str, str]], users: Iterable[str], documents: Iterable[str]) -> set[tuple[str, str]]:
    """Pairs of user and document, by a search from each user."""
    grants, documents, found = list(grants), set(documents), set()
    for user in users:
        seen: set[str] = set()
        left = [user]
        while left:
            at = left.pop()
            new = {what for who, what in grants if who == at} - seen
            seen |= new
            left += new
        found |= {(user, document) for document in seen & documents}
    return found


def test_permissions_says_who_may_open_what_before_and_after_changes(run: Any) -> None:
    names, printed = run("permissions")
    grants, users, documents = list(names["GRANTS"]), names["USERS"], names["DOCUMENTS"]
    now = allowed(grants, users, documents)
    expected = [f"{user} may open {', '.join(sorted(d for u, d in now if u == user))}" for user in users]
    expected.append(f"the ledger is open to {', '.join(sorted(u for u, d in now if d == 'ledger'))}")
    assert expected == printed[: len(expected)]
    way = re.sub(r".*\? ", "", printed[len(expected)]).split(" → ")
    assert all(step in grants for step in pairwise(way))
    lines = []
    for verb, grant in (("revoking", ("interns", "engineering")), ("granting", ("staff", "auditor"))):
        grants = [each for each in grants if each != grant] if verb == "revoking" else [*grants, grant]
        before, now = now, allowed(grants, users, documents)
        changed = sorted([(pair, "gains") for pair in now - before] + [(pair, "loses") for pair in before - now])
        lines += [f"{verb} {grant[0]} → {grant[1]}", *(f"  {user} {how} {d}" for (user, d), how in changed)]
    assert lines == printed[len(expected) + 1 :]


def test_permissions_follow_a_stream_of_changes_in_a_larger_company(run: Any) -> None:
    names, _ = run("permissions")
    grants, users, documents = names["many"](25, 12, 4)
    permissions = names["Permissions"](grants, users, documents)
    assert allowed(grants, users, documents) == set(permissions.allowed)
    for number, grant in enumerate(permutations(["g1", "g2", "g5"], 2)):
        sign = -1 if grant in grants else 1
        before = set(permissions.allowed)
        change = permissions.change(grant, sign)
        grants = [*grants, grant] if sign > 0 else [each for each in grants if each != grant]
        now = allowed(grants, users, documents)
        assert now == set(permissions.allowed), number
        assert dict.fromkeys(now - before, 1) | dict.fromkeys(before - now, -1) == change
        user = users[number]
        assert {d for u, d in now if u == user} == {d for (d,) in permissions.may_open(U=user)}


def test_every_example_is_tested_and_listed() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert {"flight_search.py", "fraud_rings.py", "permissions.py"} == scripts
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    assert all(f"({name})" in listed for name in scripts)
