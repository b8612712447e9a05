"""The blocks of a view as text: what each computes, what it costs, and what they cost together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from textwrap import wrap
from typing import TYPE_CHECKING

from ivme.plan.ir.exponent import Bound

if TYPE_CHECKING:
    from ivme.plan.explain.explanation import BlockExplanation, Explanation

WIDTH = 98
_TABLES = "the tables"


def block_sections(explanation: Explanation) -> Iterator[list[str]]:
    """The text of the user, the blocks from the tables to the view, and the sum; nothing for a single block."""
    if not explanation.blocks:
        return
    yield wrap(" ".join(explanation.query.text.split()), WIDTH, subsequent_indent="    ", break_long_words=False)
    lines = [f"{len(explanation.blocks)} blocks, each over tables and the blocks before it"]
    for block in explanation.blocks:
        lines += [f"  {block.name}: {_cost(block)}", *_text(block), *_notes(block)]
    yield lines
    yield ["together", *wrap(_sum(explanation.blocks), WIDTH, initial_indent="  ", subsequent_indent="  ")]


def _cost(block: BlockExplanation) -> str:
    own = block.explanation
    if block.rows_in == "0":
        return "ordered when it is read, so that an update costs it nothing"
    update = "" if own.update is None else f", update {own.update}"
    rows = "a changed row" if block.rows_in == "1" else "each of up to N changed rows"
    return f"{own.strategy}{update} for {rows}"


def _text(block: BlockExplanation) -> list[str]:
    text = block.text.replace("`", "")
    return wrap(text, WIDTH, initial_indent="      ", subsequent_indent="      ", break_long_words=False)


def _notes(block: BlockExplanation) -> list[str]:
    """What is said about a block with an ordered map, whose cost depends on how far a change reaches."""
    notes = block.explanation.notes if block.explanation.strategy == "order" else ()
    told = [note for note in notes if "lower bound" not in note]  # that of the rows below the order, not of the order
    return [line for note in told for line in wrap(note, WIDTH, initial_indent="    - ", subsequent_indent="      ")]


def _sum(blocks: tuple[BlockExplanation, ...]) -> str:
    """An update costs the sum over the blocks of the changed rows that reach a block times the block's own cost."""
    first = [each.explanation.update for each in blocks if each.rows_in == "1" and each.explanation.update is not None]
    later = [each for each in blocks if each.rows_in == "N"]
    reached = sum(each.rows_in == "1" for each in blocks)
    as_rows = "1 block as one row" if reached == 1 else f"{reached} blocks as one row each"
    text = f"a row of a table reaches {as_rows}: {_worst(first)} in all"
    if not later:
        return text
    joins = ", ".join(each.name for each in blocks if each.rows_out != "1" and each.rows_in == "1")
    names = ", ".join(each.name for each in later)
    return f"{text}. What it changes in {joins}, up to N rows, goes on to {names}, at their cost for each row"


def _worst(bounds: list[Bound]) -> str:
    return str(worst(bounds)) if bounds else "O(1)"


def worst(bounds: Iterable[Bound]) -> Bound:
    """The largest of bounds, which is their sum."""
    return max(bounds, key=lambda each: (each.exponent.at(Fraction(1, 2)), each.logs, each.amortised))
