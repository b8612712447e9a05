"""The names of the blocks of a view; no view or table of a user has such a name at the same time."""

from __future__ import annotations


def block_name(view: str, number: int) -> str:
    """The name of a view's block.

    >>> block_name("orders", 2), view_of_block("orders#2")
    ('orders#2', 'orders')
    """
    return f"{view}#{number}"


def view_of_block(name: str) -> str:
    """The view that a block belongs to, if the name is that of one."""
    return name.rpartition("#")[0]
