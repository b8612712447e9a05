"""Keys that move between the parts of relations: what is checked before, so that the steps can be made when they do."""

from __future__ import annotations

import pytest

from ivme.database import Database
from ivme.engine.runtime.movers import Movers
from ivme.errors import PlanError
from ivme.plan.assemble.draft import drafted
from ivme.plan.assemble.rebalancing import check_moves, move_of, moves_of, partitions_of
from ivme.plan.strategy.strategies import plan_with
from ivme.query.rule import parse_rule

SPLIT = (
    "Q(A) = R(A, B), S(B, C)",
    "Q(. | .) = R(A, B), S(B, C), T(C, A)",
    "Q(A, B, C | .) = R(A, B), S(B, C), T(C, A)",
    "Q(B, C | A) = R(A, B), S(B, C), T(C, A)",
    "Q(. | .) = E(A, B), E(B, C), E(A, C)",
    "Q(. | .) = R(A, B, C), S(B, C, D), T(C, D, A), U(D, A, B)",
    "Q(. | .) = R(A, B), S(B, C), T(C, D), U(D, A)",
    "Q(A, B, C, D | .) = R(A, B), S(B, C), T(C, D)",
    "Q(A, SUM(D)) = R(A, B), S(B, C), T(B, D)",
)


@pytest.mark.parametrize("text", SPLIT)
def test_moves_read_by_indexes_that_are_there_before_they_are_assembled(text: str) -> None:
    """A view is installed without its moves; a map that holds rows then gets no further index."""
    assembly = drafted(plan_with("skew", parse_rule(text)).blueprint, None).assembly
    partitions_of(assembly)
    check_moves(assembly)
    before = assembly.storage.maps()
    assert moves_of(assembly)
    assert before == assembly.storage.maps()


def test_a_relation_whose_atoms_need_different_columns_is_refused_before_any_move_is_assembled() -> None:
    with pytest.raises(PlanError, match="moves rows of R for all its atoms at once, and two need different columns"):
        plan_with("skew", parse_rule("Q(D, E) = R(D, F, C), R(A, F, E)"))


def test_moves_are_assembled_when_the_first_keys_change_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bool, bool]] = []
    mover = Movers.mover

    def noted(self: Movers, partition: str, rising: bool, views: bool) -> str:
        asked.append((rising, views))
        return mover(self, partition, rising, views)

    monkeypatch.setattr(Movers, "mover", noted)
    database = Database()
    database.create_table("R", {"a": "int", "b": "int"})
    database.create_table("S", {"b": "int", "c": "int"})
    view = database.create_view("v", "Q(a) = R(a, b), S(b, c)", strategy="skew")
    database.insert("R", [(1, 1)])
    assert not asked
    database.insert("R", [(a, 2) for a in range(200)])
    database.insert("S", [(2, c) for c in range(200)])
    assert (True, True) in asked
    database.delete("S", [(2, c) for c in range(199)])
    database.delete("R", [(a, 2) for a in range(199)])
    assert (False, True) in asked
    view.verify()


def test_the_steps_of_a_move_are_those_that_the_program_prints() -> None:
    plan = plan_with("skew", parse_rule(SPLIT[1]))
    assembly = drafted(plan.blueprint, None).assembly
    for move in plan.program.moves:
        (split,) = [each for each in assembly.catalog.splits if each.name == move.partition]
        made = move_of(assembly, split, rising=move.rising, views=True)
        assert [type(step) for step in move.steps] == [type(step) for step in made]
