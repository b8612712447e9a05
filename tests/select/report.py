"""What a run of the fuzzer covered: refusals by reason, and the rules of the grammar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.select.words import Words

_FIGURES = ("views", "accepted", "compared rows", "verified", "followed", "reopened")


def report(covered: Counter[str], *, rules: bool) -> Iterator[str]:
    """The lines of a report."""
    yield from (f"{covered[name]:8} {name}" for name in _FIGURES)
    rest = [
        (n, name) for name, n in covered.items() if name.startswith(("refused: ", "case ended: ", "difference again: "))
    ]
    yield from (f"{number:8} {name}" for number, name in sorted(rest, reverse=True))
    if rules:
        yield from _rules(covered)


def _rules(covered: Counter[str]) -> Iterator[str]:
    """For each rule how often it was drawn and how often a view with it was accepted; the missing ones by name."""
    known = sorted(Words.known)
    yield "   drawn accepted rule"
    yield from (f"{covered[f'drawn {rule}']:8} {covered[f'accepted {rule}']:8} {rule}" for rule in known)
    drawn = [rule for rule in known if covered[f"drawn {rule}"]]
    accepted = [rule for rule in drawn if covered[f"accepted {rule}"]]
    yield f"{len(known)} rules, {len(drawn)} drawn, {len(accepted)} drawn and accepted"
    yield from (f"never drawn: {rule}" for rule in known if rule not in drawn)
    yield from (f"never accepted: {rule}" for rule in drawn if rule not in accepted)


def never_accepted(covered: Counter[str]) -> frozenset[str]:
    """The rules that were drawn and are in no view that was accepted."""
    return frozenset(rule for rule in Words.known if covered[f"drawn {rule}"] and not covered[f"accepted {rule}"])
