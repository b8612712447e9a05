"""A corpus of queries by people: where they come from, the tables that they read, their texts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublicSql:
    """Queries written after public examples.

    `tables` has for each table the types of its columns; after the type of a string may come the values it takes.
    """

    name: str
    origin: str
    tables: dict[str, dict[str, str]]
    queries: dict[str, str]
